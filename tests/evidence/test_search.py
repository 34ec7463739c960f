"""The search against brute force and against literal twins, on oracles whose decisions are known."""

import gc

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.errors import OptionError
from suffice.evidence import EvidenceStream, Settings, find_evidence, presets
from suffice.evidence.one_at_a_time import OneAtATime, search_one_at_a_time
from suffice.perturb import Forwarder
from suffice.testing import AnyOf, AtLeast, ExactlyOdd, Formula, Unless, WeightedSum, minimal_sufficient_sets
from suffice.vision import Classifier
from tests.evidence.twins import SEEDS, formula, search_bank, search_oracle, strength_of

WIDE = 1 << 20


def found_sets(evidence):
    return sorted(m.cells for m in evidence.mses)


@settings(max_examples=11, deadline=None)
@given(SEEDS)
def test_monotone_formulas_have_their_prime_implicants(seeds):
    oracles = [formula(seed, monotone=True) for seed in seeds]
    truth = [minimal_sufficient_sets(oracle) for oracle in oracles]
    assert [found_sets(e) for e in search_bank(oracles, beam_width=WIDE)] == truth
    assert [found_sets(e) for e in search_bank(oracles, beam_width=WIDE, minimal="subset")] == truth


@settings(max_examples=11, deadline=None)
@given(SEEDS)
def test_any_formula_subset_minimal(seeds):
    oracles = [formula(seed) for seed in seeds]
    found = search_bank(oracles, beam_width=WIDE, minimal="subset")
    assert [found_sets(e) for e in found] == [minimal_sufficient_sets(o, minimal="subset") for o in oracles]
    assert all(m.certified for e in found for m in e.mses)


@settings(max_examples=11, deadline=None)
@given(SEEDS, st.sampled_from([1, 2, 5, WIDE]), st.sampled_from(["all", "beam"]), st.sampled_from([None, 0, 2]))
def test_any_formula_equals_the_literal_twin(seeds, width, passing, max_mses):
    oracles = [formula(seed) for seed in seeds]
    found = search_bank(oracles, beam_width=width, passing=passing, max_mses=max_mses)
    for oracle, evidence in zip(oracles, found, strict=True):
        literally = Settings(grid=3, beam_width=width, passing=passing, max_mses=max_mses)
        twin = search_one_at_a_time(strength_of(oracle), literally)
        assert [frozenset(m.cells) for m in evidence.mses] == twin
        single = minimal_sufficient_sets(oracle, minimal="single")
        assert set(found_sets(evidence)) <= set(single)
        if width == WIDE and passing == "all" and max_mses is None:
            assert set(minimal_sufficient_sets(oracle, minimal="subset")) <= set(found_sets(evidence))


def test_single_and_subset_differ_where_the_formula_is_not_monotone():
    # {0, 1, 2} suffices and no single cell can go, though {0} alone suffices too.
    sets = [{0}, {0, 1, 2}, {0, 1, 2, 3}]
    oracle = Formula(lambda v: torch.stack([(v[:, :4] == torch.tensor([c in s for c in range(4)])).all(1) for s in sets]).any(0) | v.all(1), grid=2)  # fmt: skip  # noqa: E501
    both = minimal_sufficient_sets(oracle, minimal="single")
    assert (0,) in both
    assert (0, 1, 2) in both
    assert found_sets(search_oracle(oracle, beam_width=WIDE, minimal="subset")) == [(0,)]


@pytest.mark.parametrize(
    ("oracle", "expected"),
    [
        (AtLeast(2, (0, 4, 8), 3), [(0, 4), (0, 8), (4, 8)]),
        (ExactlyOdd((1, 5, 7), 3), [(1,), (5,), (7,)]),
        (AnyOf([(0, 1, 2, 3), (8,)], grid=3), [(0, 1, 2, 3), (8,)]),
        (WeightedSum({0: 3.0, 1: 2.0, 2: 2.0, 3: 1.0}, 4.0, 3), [(0, 1), (0, 2), (0, 3), (1, 2)]),
        (Unless([(0, 1)], [2], 3, anyway=[(4, 5)]), [(0, 1), (4, 5)]),
    ],
)
def test_known_formulas(oracle, expected):
    assert found_sets(search_oracle(oracle, beam_width=WIDE)) == expected


def test_order_of_discovery_is_by_size_then_ratio():
    oracle = WeightedSum({0: 9.0, 1: 6.0, 2: 5.0, 3: 5.0}, 8.0, 3, link="smooth", sharpness=4.0)
    evidence = search_oracle(oracle, beam_width=WIDE)
    assert [m.cells for m in evidence.mses][:2] == [(0,), (1, 2)]
    assert [len(m) for m in evidence.mses] == sorted(len(m) for m in evidence.mses)
    assert evidence.mses[0].ratio == pytest.approx(float(oracle.strength(bits((0,)))) / float(oracle.strength(bits(range(9)))), abs=1e-5)  # fmt: skip  # noqa: E501


def bits(cells):
    visible = torch.zeros(1, 9, dtype=torch.bool)
    visible[0, list(cells)] = True
    return visible


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Conv2d(3, 8, 3, stride=2)
        self.b = torch.nn.Conv2d(8, 16, 3, stride=2)
        self.head = torch.nn.Linear(16 * 9, 4)

    def forward(self, x):
        x = self.b(self.a(x).relu()).relu()
        return self.head(torch.nn.functional.adaptive_max_pool2d(x, 3).flatten(1)) * 8


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(4)
    return Classifier(Small().eval(), size=28, mean=(0.5,) * 3, std=(0.5,) * 3)


def blobs(count):
    """Smooth random pictures."""
    noise = torch.rand(count, 3, 7, 7, generator=torch.Generator().manual_seed(1))
    return torch.nn.functional.interpolate(noise, (28, 28), mode="bilinear").clamp(0, 1)


def same(a, b):
    if [m.cells for m in a.mses] != [m.cells for m in b.mses] or a.counts.counts != b.counts.counts:
        return False
    return (a.target, a.stopped, a.levels, a.questions) == (b.target, b.stopped, b.levels, b.questions)


def test_an_image_alone_and_among_others(net):
    images = blobs(101)
    together = find_evidence(net, images, baseline="black", images_at_once=16, max_size=6)
    assert [e.index for e in together] == list(range(101))
    assert {e.levels for e in together} >= {2, 3, 4, 5, 6}  # searches of different depth, side by side
    for i in (0, 17, 50, 100):
        assert same(find_evidence(net, images[i : i + 1], baseline="black", max_size=6)[0], together[i])


@pytest.mark.parametrize(("batch_size", "at_once"), [(1, 1), (7, 5), (64, 12), (512, 12)])
def test_batch_size_changes_nothing(net, batch_size, at_once):
    images = blobs(12)
    reference = find_evidence(net, images, baseline="black", max_size=8)
    other = find_evidence(net, images, baseline="black", max_size=8, batch_size=batch_size, images_at_once=at_once)
    assert all(same(a, b) for a, b in zip(reference, other, strict=True))


def test_the_search_equals_the_literal_twin_on_a_network(net):
    images = blobs(6)
    choices = Settings(baseline="black", max_size=6)
    found = find_evidence(net, images, baseline="black", max_size=6)
    for image, evidence in zip(images, found, strict=True):
        assert [frozenset(m.cells) for m in evidence.mses] == search_one_at_a_time(
            OneAtATime(net, image, choices), choices
        )


def constant(value):
    class Constant(torch.nn.Module):
        def forward(self, x):
            return torch.full((len(x), 3), value, device=x.device)

    return Classifier(Constant(), size=14, mean=(0,) * 3, std=(1,) * 3)


def test_a_constant_model_needs_nothing():
    evidence = find_evidence(constant(1.0), torch.rand(2, 3, 14, 14))[0]
    assert evidence.stopped == "nothing needed"
    assert [m.cells for m in evidence.mses] == [()]
    assert evidence.mses[0].ratio == 1
    assert evidence.formula() == "⊤"
    assert evidence.subexplanations() == {0.9: 0, 0.8: 0, 0.7: 0, 0.6: 0, 0.5: 0}


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_model_that_returns_nan_ends_at_once(value):
    evidence = find_evidence(constant(value), torch.rand(2, 3, 14, 14))
    assert [e.stopped for e in evidence] == ["no confidence"] * 2
    assert evidence[0].mses == ()
    assert evidence[0].formula() == "⊥"


def test_nan_on_some_masks_counts_as_not_enough():
    class Moody(torch.nn.Module):
        def forward(self, x):
            bright = x.mean(dim=(1, 2, 3))
            odd = torch.where(bright < 0.3, torch.nan, bright)
            return torch.stack([odd * 20, torch.zeros_like(odd)], dim=1)

    net = Classifier(Moody(), size=14, mean=(0,) * 3, std=(1,) * 3)
    evidence = find_evidence(net, torch.ones(1, 3, 14, 14), baseline="black", grid=2)[0]
    assert found_sets(evidence) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def test_zero_confidence_cannot_be_divided_by():
    class Sure(torch.nn.Module):
        def forward(self, x):
            return torch.tensor([[0.0, 1e5]]).expand(len(x), 2)

    net = Classifier(Sure(), size=14, mean=(0,) * 3, std=(1,) * 3)
    assert find_evidence(net, torch.rand(1, 3, 14, 14), targets=0)[0].stopped == "no confidence"


def test_a_grid_of_one_cell():
    oracle = AnyOf([(0,)], grid=1)
    evidence = search_oracle(oracle)
    assert [m.cells for m in evidence.mses] == [(0,)]
    assert evidence.stopped == "beam empty"


def test_a_grid_of_more_than_64_cells():
    oracle = AnyOf([(70, 3), (80,)], grid=9)
    evidence = find_evidence(
        oracle.classifier(18), oracle.image(18), targets=1, grid=9, baseline="black", beam_width=100, max_size=2
    )[0]
    assert found_sets(evidence) == [(3, 70), (80,)]


def test_what_stopped_the_search_is_recorded():
    oracle = AnyOf([(0, 1), (2, 3), (4, 5), (6, 7)], grid=3)
    assert search_oracle(oracle, beam_width=100, max_mses=1).stopped == "max_mses"
    assert search_oracle(oracle, beam_width=100, max_size=1).stopped == "max_size"
    assert search_oracle(oracle, beam_width=100, max_size=1).mses == ()
    assert search_oracle(oracle, beam_width=100).stopped == "beam empty"
    limited = search_oracle(oracle, beam_width=5, max_questions=30)
    assert limited.stopped == "max_questions"
    assert limited.questions <= 30


def test_strictness():
    oracle = WeightedSum({0: 9.0, 1: 1.0}, 0.0, 2, link="hard")
    assert search_oracle(oracle, threshold=1.0).mses  # ratio is exactly 1
    assert not search_oracle(oracle, threshold=1.0, strict=True).mses


def test_the_budget_of_certifying_is_flagged():
    oracle = AnyOf([tuple(range(8))], grid=3)
    assert all(m.certified for m in search_oracle(oracle, minimal="subset").mses)
    short = search_oracle(oracle, minimal="subset", subset_budget=50)
    assert [m.cells for m in short.mses] == [tuple(range(8))]
    assert not short.mses[0].certified


def test_targets_and_mistakes(net):
    images = blobs(3)
    found = find_evidence(net, images, targets=[0, 1, 2], baseline="black", max_size=1)
    assert [e.target for e in found] == [0, 1, 2]
    with pytest.raises(OptionError, match="2 targets were given for 3 images"):
        find_evidence(net, images, targets=[0, 1])
    with pytest.raises(OptionError, match="Ratios of logits"):
        find_evidence(net.replace(score="logit"), images)
    with pytest.raises(OptionError, match="no setting 'beam'"):
        find_evidence(net, images, beam=3)
    with pytest.raises(OptionError, match="no preset"):
        find_evidence(net, images, preset="cvpr")
    with pytest.raises(OptionError, match="search='magic'"):
        find_evidence(net, images, search="magic")


def test_broken_images_are_skipped_and_recorded(net, tmp_path):
    from torchvision.utils import save_image

    for i, image in enumerate(blobs(5)):
        save_image(image, tmp_path / f"{i}.png")
    (tmp_path / "2.png").write_bytes(b"broken")
    found = find_evidence(net, tmp_path, on_error="skip", images_at_once=2, baseline="black", max_size=2)
    assert [e.index for e in found] == [0, 1, 3, 4]
    assert [s.index for s in found.skipped] == [2]


def test_memory_does_not_grow_with_the_number_of_images(net):
    work = EvidenceStream(
        net, blobs(96), None, Settings(baseline="black", max_size=3), Forwarder(net, batch_size=64), images_at_once=8
    )
    held = []
    for _ in work:
        tensors = [t for t in gc.get_objects() if type(t) is torch.Tensor]
        held.append(sum(t.untyped_storage().nbytes() for t in tensors))
    assert len(held) == 96
    assert max(held[48:]) < 1.2 * max(held[:48])


@pytest.mark.parametrize("preset", ["cvpr2024", "preprint"])
def test_presets_search_by_a_seed_map_and_report_in_their_reading(net, preset):
    image = blobs(1)
    found = find_evidence(net, image, preset=preset, max_size=3)[0]
    assert found.settings == presets()[preset].changed(max_size=3)
    assert found.settings.search == "sag"
    assert found.subexplanations() == found.subexplanations(found.settings.counting)
    assert find_evidence(net, image, preset=preset, counting="tree", max_size=3)[0].settings.counting == "tree"
