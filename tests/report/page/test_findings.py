"""Findings say what is significant, in the right direction and with the right numbers, and nothing else."""

import numpy as np
import pytest

from suffice.compare import compare_pairs, compare_trainings, paired_ratio, rank_models
from suffice.report.page.comparing import Comparison, Quantity
from suffice.report.page.findings import findings_of, untold_of, variants
from suffice.report.page.quantities import BELOW_80, MSES, RIGHT, SIZE
from suffice.study.choices import Contrast

RANDOM = np.random.default_rng(0)
IMAGES = 64


def counts(mean, images=IMAGES, seed=0):
    return np.random.default_rng(seed).poisson(mean, images).astype(float)


def sentences(*comparisons, **options):
    return [found.text for found in findings_of(comparisons, **options)]


def test_nothing_significant_is_no_finding():
    same = counts(20)
    comparison = Comparison.of(MSES, {"a": same, "b": same, "c": RANDOM.permutation(same)})
    assert findings_of([comparison]) == []
    (line,) = untold_of([comparison])
    assert line.startswith("Minimal sufficient explanations (MSEs): none of the 3 pairs can be told apart")


def test_too_few_images_say_nothing():
    comparison = Comparison.of(MSES, {"a": [1.0, 2, 3], "b": [10.0, 20, 30]})
    assert findings_of([comparison]) == []
    assert untold_of([comparison]) == []


def test_fewer_is_a_percentage_with_its_interval():
    plain = counts(100)
    changed = np.round(0.61 * (1 + plain)) - 1  # 39 % fewer, on every image
    comparison = Comparison.of(BELOW_80, {"convnext-3": plain, "convnext-3-bn": changed})
    (found,) = findings_of([comparison])
    ratio = paired_ratio(changed.tolist(), plain.tolist())
    low, high = 100 * (1 - ratio.high), 100 * (1 - ratio.low)
    assert found.text == (
        f"convnext-3-bn has 39 % fewer sub-explanations at ≥ 80 % than convnext-3 [{low:.0f}, {high:.0f}]."
    )
    assert found.shown.startswith(f"p < 0.001 over {IMAGES} images, effect size −1.00")
    assert untold_of([comparison]) == []


def test_more_and_times_as_many():
    few = counts(50)
    by_half = Comparison.of(MSES, {"many": 1.5 * few + 0.5, "few": few})
    assert "many has 50 % more minimal sufficient explanations (MSEs) than few [50, 50]" in sentences(by_half)[0]
    threefold = Comparison.of(MSES, {"few": few, "many": 3 * few + 2})
    assert (
        "many has 3.0 times as many minimal sufficient explanations (MSEs) as few [3.0, 3.0]" in sentences(threefold)[0]
    )


def test_small_percentages_do_not_read_as_nothing_nor_large_ones_as_all():
    few = counts(5000) + 5000
    slightly = Comparison.of(MSES, {"more": 1.004 * (1 + few) - 1, "few": few})
    assert "more has 0.40 % more minimal sufficient explanations (MSEs) than few [0.40, 0.40]" in sentences(slightly)[0]
    hardly_any = Comparison.of(MSES, {"few": few, "few-none": 0.002 * (1 + few) - 1})
    assert sentences(hardly_any)[0].startswith("few-none has 99.80 % fewer minimal sufficient explanations (MSEs) ")


def test_what_could_still_be_is_a_factor_above_one():
    one = counts(5000, seed=1) + 5000
    (line,) = untold_of([Comparison.of(MSES, {"one": one, "other": RANDOM.permutation(one)})])
    assert float(line.split("factor of about ")[1].removesuffix(".")) > 1


def test_differences_have_the_interval_of_compare_in_the_direction_of_the_words():
    small = RANDOM.normal(3, 0.5, IMAGES)
    large = small + RANDOM.normal(1.2, 0.4, IMAGES)
    (line,) = sentences(Comparison.of(SIZE, {"deit": large, "deit-distilled": small}))
    (known,) = compare_pairs({"a": small, "b": large})
    assert known.difference < 0
    assert line == (
        f"deit-distilled needs {-known.difference:.1f} fewer cells for a minimal sufficient explanation than deit "
        f"[{-known.high:.1f}, {-known.low:.1f}]."
    )


def test_accuracy_is_in_percentage_points():
    right = (RANDOM.random(400) < 0.9).astype(float)
    worse = right * (RANDOM.random(400) < 0.8)
    (line,) = sentences(Comparison.of(RIGHT, {"good": right, "bad": worse}))
    points = 100 * (right.mean() - worse.mean())
    assert line.startswith(f"good is right on {points:.0f} percentage points more of the images than bad [")


def test_of_many_models_the_ends_of_the_ranking_are_said_and_holm_corrects_over_all_pairs():
    values = {name: counts(20 + 5 * number, seed=number) for number, name in enumerate("abcdef")}
    comparison = Comparison.of(MSES, values)
    (found,) = findings_of([comparison])
    assert found.text.startswith("f has ")
    assert found.text.endswith(": the most and the fewest of 6.")
    known = compare_pairs({name: np.log1p(own) for name, own in values.items()}, draws=9)
    assert [pair.p for pair in comparison.pairs] == pytest.approx([pair.p for pair in known])
    assert [pair.adjusted for pair in comparison.pairs] == pytest.approx([pair.adjusted for pair in known])
    ranked = rank_models({name: np.log1p(own) for name, own in values.items()}, pairs=known)
    assert comparison.letters == {one.model: one.letters for one in ranked}


def test_images_that_one_model_lacks_are_left_out_of_its_pairs():
    few, many = counts(20), counts(60, seed=1)
    few[:10] = np.nan
    (found,) = findings_of([Comparison.of(MSES, {"few": few, "many": many})])
    assert f"over {IMAGES - 10} images" in found.shown


def test_what_a_study_was_made_for_is_corrected_for_itself_only_and_named():
    base = counts(30)
    values = {f"other-{n}": counts(30, seed=n) for n in range(2, 12)} | {"plain": base, "changed": base + 1}
    values["changed"][:40] = base[:40]  # a small difference, in few images
    comparison = Comparison.of(MSES, values)
    asked = Contrast("changed", "plain", "batch instead of layer normalization")
    (pair,) = comparison.named([asked, Contrast("changed", "not there")])
    assert pair.adjusted == pair.p
    lines = sentences(comparison, contrasts=[asked])
    assert lines[0].startswith("Batch instead of layer normalization: changed has ")
    assert comparison.pair("changed", "plain").adjusted > pair.adjusted


def test_comparisons_that_could_not_be_told_are_one_line_a_quantity():
    values = {name: counts(30, seed=n) for n, name in enumerate("abcdefgh")}
    (line,) = untold_of([Comparison.of(MSES, values)])
    assert "28 pairs" in line
    assert line.count("–") <= 3
    (line,) = untold_of([Comparison.of(MSES, values)], [Contrast("a", "b"), Contrast("c", "d")])
    assert "none of the 2 comparisons that the study was made for can be told apart" in line


def two_architectures(spread):
    """Four trainings of each, whose means lie so far apart; values are as in :class:`Comparison`."""
    images = RANDOM.normal(5, 1, IMAGES)
    shifts = np.array([-1, -0.3, 0.4, 0.9])
    trainings = {
        name: np.stack([images + offset + spread * shift + RANDOM.normal(0, 0.2, IMAGES) for shift in shifts])
        for name, offset in (("one", 0.6), ("other", 0.0))
    }
    means = {name: own.mean(axis=0) for name, own in trainings.items()}
    return Comparison(SIZE, list(means), lambda a, b: (means[a], means[b]), trainings), trainings


def test_seeds_are_said_beside_images():
    comparison, trainings = two_architectures(spread=0.1)
    (found,) = findings_of([comparison])
    known = compare_trainings(*(own.tolist() for own in trainings.values()))
    assert known.p < 0.05
    assert found.shown.endswith("; over 4 seeds p < 0.001" if known.p < 0.001 else f"; over 4 seeds p = {known.p:.2g}")


def test_what_other_trainings_may_not_show_is_no_finding_but_is_said():
    comparison, _ = two_architectures(spread=2.0)
    assert comparison.pairs[0].clear
    assert findings_of([comparison]) == []
    assert "other trainings may not" in untold_of([comparison])[0]


def test_a_finding_needs_an_interval_without_zero():
    rare = Quantity("rare", "rare things", "ways", counts=True)
    one = counts(20)
    other = one + 1  # a little more nearly everywhere, and far less in one image
    other[0], one[0] = 0, 5000
    comparison = Comparison.of(rare, {"one": one, "other": other})
    assert comparison.pairs[0].clear
    assert findings_of([comparison]) == []


def test_variants_are_told_by_their_names():
    assert list(variants(["swin-4", "swin", "swin-4-bn", "swinger"])) == [
        ("swin-4", "swin"), ("swin-4-bn", "swin-4"), ("swin-4-bn", "swin"),
    ]  # fmt: skip
