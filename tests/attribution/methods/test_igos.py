"""I-GOS, iGOS+ and iGOS++ as methods: as their formulas say, step by step; on planted objects; many as one."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from suffice.attribution import attribute, explain, find_method
from suffice.errors import OptionError
from suffice.perturb import Batch, Runner
from suffice.testing import CHECKS, AnyOf, WeightedSum
from suffice.vision import Classifier, open_images
from suffice.vision.identity import image_seed
from suffice.vision.noise import normal_noise
from tests.attribution.igos.twin import IMAGENET_STD, sure_cnn, twin_of
from tests.attribution.nets import MEAN, STD, pictures

NAMES = ["i-gos", "igos+", "igos++"]
STEP = {"i-gos": 200.0, "igos+": 1000.0, "igos++": 1000.0}
MILD = {"l1": 0.05, "l2": 0.2}  # penalties under which large parts of the pictures are deleted
QUICK = {"size": 6, "steps": 3, **MILD}
SHORT = {**QUICK, "iterations": 2}
ITERATIONS = 4


def found_by(name, net, images, iterations=ITERATIONS, **options):
    return attribute(net, images, name, iterations=iterations, **{**QUICK, **options}).maps


def own_noise(images, index, calls, steps, deviations=(0.2, 0.2, 0.2), seed=8):
    """The noise of one picture in the model's inputs, by iteration, integrated score and step."""
    own = torch.tensor(deviations).view(3, 1, 1) * IMAGENET_STD / torch.tensor(STD).view(3, 1, 1)
    key = torch.tensor([image_seed(seed, open_images(images).ids[index])])

    def noise(iteration, call, k):
        draw = torch.tensor([(iteration * calls + call) * steps + k - 1])
        return own * normal_noise(key, draw, (3, 32, 32))[0].double()

    return noise


@pytest.mark.parametrize(("optimizer", "step"), [("line-search", None), ("nag", 5.0)])
@pytest.mark.parametrize("name", NAMES)
def test_masks_follow_the_formulas_step_by_step(name, optimizer, step):
    net, images = sure_cnn(torch.float64), pictures(2)
    step = step or STEP[name]
    expected = [twin_of(name, net, images, i, **QUICK).run(ITERATIONS, step, optimizer)[0] for i in range(2)]
    for done in range(ITERATIONS):
        maps = found_by(name, net, images, done + 1, noise=0, optimizer=optimizer, step_size=step)
        wanted = torch.stack([masks[done] for masks in expected]).float()
        torch.testing.assert_close(maps, wanted, atol=1e-6, rtol=0)
    for masks in expected:  # there was something to follow
        assert float(masks[0].max()) > 0.02
        assert float((masks[-1] - masks[0]).abs().max()) > 0.02


@pytest.mark.parametrize("name", NAMES)
def test_a_step_that_does_not_pay_is_not_the_last(name):
    """The last, small step is taken anyway, so the next gradient is another one, also without noise."""
    net, images = sure_cnn(torch.float64), pictures(2)
    options = {"l1": 0.3, "l2": 1.0, "step_size": 1e4}
    without, hardly = (found_by(name, net, images, 12, noise=noise, **options) for noise in (0.0, 1e-13))
    torch.testing.assert_close(without, hardly, atol=1e-6, rtol=0)


@pytest.mark.parametrize(("name", "calls"), [("i-gos", 1), ("igos+", 2), ("igos++", 4)])
def test_masks_follow_the_formulas_with_noise_that_stays_within_an_iteration(name, calls):
    net, images = sure_cnn(torch.float64), pictures(2)
    maps = attribute(net, images, name, seed=8, iterations=3, **QUICK).maps
    for index in range(2):
        noise = own_noise(images, index, calls, QUICK["steps"])
        expected = twin_of(name, net, images, index, noise, **QUICK).run(3, STEP[name])[0][-1]
        torch.testing.assert_close(maps[index], expected.float(), atol=1e-6, rtol=0)
        quiet = twin_of(name, net, images, index, **QUICK).run(3, STEP[name])[0][-1]
        assert float((expected - quiet).abs().max()) > 1e-3  # the noise matters


@pytest.mark.parametrize("deviations", [(0.2, 0.2, 0.2), (0.4, 0.0, 0.0)])
def test_the_short_run_of_structured_attention_graphs(deviations):
    net, images = sure_cnn(torch.float64), pictures(2)
    options = {"size": 7, "steps": 20, "l1": 0.2, "l2": 1.0}  # weaker penalties, under which something pays
    maps = attribute(net, images, "i-gos", seed=8, iterations=2, noise=deviations, **options).maps
    for index in range(2):
        noise = own_noise(images, index, 1, 20, deviations)
        expected = twin_of("i-gos", net, images, index, noise, **options).run(2, 200.0)[0][-1]
        torch.testing.assert_close(maps[index], expected.float(), atol=1e-6, rtol=1e-3)
        assert float(expected.max()) > 1e-3


@pytest.mark.parametrize("size", [7, 14])
def test_single_precision_follows_them_too(size):
    net, images = sure_cnn(), pictures(2)
    options = {"size": size, "steps": 4, **MILD}
    maps = attribute(net, images, "i-gos", iterations=3, noise=0, **options).maps
    for index in range(2):
        expected = twin_of("i-gos", net, images, index, **options).run(3, 200.0)[0][-1]
        torch.testing.assert_close(maps[index], expected.float(), atol=1e-4, rtol=0)


def test_the_readings_of_edges_differ():
    net, images = sure_cnn(), 0.45 + 0.1 * pictures(2)  # of low contrast: not every pair of pixels is an edge
    maps = [found_by("igos++", net, images, btv=btv, l2=2.0, noise=0) for btv in ("gray", "channels", "asymmetric")]
    assert all(float((a - b).abs().max()) > 1e-5 for a, b in zip(maps, maps[1:] + maps[:1], strict=True))


# Steps multiply gradients by up to 1000, and with them their rounding, but masks are clipped and this network is
# smooth: after two iterations the checks' own 1e-5 holds. Over many, a step that just pays in one batch may just not
# pay in another. Of Nesterov's method, whose steps nothing shortens, they must not be too long.
@pytest.mark.parametrize("optimizer", ["line-search", "nag"])
@pytest.mark.parametrize("check", ["batch_invariance", "order", "memory"])
@pytest.mark.parametrize("name", NAMES)
def test_batches_change_nothing_with_mild_penalties(name, check, optimizer):
    options = {"optimizer": optimizer, "step_size": 20.0 if optimizer == "nag" else STEP[name]}
    CHECKS[check](lambda net, images: found_by(name, net, images, 2, **options), sure_cnn(), pictures(3))


@pytest.mark.parametrize("batch_size", [1, 7])
@pytest.mark.parametrize("name", NAMES)
def test_the_batch_size_changes_nothing(name, batch_size):
    net, images = sure_cnn(), pictures(3)
    together = found_by(name, net, images)
    torch.testing.assert_close(found_by(name, net, images, batch_size=batch_size), together, atol=1e-5, rtol=0)


@pytest.mark.parametrize("search_loss", ["integrated", "plain"])
@pytest.mark.parametrize("name", NAMES)
def test_masks_peak_on_what_the_model_looks_at(name, search_loss):
    for cells in ((24,), (0, 1, 7, 8), (16, 40), (44, 45, 46)):
        oracle = WeightedSum(dict.fromkeys(cells, 1.0), threshold=len(cells) / 2, grid=7, link="smooth")
        # Steps short enough that not everything beside the cell, whose tent it shares, is deleted as well.
        options = {"size": 7, "steps": 8, "iterations": 4, "baseline": "black", "l2": 0.5, "step_size": 5.0}
        net, image = oracle.classifier(56), oracle.image(56)
        saliency = attribute(net, image, name, 1, search_loss=search_loss, **options).maps[0].flatten()
        assert oracle.used[saliency.argmax()]
        assert saliency[oracle.used].mean() > 3 * saliency[~oracle.used].mean()


def test_masks_of_many_cells_peak_there_too():
    oracle = WeightedSum({24: 1.0}, threshold=0.5, grid=7, link="smooth")
    options = {"size": 14, "baseline": "black", "l2": 0.5, "iterations": 5}
    saliency = attribute(oracle.classifier(56), oracle.image(56), "i-gos", 1, **options).maps[0]
    used = oracle.used.view(7, 7).repeat_interleave(2, 0).repeat_interleave(2, 1)
    assert used.flatten()[saliency.argmax()]
    assert saliency[used].mean() > 3 * saliency[~used].mean()


def test_penalties_do_what_they_are_for():
    oracle = WeightedSum({24: 1.0, 10: 1.0}, threshold=1.0, grid=7, link="smooth")
    net, image = oracle.classifier(56), oracle.image(56)
    options = {"size": 14, "baseline": "black", "iterations": 5, "steps": 10, "noise": 0.0}
    sparse, plenty = (attribute(net, image, "i-gos", 1, l2=0.5, l1=l1, **options).maps[0] for l1 in (4.0, 0.05))
    assert sparse.sum() < plenty.sum()
    rough, smooth = (attribute(net, image, "i-gos", 1, l1=0.5, l2=l2, **options).maps[0] for l2 in (0.01, 20.0))
    assert smooth.diff(dim=0).square().mean() < rough.diff(dim=0).square().mean()


@pytest.mark.parametrize("name", NAMES)
def test_masks_bring_their_loss_down(name):
    net, images = sure_cnn(torch.float64), pictures(2)
    for index in range(2):
        twin = twin_of(name, net, images, index, **QUICK)
        masks, losses = twin.run(ITERATIONS, STEP[name])
        assert all(after <= before for before, after in pairwise(losses))
        assert losses[-1] < losses[0] - 0.05
        # What is found here is what these losses belong to.
        found = found_by(name, net, images[index : index + 1], noise=0)[0]
        torch.testing.assert_close(found, masks[-1].float(), atol=1e-6, rtol=0)
        if name != "igos++":
            continue
        # Deleting what was found hides the class, and showing it alone keeps it, more than the other way round.
        kept, shown = twin.up(1 - found.double()), twin.up(found.double())
        with torch.no_grad():
            deleted = twin.f(twin.x * kept + twin.b * (1 - kept))
            inserted = twin.f(twin.x * shown + twin.b * (1 - shown))
        assert inserted > deleted + 0.05


def test_a_deletion_aims_at_its_target():
    net, images = sure_cnn(labels=["ant", "bee", "cow", "dog"]), pictures(3)
    by_default = attribute(net, images, "i-gos", **SHORT).maps
    predicted = net.predict(images).targets
    torch.testing.assert_close(attribute(net, images, "i-gos", predicted, **SHORT).maps, by_default)
    other = attribute(net, images, "i-gos", (predicted + 1) % 4, **SHORT).maps
    assert (other - by_default).abs().flatten(1).amax(dim=1).min() > 1e-3
    cow, two = (attribute(net, images, "i-gos", target, **SHORT).maps for target in ("cow", 2))
    torch.testing.assert_close(cow, two)


def test_noise_belongs_to_the_image():
    net, images = sure_cnn(), pictures(2)
    first, other = (attribute(net, images, "i-gos", seed=seed, **SHORT).maps for seed in (1, 2))
    assert (first - other).abs().max() > 1e-4
    quiet = [attribute(net, images, "i-gos", seed=seed, noise=0, **SHORT).maps for seed in (1, 2)]
    torch.testing.assert_close(*quiet)
    # The same picture twice is the same map twice, unless it is said to be another.
    twice = images[:1].repeat(2, 1, 1, 1)

    def maps(pixels, ids):
        targets = torch.zeros(len(pixels), dtype=torch.long)
        return explain(Batch(net, pixels, targets, ids, 0, Runner(net)), "i-gos", **SHORT)

    torch.testing.assert_close(*maps(twice, ["a", "a"]), atol=1e-5, rtol=0)
    one, another = maps(twice, ["a", "b"])
    assert (one - another).abs().max() > 1e-4
    torch.testing.assert_close(maps(images[:1], ["b"])[0], another, atol=1e-5, rtol=0)


def test_images_that_stay_where_they_are_cost_nothing_more():
    net, images = sure_cnn(sharpness=0), pictures(3)
    seen = inputs_seen(net)
    maps = attribute(net, images, "i-gos", size=7, steps=4, iterations=50, noise=0).maps
    assert torch.equal(maps, torch.zeros(3, 7, 7))  # nothing makes a constant model fade
    # Whole images, first losses, one round of gradients, and at most one line search of eleven trials.
    assert sum(seen) <= 3 * (1 + 1 + 4 + 11)


class NotANumber(nn.Module):
    def forward(self, x):
        return x.mean(dim=(2, 3)) * float("nan")


def test_nan_never_leaves():
    net = Classifier(NotANumber(), size=32, mean=MEAN, std=STD)
    found = attribute(net, pictures(2), "i-gos", 1, size=7, iterations=2, steps=2)
    assert torch.equal(found.maps, torch.zeros(2, 7, 7))


def test_it_works_in_inference_mode():
    net, images = sure_cnn(), pictures(2)
    expected = attribute(net, images, "i-gos", **SHORT).maps
    with torch.inference_mode():
        found = attribute(net, images.clone(), "i-gos", **SHORT).maps
    torch.testing.assert_close(found, expected)


def test_half_precision_modules_give_float32_maps():
    net, images = sure_cnn(), pictures(2)
    expected = attribute(net, images, "i-gos", **SHORT).maps
    net.module.bfloat16()
    found = attribute(net, images, "i-gos", **SHORT).maps
    assert found.dtype == torch.float32
    assert (found - expected).abs().mean() < 0.02


def inputs_seen(net):
    seen = []
    net.module.register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0])))
    return seen


@pytest.mark.parametrize("batch_size", [1, 5, 64])
def test_memory_is_bounded_by_the_batch(batch_size):
    net, images = sure_cnn(), pictures(2)
    seen = inputs_seen(net)
    found_by("igos++", net, images, 2, batch_size=batch_size)
    assert max(seen) <= batch_size
    assert max(seen) >= min(batch_size, 2 * 4 * QUICK["steps"])  # full batches, over images, scores and steps
    seen.clear()
    found_by("i-gos", net, images, 2, batch_size=batch_size)
    assert min(batch_size, 2 * QUICK["steps"]) <= max(seen) <= batch_size


@pytest.mark.parametrize("name", NAMES)
def test_masks_of_one_cell_and_of_every_pixel(name):
    for size in (1, 32):
        maps = found_by(name, sure_cnn(), pictures(2), 2, size=size, steps=2)
        assert maps.shape == (2, size, size)
        assert maps.isfinite().all()
        assert ((maps >= 0) & (maps <= 1)).all()


def test_logits_can_be_optimized_too():
    net = sure_cnn().replace(score="logit")
    maps = found_by("igos++", net, pictures(2), 2)
    assert (maps.amax(dim=(1, 2)) > 0.01).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size=0; it can be a whole number from 1 on"),
        ({"size": 33}, "1 to 32"),
        ({"steps": 0}, "steps=0; it can be a whole number from 1 on"),
        ({"iterations": -1}, "iterations=-1; it can be a whole number from 0 on"),
        ({"noise": -1.0}, "noise=-1.0; it can be a number from 0 on or a list"),
        ({"noise": (0.1, 0.2)}, "three for red"),
        ({"step_size": 0.0}, "step_size=0.0; it can be a number from 1e-05 on"),
        ({"step_size": float("inf")}, "step_size=inf"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"targets": [0, 1, 2]}, "3 targets were given for 2 images"),
        ({"optimizer": "adam"}, "'line-search' or 'nag'"),
        ({"search_loss": "best"}, "'integrated' or 'plain'"),
        ({"btv": "rgb"}, "'gray', 'channels' or 'asymmetric'"),
    ],
)
def test_options_without_sense_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        attribute(sure_cnn(), pictures(2), "igos++", **{**SHORT, **options})


def test_a_model_without_gradients_is_refused():
    oracle = AnyOf([(0, 1)], grid=4)
    with pytest.raises(OptionError, match="no gradient"):
        attribute(oracle.classifier(16), oracle.image(16), "igos++", size=4)


def test_names_and_aliases():
    assert find_method("igos").name == "i-gos"
    assert find_method("igos-plus").name == "igos+"
    assert find_method("igospp") is find_method("igos-plus-plus")
    defaults = find_method("igos++").options
    assert (defaults["size"], defaults["steps"], defaults["iterations"]) == (28, 20, 15)
