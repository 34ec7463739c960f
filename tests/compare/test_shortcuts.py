"""Shortcuts that are planted are found, and honest models are not suspected."""

from functools import cache

import numpy as np
import pytest
import torch
from scipy import stats

from suffice import find_evidence, open_images
from suffice.compare.objects import objects_on_grid
from suffice.compare.shortcuts import find_shortcuts, judge_images, share_without
from suffice.errors import OptionError
from suffice.testing import AnyOf

SIZE, SIDE = 24, 3
MIDDLE = torch.tensor([[8.0, 8.0, 16.0, 16.0]])


@cache
def search(*sets):
    """What is enough for an oracle; it is asked once, as the same image has the same evidence every time."""
    oracle = AnyOf(sets, grid=SIDE)
    (found,) = find_evidence(
        oracle.classifier(SIZE), open_images(oracle.image(SIZE)[None]), targets=1, grid=SIDE, baseline="black"
    )
    return found


def evidence(sets, count, name):
    return [search(*sets)] * count, [name] * count


def world(shortcut):
    """Ducks and cats in the middle; ducks are decided by the corner as well, or not."""
    ducks, duck_labels = evidence([(4,), (8,)] if shortcut else [(4,)], 12, "duck")
    cats, cat_labels = evidence([(4,)], 12, "cat")
    odd, odd_labels = evidence([(4,), (0,)], 1, "cat")  # one cat is decided by something else, now and then
    covered = objects_on_grid([MIDDLE] * 25, (SIZE, SIZE), SIDE)
    return [*ducks, *cats, *odd], covered, [*duck_labels, *cat_labels, *odd_labels]


def test_a_planted_shortcut_is_found_with_class_and_place():
    ducks, cats = find_shortcuts(*world(shortcut=True))
    assert (ducks.label, ducks.suspected, ducks.share) == ("duck", True, 1.0)
    assert [place.cell for place in ducks.places] == [8]
    assert ducks.places[0].share == 1
    assert ducks.places[0].p < 1e-4
    assert ducks.on_object == pytest.approx(0.5)
    assert len(ducks.examples) == 12
    assert (cats.label, cats.suspected, cats.without) == ("cat", False, 1)
    assert cats.low < 1 / 13 < cats.high


def test_the_honest_twin_is_not_suspected():
    found = find_shortcuts(*world(shortcut=False))
    assert not any(one.suspected for one in found)
    assert [(one.label, one.without) for one in found] == [("cat", 1), ("duck", 0)]


def test_all_images_of_a_model_together():
    """Twelve ducks and an odd cat have one explanation of two beside the object; twelve cats have one, on it."""
    judged = judge_images(*world(shortcut=True))
    found = share_without(judged)
    assert (found.images, found.with_room, found.without, found.share) == (25, 25, 13, pytest.approx(13 / 25))
    assert found.on_object == pytest.approx((13 * 0.5 + 12 * 1) / 25)
    ends = stats.beta.ppf(0.025, 13, 13), stats.beta.ppf(0.975, 14, 12)  # as Clopper and Pearson have it
    assert (found.low, found.high) == pytest.approx(ends)
    assert [one.without for one in judged] == [((8,),)] * 12 + [()] * 12 + [((0,),)]
    assert share_without(judged, level=0.5).low > found.low
    honest = share_without(judge_images(*world(shortcut=False))[:-1])
    assert (honest.without, honest.low, honest.on_object) == (0, 0, 1)
    assert np.isnan(share_without([]).share)


def test_an_image_that_its_object_fills_cannot_be_decided_without_it():
    given, labels = evidence([(4,), (8,)], 2, "duck")
    covered = np.array([np.ones(9), np.eye(9)[4]])
    found = share_without(judge_images(given, covered, labels))
    assert (found.images, found.with_room, found.without) == (2, 1, 1)


def test_chance_is_not_suspected():
    random = np.random.default_rng(0)
    singles = {cell: evidence([(cell,)], 1, "x")[0][0] for cell in range(9)}
    wrong = 0
    for _ in range(1000):
        given = [singles[int(cell)] for cell in random.integers(0, 9, 40)]
        covered = np.zeros((40, 9))
        covered[:, 4] = 1
        found = find_shortcuts(given, covered, random.integers(0, 4, 40).tolist(), least=0.0)
        wrong += any(one.suspected for one in found)
    assert stats.binomtest(wrong, 1000, 0.05, "greater").pvalue > 0.001


def test_images_without_known_objects_are_not_judged():
    given, covered, labels = world(shortcut=True)
    covered[:3] = np.nan
    assert find_shortcuts(given, covered, labels)[0].images == 9


def test_a_cell_that_the_object_hardly_touches_lies_outside():
    given, labels = evidence([(8,)], 3, "duck")
    covered = np.zeros((3, 9))
    covered[:, 4], covered[:, 8] = 1, 0.04
    assert find_shortcuts(given, covered, labels)[0].without == 3
    assert find_shortcuts(given, covered, labels, touch=0.01)[0].without == 0


def test_what_does_not_fit_is_said():
    given, covered, labels = world(shortcut=True)
    with pytest.raises(OptionError, match=r"\[25, cells\]"):
        find_shortcuts(given, covered[:3], labels)
    with pytest.raises(OptionError, match="2 classes were given for 25 images"):
        find_shortcuts(given, covered, labels[:2])
