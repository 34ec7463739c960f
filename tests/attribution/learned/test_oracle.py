"""On a classifier whose reason is known, a trained explainer finds it in images that it has not seen."""

import pytest

import suffice
from suffice.attribution.learned import ExplainerRecipe, train_explainer
from tests.attribution.learned.markers import marked_images, red_cell, small_trunk


@pytest.fixture(scope="module")
def trained():
    recipe = ExplainerRecipe(steps=120, batch=32, lr=0.02, mask_weight=3.0)
    return train_explainer(red_cell(), marked_images(300, seed=1)[0], recipe, trunk=small_trunk())


def found_cells(maps):
    return maps.flatten(1).argmax(dim=1)


def test_the_untrained_explainer_does_not_know(trained):
    fresh = train_explainer(red_cell(), marked_images(40, seed=1)[0], ExplainerRecipe(steps=1), trunk=small_trunk())
    images, cells = marked_images(100, seed=2)
    maps = suffice.attribute(red_cell(), images, "eea", explainer=fresh, mode="pretrained").maps
    assert (found_cells(maps) == cells).float().mean() < 0.5


@pytest.mark.parametrize("mode", ["pretrained", "fine-tuned"])
def test_points_at_the_red_cell(trained, mode):
    images, cells = marked_images(100, seed=2)
    maps = suffice.attribute(red_cell(), images, "eea", explainer=trained, mode=mode, steps=3).maps
    assert (found_cells(maps) == cells).float().mean() >= 0.95


def test_keeps_little_and_the_decision(trained):
    last = trained.history[-1]
    assert last.kept < 0.2
    assert last.confidence > 0.7
