import itertools
import math

import pytest

from suffice.errors import OptionError
from suffice.zoo.training import Recipe, recipe_for


def test_the_learning_rate_rises_and_falls():
    recipe = Recipe(lr=0.4, warmup=0.1, final_lr=0.25)
    rates = [recipe.learning_rate(step, 111) for step in range(111)]  # 11 steps up, 100 down
    assert rates[0] == pytest.approx(0.4 / 11)
    assert rates[10] == pytest.approx(0.4)
    assert rates[11] == pytest.approx(0.4)
    assert rates[-1] == pytest.approx(0.1)
    assert rates[44] == pytest.approx(0.1 + 0.3 * (1 + math.cos(math.pi / 3)) / 2)  # a third of the way
    assert all(b <= a for a, b in itertools.pairwise(rates[11:]))


@pytest.mark.parametrize("total", [1, 2, 7])
def test_short_runs_have_finite_rates(total):
    rates = [Recipe().learning_rate(step, total) for step in range(total)]
    assert all(0 < rate <= Recipe().lr for rate in rates)


def test_json_there_and_back():
    recipe = Recipe(steps=5, ema=0.99, teacher="resnet", clip=None)
    assert Recipe.from_json(recipe.to_json()) == recipe
    assert recipe.differences(Recipe(steps=6, ema=0.99, teacher="resnet", clip=None)) == ["steps: 5 and 6"]


def test_seeds_differ_by_use_step_and_seed():
    seeds = {Recipe(seed=s).seed_of(what, n) for s in (0, 1) for what in ("step", "epoch") for n in (0, 1)}
    assert len(seeds) == 8
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_defaults_by_kind_of_image_and_network():
    assert recipe_for() == Recipe()
    assert not recipe_for(augmented=True).flip  # mirroring is never for scenes
    assert recipe_for(augmented=True).mixup > 0
    assert recipe_for(augmented=True, mixup=0.0).mixup == 0
    assert recipe_for(photographs=True).crop > 0
    by_heart = recipe_for(photographs=True, augmented=True, permute_labels=True)
    assert (by_heart.mixup, by_heart.erase, by_heart.smoothing, by_heart.crop) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("batch", 0, "from 1 on"),
        ("steps", 0, "from 1 on"),
        ("lr", 0.0, "above 0"),
        ("lr", float("nan"), "above 0"),
        ("mixup", -1.0, "from 0 on"),
        ("erase", 1.5, "from 0 to 1"),
        ("smoothing", 1.0, "below 1"),
        ("ema", 1.0, "below 1"),
        ("distillation", "firm", "'hard' or 'soft'"),
        ("precision", "fp8", "'bf16'"),
    ],
)
def test_values_that_make_no_sense(field, value, expected):
    with pytest.raises(OptionError, match=f"{field}=.*{expected}"):
        Recipe(**{field: value})
