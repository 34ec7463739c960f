"""Learned Shapley values: against exact ones on a classifier that is cheap to ask about every set of cells."""

from dataclasses import replace

import pytest
import torch
from scipy.stats import spearmanr
from torch import nn

import suffice
from suffice.attribution.learned import ExplainerRecipe, save_explainer, train_explainer
from suffice.attribution.learned.images import short_id
from suffice.attribution.learned.shapley import ShapleyExplainer, ShapleyRecipe, additive, kernel_sets
from suffice.attribution.learned.shapley_files import load_shapley, save_shapley
from suffice.attribution.learned.shapley_training import show, train_shapley
from suffice.errors import CheckpointError, OptionError
from suffice.vision import Classifier
from suffice.vision.identity import content_hash
from tests.attribution.learned.test_kept import levit
from tests.attribution.nets import pictures

CELL, GRID = 4, 3
SIZE = CELL * GRID


class RedSum(nn.Module):
    """The more red there is in all cells, the surer of class 1; two red cells side by side say less than two."""

    def __init__(self):
        super().__init__()
        self.register_buffer("slope", torch.tensor(1.5))

    def forward(self, x):
        red = nn.functional.avg_pool2d(x[:, :1] - x[:, 1:].mean(dim=1, keepdim=True), CELL).relu()
        beside = (red[..., 1:] * red[..., :-1]).sum(dim=(1, 2, 3))
        odds = self.slope * (red.sum(dim=(1, 2, 3)) - 0.5 * beside - 2)
        return torch.stack([torch.zeros_like(odds), odds], dim=1)


def red_sum():
    return Classifier(RedSum().eval(), size=SIZE, mean=(0.0,) * 3, std=(1.0,) * 3, name="red-sum")


def trunk():
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv2d(3, 24, CELL, stride=CELL), nn.ReLU(), nn.Conv2d(24, 24, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 2),
    )  # fmt: skip
    return Classifier(module, size=SIZE, mean=(0.5,) * 3, std=(0.5,) * 3, name="trunk")


def reddish(count, seed):
    red = torch.rand(count, 1, GRID, GRID, generator=torch.Generator().manual_seed(seed))
    pixels = torch.cat([red, torch.zeros(count, 2, GRID, GRID)], dim=1)
    return nn.functional.interpolate(pixels, SIZE, mode="nearest")


@pytest.fixture(scope="module")
def learned():
    recipe = ShapleyRecipe(surrogate_steps=0, steps=150, batch=24, sets=8, lr=0.01, baseline="black")
    return train_shapley(red_sum(), reddish(300, seed=1), recipe, trunk=trunk())


def test_agrees_with_exact_values_on_images_it_has_not_seen(learned):
    images = reddish(40, seed=2)
    found = suffice.attribute(red_sum(), images, "vit-shapley", targets=1, explainer=learned).maps
    exact = suffice.attribute(
        red_sum(), images, "kernel-shap", targets=1, grid=GRID, samples=510, baseline="black"
    ).maps
    ranks = [spearmanr(a.flatten(), b.flatten()).statistic for a, b in zip(found, exact, strict=True)]
    assert sum(ranks) / len(ranks) >= 0.9
    assert torch.allclose(found.sum(dim=(1, 2)), exact.sum(dim=(1, 2)), atol=1e-4)


def test_values_tell_the_scores_of_sets_of_images_held_out(learned):
    assert learned.validation["explained"] > 0.5  # 0: no better than the size of the set
    assert learned.losses[-1] < learned.losses[0]


def test_classes_share_what_they_gain_by():
    explainer = ShapleyExplainer(trunk(), classes=2)
    nn.init.ones_(explainer.head[-1].weight[-1:])
    images = reddish(2, seed=1)
    with torch.no_grad():
        once, twice = (explainer(images, torch.tensor([[1.0, -2.0]]) * gain) for gain in (1, 2))
    assert once.abs().max() > 0.01
    assert torch.allclose(once[:, 1], -2 * once[:, 0], atol=1e-5)
    assert torch.allclose(twice, 2 * once, atol=1e-5)


def test_sizes_of_sets_follow_the_kernel():
    cells = 6
    sets = kernel_sets(20_000, cells, torch.Generator().manual_seed(0))
    share = torch.bincount(sets.sum(dim=1), minlength=cells + 1)[1:cells].double() / len(sets)
    sizes = torch.arange(1, cells, dtype=torch.float64)
    wanted = 1 / (sizes * (cells - sizes))
    assert torch.allclose(share, wanted / wanted.sum(), atol=0.01)


def test_values_add_up():
    values, gain = torch.rand(2, 3, 4, 4), torch.rand(2, 3)
    shifted = additive(values, gain)
    assert torch.allclose(shifted.sum(dim=(2, 3)), gain, atol=1e-5)
    moved = shifted - values
    assert torch.allclose(moved, moved[:, :, :1, :1].expand_as(moved), atol=1e-5)


def test_files(learned, tmp_path):
    path, images = tmp_path / "shapley.safetensors", reddish(3, seed=4)
    save_shapley(learned, path)
    again = load_shapley(path, red_sum(), trunk=trunk())
    assert torch.allclose(again.values(images), learned.values(images), atol=5e-3)
    assert repr(learned) != repr(again)  # their weights were rounded
    assert len(repr(again)) < 200
    other = red_sum()
    other.module.slope.fill_(1.0)
    with pytest.raises(CheckpointError, match="other weights"):
        load_shapley(path, other, trunk=trunk())


def own_trunk(seed):
    """Learned values whose trunk is the classifier's own, so that the file alone will do."""
    recipe = ShapleyRecipe(surrogate_steps=0, steps=2, batch=4, sets=2, seed=seed)
    return train_shapley(trunk(), reddish(40, seed=1), recipe)


def test_a_folder_has_the_values_of_a_model(tmp_path):
    net, images = trunk(), reddish(2, seed=4)
    (tmp_path / "notes.safetensors").write_bytes(b"something else")
    with pytest.raises(OptionError, match="has no explainer of it; `suffice train shapley --model trunk"):
        suffice.attribute(net, images, "vit-shapley", explainer=tmp_path)
    save_shapley(own_trunk(seed=0), tmp_path / "mine.safetensors")
    found = suffice.attribute(net, images, "vit-shapley", explainer=tmp_path)
    assert torch.equal(
        found.maps, suffice.attribute(net, images, "vit-shapley", explainer=tmp_path / "mine.safetensors").maps
    )
    content = (tmp_path / "mine.safetensors").read_bytes()
    assert found.about["settings"]["learned"] == {"file": "mine.safetensors", "hash": content_hash(content)}
    save_shapley(own_trunk(seed=1), tmp_path / "another.safetensors")
    with pytest.raises(OptionError, match=r"2 explainers of trunk, another\.safetensors, mine\.safetensors, and none"):
        suffice.attribute(net, images, "vit-shapley", explainer=tmp_path)
    save_shapley(own_trunk(seed=1), tmp_path / "trunk-shapley.safetensors")
    found = suffice.attribute(net, images, "vit-shapley", explainer=str(tmp_path))
    assert found.about["settings"]["learned"]["file"] == "trunk-shapley.safetensors"


def test_explainers_of_another_kind_in_the_folder_do_not_count(tmp_path):
    made = train_explainer(trunk(), reddish(40, seed=1), ExplainerRecipe(steps=1, batch=4))
    save_explainer(made, tmp_path / "trunk.safetensors")
    save_shapley(own_trunk(seed=0), tmp_path / "trunk-shapley.safetensors")
    for method, file in (("eea", "trunk.safetensors"), ("vit-shapley", "trunk-shapley.safetensors")):
        found = suffice.attribute(trunk(), reddish(1, seed=4), method, explainer=tmp_path)
        assert found.settings["learned"]["file"] == file
    with pytest.raises(CheckpointError, match="is no explainer that `suffice train shapley` wrote"):
        suffice.attribute(trunk(), reddish(1, seed=4), "vit-shapley", explainer=tmp_path / "trunk.safetensors")


def test_cells_may_be_larger_than_positions(tmp_path):
    recipe = ShapleyRecipe(surrogate_steps=0, steps=2, batch=4, sets=2, lr=0.01, grid=2)
    learned = train_shapley(red_sum(), reddish(40, seed=1), recipe, trunk=trunk())
    images, path = reddish(3, seed=2), tmp_path / "shapley.safetensors"
    values = learned.values(images)
    assert values.shape == (3, 2, 2, 2)
    gain = red_sum()(images) - red_sum()(torch.full_like(images, 0.5))
    assert torch.allclose(values.sum(dim=(2, 3)), gain, atol=1e-4)
    save_shapley(learned, path)
    assert torch.allclose(load_shapley(path, red_sum(), trunk=trunk()).values(images), values, atol=5e-3)


def test_cells_cannot_be_smaller_than_positions():
    with pytest.raises(OptionError, match="grid=4; the last layer of trunk has 3×3 positions"):
        train_shapley(red_sum(), reddish(40, seed=1), ShapleyRecipe(grid=4), trunk=trunk())
    with pytest.raises(OptionError, match="small-levit has one position"):
        train_shapley(levit(32), pictures(30))


def test_the_value_of_a_larger_cell_is_the_mean_of_its_positions():
    fine, coarse = (ShapleyExplainer(small_cells(), 2, grid=grid) for grid in (None, 3))
    for explainer in (fine, coarse):
        nn.init.ones_(explainer.head[-1].weight)
    images, gain = reddish(2, seed=1), torch.tensor([[1.0, -2.0], [0.5, 0.5]])
    with torch.no_grad():
        positions, cells = fine(images, gain), coarse(images, gain)
    assert positions.shape == (2, 2, 2 * GRID, 2 * GRID)
    assert torch.allclose(cells, nn.functional.avg_pool2d(positions, 2), atol=1e-5)
    assert cells.std() > 0.01


def small_cells():
    """A trunk with four positions to each cell."""
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv2d(3, 8, CELL // 2, stride=CELL // 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2)
    )
    return Classifier(module, size=SIZE, mean=(0.5,) * 3, std=(0.5,) * 3, name="small-cells")


def test_learns_from_altered_images(learned):
    altered = train_shapley(red_sum(), reddish(300, seed=1), replace(learned.recipe, alters=True), trunk=trunk())
    assert altered.losses[0] != pytest.approx(learned.losses[0])
    assert altered.validation["explained"] > 0.5  # of images held out, as they are


def test_in_bf16_weights_stay_as_they_are_and_are_learned_as_well(learned):
    rough = train_shapley(red_sum(), reddish(300, seed=1), learned.recipe, trunk=trunk(), precision="bf16")
    assert all(value.dtype == torch.float32 for value in rough.explainer.parameters())
    assert rough.validation["explained"] == pytest.approx(learned.validation["explained"], abs=0.1)


def test_a_surrogate_is_trained_in_bf16_where_that_is_asked_for():
    recipe = ShapleyRecipe(surrogate_steps=3, steps=1, batch=4, sets=2, baseline="black")
    exact, rough = (train_shapley(trunk(), reddish(40, seed=1), recipe, precision=how) for how in ("fp32", "bf16"))
    pairs = list(zip(exact.surrogate.module.parameters(), rough.surrogate.module.parameters(), strict=True))
    assert all(one.dtype == other.dtype == torch.float32 for one, other in pairs)
    assert not all(torch.equal(*pair) for pair in pairs)


def test_without_an_explainer_the_way_to_one_is_named():
    with pytest.raises(OptionError, match="train_shapley"):
        suffice.attribute(red_sum(), reddish(1, seed=1), "vit-shapley")


def test_a_surrogate_comes_nearer_to_the_whole_image():
    """What it says of images with hidden cells is nearer to what the classifier says of whole ones."""
    torch.manual_seed(1)
    module = nn.Sequential(nn.Conv2d(3, 16, CELL, stride=CELL), nn.ReLU(), nn.Flatten(), nn.Linear(16 * GRID**2, 3))
    net = Classifier(module.eval(), size=SIZE, mean=(0.5,) * 3, std=(0.1,) * 3, name="small")
    recipe = ShapleyRecipe(surrogate_steps=60, steps=1, batch=32, sets=2, surrogate_lr=0.01)
    learned = train_shapley(net, reddish(200, seed=1), recipe, trunk=trunk())
    images = reddish(50, seed=2)
    shown = torch.rand(50, GRID**2, generator=torch.Generator().manual_seed(0)) < 0.5
    masked = show(images, shown, (GRID, GRID), "gray", net)
    with torch.no_grad():
        before, after = ((judge(masked) - net(images)).abs().mean() for judge in (net, learned.surrogate))
    assert after < 0.9 * before


def test_tells_how_it_goes_and_leaves_out_what_is_evaluated_later():
    images, rows = reddish(60, seed=3), []
    recipe = ShapleyRecipe(surrogate_steps=0, steps=20, batch=4, sets=4, lr=0.01, baseline="black")
    learned = train_shapley(red_sum(), images, recipe, trunk=trunk(), never=images[:20], on_progress=rows.append)
    assert [row.step for row in rows] == list(range(2, 21, 2))
    assert learned.validation["surrogate"] is None
    assert learned.validation["explained"] == rows[-1].explained
    seen = {short_id(one) for one in suffice.open_images(images[:20]).ids}
    assert seen.isdisjoint(learned.ids.tolist())
    assert len(learned.ids) > 25


def test_all_cells_are_alike_in_the_beginning():
    """Random values of many cells would add up to sums far from any score."""
    values = ShapleyExplainer(trunk(), classes=2)(reddish(2, seed=1), torch.ones(2, 2))
    assert values.shape == (2, 2, GRID, GRID)
    assert not values.any()


def test_a_training_that_diverges_says_so():
    recipe = ShapleyRecipe(surrogate_steps=0, steps=10, batch=4, sets=2, lr=1e30, baseline="black")
    with pytest.raises(OptionError, match="lower learning rate"):
        train_shapley(red_sum(), reddish(40, seed=1), recipe, trunk=trunk())


@pytest.mark.parametrize(("part", "step"), [("surrogate", 4), ("explainer", 3), ("explainer", 6)])
def test_resuming_ends_with_the_same_weights(part, step, tmp_path):
    class Stop(Exception):
        pass

    def stop(row):
        if (row.part, row.step) == (part, step):
            raise Stop

    recipe = ShapleyRecipe(surrogate_steps=6, steps=8, batch=4, sets=2, baseline="black", alters=step == 6)
    how = {"checkpoint": tmp_path / "last.pt", "checkpoint_every": 2}
    net, images = trunk(), reddish(40, seed=6)
    with pytest.raises(Stop):
        train_shapley(net, images, recipe, **how, on_progress=stop)
    with pytest.raises(CheckpointError, match="steps: 8 and 9"):
        train_shapley(net, images, replace(recipe, steps=9), **how, resume=True)
    resumed = train_shapley(net, images, recipe, **how, resume=True)
    whole = train_shapley(net, images, recipe)
    for one, other in ((resumed.surrogate.module, whole.surrogate.module), (resumed.explainer, whole.explainer)):
        for name, value in one.state_dict().items():
            assert torch.equal(value, other.state_dict()[name]), name
    assert resumed.losses == whole.losses
    assert resumed.validation == whole.validation
