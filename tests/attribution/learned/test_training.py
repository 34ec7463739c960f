"""Explainers: what is trained, how it goes on after an interruption, and what their files say."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest
import torch

import suffice
from suffice.attribution.learned import (
    Explainer,
    ExplainerRecipe,
    LoadedExplainer,
    load_explainer,
    open_explainer_images,
    read_explainer_facts,
    save_explainer,
    train_explainer,
)
from suffice.attribution.learned.objective import Objective, penalty
from suffice.errors import CheckpointError, OptionError, SufficeWarning
from suffice.perturb import Runner
from suffice.vision.identity import weights_hash
from tests.attribution.learned.markers import SIZE, marked_images, red_cell, small_trunk
from tests.attribution.nets import pictures, small_cnn
from tests.attribution.trained import trained as zoo

RECIPE = ExplainerRecipe(steps=6, batch=8, lr=0.01, seed=3)


@pytest.fixture(scope="module")
def images():
    return marked_images(60, seed=5)[0]


@pytest.fixture(scope="module")
def trained(images):
    return train_explainer(red_cell(), images, RECIPE, trunk=small_trunk())


def state(trained):
    return torch.cat([value.flatten() for value in trained.explainer.state_dict().values()])


def test_the_rate_reaches_its_peak_and_falls():
    rates = [RECIPE.learning_rate(step, 100) for step in range(100)]
    assert max(rates) == pytest.approx(RECIPE.lr)
    assert rates.index(max(rates)) in (19, 20)
    assert rates[-1] < 0.05 * RECIPE.lr
    assert all(later < earlier for earlier, later in pairwise(rates[20:]))


def test_resuming_ends_with_the_same_weights(images, trained, tmp_path):
    class Stop(Exception):
        pass

    def stop(row):
        if row.step == 4:
            raise Stop

    how = {"trunk": small_trunk(), "checkpoint": tmp_path / "last.pt"}
    with pytest.raises(Stop):
        train_explainer(red_cell(), images, RECIPE, checkpoint_every=3, on_progress=stop, **how)
    resumed = train_explainer(red_cell(), images, RECIPE, resume=True, **how)
    assert torch.equal(state(resumed), state(trained))
    assert [row.step for row in resumed.history] == [row.step for row in trained.history]


def test_altered_images_are_the_same_for_every_way_to_run(images, tmp_path):
    from suffice.testing.snapshots import out_of_memory_above

    recipe = replace(RECIPE, alters=True)
    whole = train_explainer(red_cell(), images, recipe, trunk=small_trunk())
    assert not torch.allclose(state(whole), state(train_explainer(red_cell(), images, RECIPE, trunk=small_trunk())))
    net = red_cell()
    with out_of_memory_above(net.module, 3), pytest.warns(SufficeWarning, match="Out of memory"):
        limited = train_explainer(net, images, recipe, trunk=small_trunk())
    assert torch.allclose(state(limited), state(whole), atol=1e-4)
    assert ExplainerRecipe.from_json(recipe.to_json()).alters


def test_another_run_is_not_resumed(images, tmp_path):
    how = {"trunk": small_trunk(), "checkpoint": tmp_path / "last.pt"}
    train_explainer(red_cell(), images, RECIPE, checkpoint_every=3, **how)
    with pytest.raises(CheckpointError, match=r"lr: 0\.01 and 0\.5"):
        train_explainer(red_cell(), images, ExplainerRecipe(steps=6, batch=8, lr=0.5, seed=3), resume=True, **how)
    with pytest.raises(CheckpointError, match="other images"):
        train_explainer(red_cell(), marked_images(60, seed=6)[0], RECIPE, resume=True, **how)


def test_where_memory_is_short_the_same_is_learned(images, trained):
    from suffice.testing.snapshots import out_of_memory_above

    net = red_cell()
    with out_of_memory_above(net.module, 3), pytest.warns(SufficeWarning, match="Out of memory"):
        limited = train_explainer(net, images, RECIPE, trunk=small_trunk())
    assert torch.allclose(state(limited), state(trained), atol=1e-4)


def test_the_explained_model_is_left_alone(images):
    net = small_cnn()
    before = weights_hash(net.module)
    train_explainer(net, pictures(30), ExplainerRecipe(steps=1, batch=4))
    assert weights_hash(net.module) == before
    assert all(parameter.requires_grad and parameter.grad is None for parameter in net.module.parameters())


def test_held_out_images_depend_on_content_alone(images):
    runner = Runner(red_cell())
    whole, half = (open_explainer_images(runner, some) for some in (images, images[20:]))
    assert torch.equal(whole.held_out[20:], half.held_out)
    assert set(whole.ids[whole.train].tolist()).isdisjoint(whole.ids[whole.validation].tolist())


def test_what_is_evaluated_later_is_never_trained_on(images):
    found = open_explainer_images(Runner(red_cell()), images, never=images[:20])
    assert len(found.pixels) == 40
    assert found.left_out == 20
    assert set(found.ids.tolist()) <= set(open_explainer_images(Runner(red_cell()), images[20:]).ids.tolist())


def test_labels_are_asked_for(images):
    with pytest.raises(OptionError, match="has no label"):
        open_explainer_images(Runner(red_cell()), images, explains="label")
    labeled = suffice.open_images(images, labels=[1] * len(images))
    prepared = open_explainer_images(Runner(red_cell()), labeled, explains="label")
    assert (prepared.targets == 1).all()
    with pytest.raises(OptionError, match="prepared with explains='label', the recipe has 'predicted'"):
        train_explainer(red_cell(), prepared, RECIPE, trunk=small_trunk())


def test_images_that_were_trained_on_are_warned_about(images, trained):
    with pytest.warns(SufficeWarning, match="trained on"):
        suffice.attribute(red_cell(), images[:10], "eea", explainer=trained, mode="pretrained")


def test_files_say_what_they_depend_on(trained, tmp_path):
    path, net = tmp_path / "explainer.safetensors", red_cell()
    save_explainer(trained, path)
    facts = read_explainer_facts(path)
    assert facts["explained"] == {"name": "red-cell", "weights": weights_hash(net.module), "size": [SIZE, SIZE]}
    assert facts["recipe"]["mask_weight"] == RECIPE.mask_weight
    assert facts["images"]["trained on"] == len(trained.ids)
    read = load_explainer(path, net, trunk=small_trunk())
    pixels = marked_images(3, seed=9)[0]
    assert torch.allclose(read.explainer(pixels), trained.explainer(pixels), atol=2e-3)
    assert read.seen == frozenset(trained.ids.tolist())


def test_an_explainer_of_another_model_is_refused(trained, tmp_path):
    path = tmp_path / "explainer.safetensors"
    save_explainer(trained, path)
    other = red_cell()
    other.module.slope.fill_(3.0)
    with pytest.raises(CheckpointError, match="suffice train explainer --model red-cell"):
        load_explainer(path, other, trunk=small_trunk())
    assert load_explainer(path, other, trunk=small_trunk(), any_weights=True).explainer.grid == (6, 6)
    with pytest.raises(CheckpointError, match="no explainer"):
        read_explainer_facts(tmp_path / "missing.safetensors")


@pytest.mark.parametrize(("explained", "trunk", "grid"), [("deit", "resnet", (7, 7)), ("resnet", "deit", (14, 14))])
def test_architectures_mix(explained, trunk, grid, tmp_path):
    net = zoo(explained)
    made = train_explainer(net, "scenes:train[:40]", ExplainerRecipe(steps=1, batch=4), trunk=zoo(trunk))
    save_explainer(made, tmp_path / "mixed.safetensors")
    maps = suffice.attribute(net, "scenes:test[:2]", "eea", explainer=tmp_path / "mixed.safetensors", steps=1).maps
    assert maps.shape == (2, *grid)


def test_embeddings_stay_and_only_what_masks_need_is_kept():
    explainer = Explainer(zoo("deit"))
    trained = {id(p) for p in explainer.trained_parameters()}
    learned = {name for name, p in explainer.named_parameters() if id(p) in trained}
    assert not any("embed" in name or "cls_token" in name for name in learned)
    assert {"trunk.module.blocks.0.attn.qkv.weight", "trunk.module.norm.weight", "head.0.weight"} <= learned
    assert not any(".head." in name for name in explainer.needed_weights())


def test_penalties():
    masks = torch.tensor([[[0.0, 0.5], [0.25, 0.75]]], dtype=torch.float64)
    zero = torch.zeros_like(masks)
    paper = torch.nn.functional.binary_cross_entropy(masks, zero)
    code = torch.nn.functional.binary_cross_entropy_with_logits(masks, zero)
    assert float(penalty(masks, "bce")) == pytest.approx(float(paper))
    assert float(penalty(masks, "bce-of-logit")) == pytest.approx(float(code))
    assert float(penalty(masks, "l1")) == pytest.approx(0.375)


def test_loss_is_that_of_the_paper():
    net, pixels = small_cnn(), pictures(2)
    masks, targets = torch.rand(2, 4, 4), torch.tensor([1, 3])
    found = Objective(7.0)(Runner(net).variant("gradients"), pixels, targets, masks)
    enlarged = torch.nn.functional.interpolate(masks[:, None], 32, mode="bilinear", align_corners=False)
    wanted = torch.nn.functional.cross_entropy(net.logits(net.normalize(pixels * enlarged)), targets, reduction="none")
    assert torch.allclose(found.prediction, wanted, atol=1e-4)
    assert torch.allclose(found.total, wanted - 7 * (1 - masks).log().mean(dim=(1, 2)), atol=1e-4)


def test_a_trained_explainer_can_be_given_as_it_is(trained):
    pixels = marked_images(2, seed=9)[0]
    ways = (trained, LoadedExplainer.of(trained))
    one, other = (suffice.attribute(red_cell(), pixels, "eea", explainer=way, steps=2).maps for way in ways)
    assert torch.equal(one, other)


@pytest.mark.parametrize("given", [lambda trained: trained, LoadedExplainer.of])
def test_records_name_the_explainer_that_was_given(trained, given):
    pixels, explainer = marked_images(1, seed=9)[0], given(trained)
    about = suffice.attribute(red_cell(), pixels, "eea", explainer=explainer, steps=1).to_arrow().schema.metadata
    said = json.loads(about[b"settings"])["options"]["explainer"]
    assert said == f"{type(explainer).__name__}(of 'red-cell', weights='{weights_hash(trained.explainer)}')"
