"""I-GOS, iGOS+ and iGOS++ as methods: as their formulas say, step by step; on planted objects; many as one."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from suffice.attribution import attribute, find_method
from suffice.attribution.masking import line_search
from suffice.attribution.masking.penalty import BilateralVariation
from suffice.errors import OptionError
from suffice.testing import CHECKS, AnyOf, WeightedSum
from suffice.vision import Classifier, open_images
from suffice.vision.identity import image_seed
from suffice.vision.noise import normal_noise
from tests.attribution.masking_twin import IGos, IGosPlus, IGosPlusPlus
from tests.attribution.nets import MEAN, STD, pictures

NAMES = ["i-gos", "igos+", "igos++"]
TWINS = {"i-gos": IGos, "igos+": IGosPlus, "igos++": IGosPlusPlus}
STEP = {"i-gos": 200.0, "igos+": 1000.0, "igos++": 1000.0}
MILD = {"l1": 0.05, "l2": 0.2}  # penalties under which large parts of the pictures are deleted
QUICK = {"size": 6, "steps": 3, **MILD}
ITERATIONS = 4


def sure_cnn(dtype=torch.float32):
    """A network so sure of its classes, and of where things are, that deleting something pays."""
    torch.manual_seed(3)
    module = nn.Sequential(
        nn.Conv2d(3, 8, 5, stride=2),
        nn.Tanh(),
        nn.Conv2d(8, 12, 3, stride=2),
        nn.Tanh(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(48, 4),
    )
    with torch.no_grad():
        module[-1].weight *= 20
    return Classifier(module.to(dtype).eval(), size=32, mean=MEAN, std=STD)


def found_by(name, net, images, iterations=ITERATIONS, **options):
    return attribute(net, images, name, iterations=iterations, **{**QUICK, **options}).maps


def twin_of(name, net, images, index, noise=None, **options):
    target = int(net.predict(images).targets[index])
    return TWINS[name](net, images[index], target, noise=noise, **{**QUICK, **options})


def own_noise(images, index, calls, seed):
    """The noise of one picture, by iteration, integrated score and step."""
    key = torch.tensor([image_seed(seed, open_images(images).ids[index])])
    steps = QUICK["steps"]

    def noise(iteration, call, k):
        draw = torch.tensor([(iteration * calls + call) * steps + k - 1])
        return 0.2 * normal_noise(key, draw, (3, 32, 32))[0].double()

    return noise


@pytest.mark.parametrize(("optimizer", "step"), [("line-search", None), ("nag", 5.0)])
@pytest.mark.parametrize("name", NAMES)
def test_masks_follow_the_formulas_step_by_step(name, optimizer, step):
    net, images = sure_cnn(torch.float64), pictures(2)
    step = step or STEP[name]
    expected = [twin_of(name, net, images, i).run(ITERATIONS, step, optimizer)[0] for i in range(2)]
    for done in range(ITERATIONS):
        maps = found_by(name, net, images, done + 1, noise=0, optimizer=optimizer, step_size=step)
        wanted = torch.stack([masks[done] for masks in expected]).float()
        torch.testing.assert_close(maps, wanted, atol=1e-6, rtol=0)
    for masks in expected:  # there was something to follow
        assert float(masks[0].max()) > 0.02
        assert float((masks[-1] - masks[0]).abs().max()) > 0.02


@pytest.mark.parametrize(("name", "calls"), [("i-gos", 1), ("igos+", 2), ("igos++", 4)])
def test_masks_follow_the_formulas_with_noise_that_stays_within_an_iteration(name, calls):
    net, images = sure_cnn(torch.float64), pictures(2)
    maps = attribute(net, images, name, seed=8, iterations=3, **QUICK).maps
    for index in range(2):
        noise = own_noise(images, index, calls, seed=8)
        expected = twin_of(name, net, images, index, noise).run(3, STEP[name])[0][-1]
        torch.testing.assert_close(maps[index], expected.float(), atol=1e-6, rtol=0)
        quiet = twin_of(name, net, images, index).run(3, STEP[name])[0][-1]
        assert float((expected - quiet).abs().max()) > 1e-3  # the noise matters


@pytest.mark.parametrize("btv", ["gray", "channels", "asymmetric"])
def test_bilateral_variation_is_that_of_the_formula(btv):
    net, images = sure_cnn(torch.float64), pictures(2)
    inputs = net.normalize(images) / 20  # flat enough for the weights to differ
    cells = torch.rand(2, 6, 6, dtype=torch.float64)
    found = BilateralVariation(inputs, btv)(torch.tensor([1, 0]), cells)
    for row, index in enumerate([1, 0]):
        twin = twin_of("igos++", net, images, index, btv=btv)
        twin.x = inputs[index]
        torch.testing.assert_close(found[row], twin.bilateral_tv(1 - cells[row]))


def test_the_readings_of_edges_differ():
    net, images = sure_cnn(), pictures(2)
    net.std = (4.0, 4.0, 4.0)  # low contrast in normalized units, so that not every pair of pixels is an edge
    maps = [found_by("igos++", net, images, btv=btv, l2=2.0, noise=0) for btv in ("gray", "channels", "asymmetric")]
    assert all(float((a - b).abs().max()) > 1e-5 for a, b in zip(maps, maps[1:] + maps[:1], strict=True))


@pytest.mark.parametrize("optimizer", ["line-search", "nag"])
@pytest.mark.parametrize("name", NAMES)
def test_an_image_alone_is_as_among_others(name, optimizer):
    net, images = sure_cnn(), pictures(3)
    # Rounding of the network times the step: a long step of Nesterov's method, which nothing shortens, shows it most.
    options = {"optimizer": optimizer, "step_size": 20.0 if optimizer == "nag" else STEP[name]}
    together = found_by(name, net, images, **options)
    for index in range(3):
        alone = found_by(name, net, images[index : index + 1], **options)
        torch.testing.assert_close(alone[0], together[index], atol=1e-5, rtol=0)
    for batch_size in (1, 7):
        torch.testing.assert_close(
            found_by(name, net, images, batch_size=batch_size, **options), together, atol=1e-5, rtol=0
        )


# Steps multiply gradients by up to 1000, and with them their rounding, but masks are clipped and this network is
# smooth: after two iterations the checks' own 1e-5 holds. Over many, a step that just pays in one batch may just not
# pay in another.
@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("name", NAMES)
def test_promises_are_kept_with_mild_penalties(name, check):
    check(lambda net, images: found_by(name, net, images, 2), sure_cnn(), pictures(2))


@pytest.mark.parametrize("search_loss", ["integrated", "plain"])
@pytest.mark.parametrize("name", NAMES)
def test_masks_peak_on_what_the_model_looks_at(name, search_loss):
    for cells in ((24,), (0, 1, 7, 8), (16, 40)):
        oracle = WeightedSum(dict.fromkeys(cells, 1.0), threshold=len(cells) / 2, grid=7, link="smooth")
        # Steps short enough that not everything beside the cell, whose tent it shares, is deleted as well.
        options = {"size": 7, "steps": 8, "iterations": 4, "baseline": "black", "l2": 0.5, "step_size": 5.0}
        net, image = oracle.classifier(56), oracle.image(56)
        saliency = attribute(net, image, name, 1, search_loss=search_loss, **options).maps[0].flatten()
        assert oracle.used[saliency.argmax()]
        assert saliency[oracle.used].mean() > 3 * saliency[~oracle.used].mean()


def test_both_masks_of_igos_plus_plus_bring_their_loss_down():
    net, images = sure_cnn(torch.float64), pictures(2)
    for index in range(2):
        twin = twin_of("igos++", net, images, index)
        masks, losses = twin.run(ITERATIONS, 1000.0)
        assert all(after <= before for before, after in pairwise(losses))
        assert losses[-1] < losses[0] - 0.05
        # What is found here is what these losses belong to.
        found = found_by("igos++", net, images[index : index + 1], noise=0)[0]
        torch.testing.assert_close(found, masks[-1].float(), atol=1e-6, rtol=0)
        # Deleting what was found hides the class, and showing it alone keeps it, more than the other way round.
        kept, shown = twin.up(1 - found.double()), twin.up(found.double())
        with torch.no_grad():
            deleted = twin.f(twin.x * kept + twin.b * (1 - kept))
            inserted = twin.f(twin.x * shown + twin.b * (1 - shown))
        assert inserted > deleted + 0.05


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


def test_a_search_asks_no_more_than_it_must(monkeypatch):
    net, images = sure_cnn(), pictures(1)
    seen = inputs_seen(net)
    expected = found_by("igos++", net, images, 3, batch_size=8)
    thrifty = sum(seen)
    seen.clear()
    monkeypatch.setattr(line_search.LineSearch, "_worth_trying", every_step)
    torch.testing.assert_close(found_by("igos++", net, images, 3, batch_size=8), expected, atol=1e-6, rtol=0)
    assert thrifty <= sum(seen)
    # One forward for each of 4 · 3 questions: the whole image, the gradient, then trials; none for the loss before.
    assert (thrifty - 1) % 12 == 0


def every_step(search, index, deleted, gradients, limits):
    steps = len(search.ladder)
    return torch.arange(steps).expand(len(index), steps), torch.full((len(index),), steps)


def test_steps_that_penalties_forbid_are_not_tried():
    oracle = WeightedSum({5: 1.0}, threshold=0.5, grid=4, link="smooth")
    net, image = oracle.classifier(16), oracle.image(16)
    seen = inputs_seen(net)
    options = {"size": 4, "steps": 2, "iterations": 1, "baseline": "black", "noise": 0, "step_size": 1e4}
    attribute(net, image, "i-gos", 1, l1=1e4, **options)
    # The whole image, the first loss, and two steps of the gradient; then a ladder of 13 steps, of which the first ones
    # delete so much that no score of the model could make up for it.
    assert 0 < sum(seen) - 4 < 13 - 3


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
        ({"size": 33}, "1 to 32"),
        ({"steps": 0}, "steps=0"),
        ({"noise": -1.0}, "noise=-1.0"),
        ({"step_size": 0.0}, "step_size"),
        ({"optimizer": "adam"}, "'line-search' or 'nag'"),
        ({"search_loss": "best"}, "'integrated' or 'plain'"),
        ({"btv": "rgb"}, "'gray', 'channels' or 'asymmetric'"),
    ],
)
def test_options_without_sense_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        found_by("igos++", sure_cnn(), pictures(2), **options)


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
