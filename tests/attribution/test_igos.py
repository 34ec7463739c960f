"""I-GOS: as its formulas say, step by step; on planted objects; with many images as with one."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from suffice.attribution import i_gos, seed_map
from suffice.attribution.masking import line_search
from suffice.errors import OptionError, SufficeWarning
from suffice.perturb import Grid, make_baseline
from suffice.testing import CHECKS, AnyOf, WeightedSum
from suffice.vision import Classifier, open_images
from suffice.vision.identity import image_seed
from suffice.vision.noise import normal_noise

SIDE = 28
MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)
MILD = {"l1": 0.1, "l2": 0.3}  # penalties under which large parts of the images below are deleted


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Small networks gain nothing from more."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def network(sharpness=10):
    torch.manual_seed(3)
    module = nn.Sequential(
        nn.Conv2d(3, 8, 5, stride=2),
        nn.BatchNorm2d(8),
        nn.Tanh(),
        nn.Conv2d(8, 12, 3, stride=2),
        nn.Tanh(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(48, 4),
    )
    with torch.no_grad():
        module[-1].weight *= sharpness
    return module.eval()


@pytest.fixture
def net():
    return Classifier(network(), size=SIDE, mean=MEAN, std=STD, labels=["ant", "bee", "cow", "dog"])


@pytest.fixture
def images():
    # Coarse patterns, which blurring hides.
    coarse = torch.rand(3, 3, 7, 7, generator=torch.Generator().manual_seed(1))
    return nn.functional.interpolate(coarse, SIDE, mode="bicubic").clamp(0, 1)


class Twin:
    """One image in float64, literally by the formulas, one forward at a time."""

    def __init__(self, net, image, target, size, *, l1, l2, steps=20):
        self.module = copy.deepcopy(net.module).double()
        self.x = net.normalize(image[None]).double()
        self.b = net.normalize(make_baseline("blur", image[None], mean=net.mean)).double()
        self.target, self.size, self.l1, self.l2, self.steps = target, size, l1, l2, steps
        # Corner-aligned: pixel p of 28 lies at p * (size - 1) / 27 between the cells.
        place = np.arange(SIDE) * (size - 1) / (SIDE - 1)
        cells = np.arange(size)
        self.up = torch.from_numpy(np.maximum(0, 1 - np.abs(place[:, None] - cells[None, :])))

    def f(self, mask, noise=0.0):
        blended = self.x * mask + self.b * (1 - mask) + noise
        return self.module(blended).softmax(dim=1)[0, self.target]

    def penalty(self, m):
        tv = (m[1:] - m[:-1]).abs().pow(2).mean() + (m[:, 1:] - m[:, :-1]).abs().pow(2).mean()
        return self.l1 * (1 - m).abs().mean() + self.l2 * tv

    @torch.no_grad()
    def loss(self, m):
        return float(self.penalty(m) + self.f(self.up @ m @ self.up.T))

    def masks(self, iterations, noise=lambda iteration, k: 0.0):
        """The mask after each iteration."""
        m = torch.ones(self.size, self.size, dtype=torch.float64)
        found = []
        for iteration in range(iterations):
            m = m.clone().requires_grad_()
            total = self.penalty(m)
            for k in range(1, self.steps + 1):
                part = (k / self.steps) * (self.up @ m @ self.up.T)
                total = total + self.f(part, noise(iteration, k)) / self.steps
            (g,) = torch.autograd.grad(total, m)
            m = m.detach()
            before, s = self.loss(m), 200.0
            while s >= 1e-5 and self.loss((m - s * g).clamp(0, 1)) > before - 1e-4 * s * float((g**2).sum()):
                s *= 0.2
            m = (m - s * g).clamp(0, 1)
            found.append(m)
        return found


def own_noise(images, index, steps, deviations, seed=0):
    """The noise that belongs to one image, by iteration and step."""
    key = torch.tensor([image_seed(seed, open_images(images).ids[index])])

    def noise(iteration, k):
        draw = torch.tensor([iteration * steps + k - 1])
        return normal_noise(key, draw, (3, SIDE, SIDE)).double() * torch.tensor(deviations).view(3, 1, 1)

    return noise


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("size", "options"), [(7, MILD), (14, {"l1": 0.2, "l2": 2.0})])
def test_it_follows_the_formulas_step_by_step(net, images, size, options, dtype):
    targets = net.predict(images).targets.tolist()
    twins = [Twin(net, x, t, size, steps=4, **options) for x, t in zip(images, targets, strict=True)]
    expected = [twin.masks(4) for twin in twins]
    net.module.to(dtype)
    for done in range(4):
        maps = i_gos(net, images, size=size, steps=4, iterations=done + 1, noise=0, **options)
        # Scores are float32 whatever the module is, so agreement ends there.
        torch.testing.assert_close(maps, torch.stack([1 - m[done] for m in expected]).float(), atol=1e-4, rtol=0)
    for m in expected:  # there was something to follow
        assert float((1 - m[0]).max()) > 0.1
        assert float((m[3] - m[0]).abs().max()) > 0.1


def test_it_follows_the_formulas_with_noise(net, images):
    targets = net.predict(images).targets
    maps = i_gos(net, images, size=7, steps=4, iterations=3, noise=0.2, seed=8, **MILD)
    for i, target in enumerate(targets.tolist()):
        twin = Twin(net, images[i], target, 7, steps=4, **MILD)
        expected = twin.masks(3, own_noise(images, i, 4, [0.2, 0.2, 0.2], seed=8))[-1]
        torch.testing.assert_close(maps[i], (1 - expected).float(), atol=1e-4, rtol=0)
        assert float((expected - twin.masks(3)[-1]).abs().max()) > 1e-3  # the noise matters


@pytest.mark.parametrize(("defect", "deviations"), [(False, [0.2, 0.2, 0.2]), (True, [0.4, 0.0, 0.0])])
def test_the_seed_map_is_the_short_run_of_structured_attention_graphs(net, images, defect, deviations):
    targets = net.predict(images).targets
    maps = seed_map(net, images, targets, Grid(7), noise_defect=defect)
    for i, target in enumerate(targets.tolist()):
        twin = Twin(net, images[i], target, 7, l1=1.0, l2=20.0)
        expected = twin.masks(2, own_noise(images, i, 20, deviations))[-1]
        torch.testing.assert_close(maps[i], (1 - expected).float(), atol=1e-6, rtol=1e-3)
        assert float((1 - expected).max()) > 1e-3


def test_the_loss_falls(net, images):
    targets = net.predict(images).targets.tolist()
    last = [torch.ones(7, 7, dtype=torch.float64)] * 3
    twins = [Twin(net, x, t, 7, **MILD) for x, t in zip(images, targets, strict=True)]
    for iterations in (1, 4):
        masks = [1 - m.double() for m in i_gos(net, images, size=7, iterations=iterations, **MILD)]
        for twin, before, after in zip(twins, last, masks, strict=True):
            assert twin.loss(after) < twin.loss(before) - 1e-3
        last = masks


def test_where_nothing_pays_the_gradient_still_ranks_cells():
    # The whole image is certain by far, so that no small deletion is felt, and larger ones cost too much.
    weights = {16: 1.0, 17: 0.8, 32: 0.6}
    oracle = WeightedSum(weights, threshold=0.5, grid=7, link="smooth", sharpness=30.0)
    saliency = seed_map(oracle.classifier(56), oracle.image(56), 1, baseline="black")
    assert 0 < saliency.max() < 1e-6
    assert saliency.flatten().topk(3).indices.tolist() == [16, 17, 32]


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("method", ["i_gos", "seed_map"])
def test_it_keeps_its_promises(check, method, net, images):
    runs = {"i_gos": lambda n, x: i_gos(n, x, iterations=2, steps=4, size=7, **MILD), "seed_map": seed_map}
    check(runs[method], net, images)


@pytest.mark.parametrize("cells", [(24,), (0, 1, 7, 8), (16, 40), (44, 45, 46)])
@pytest.mark.parametrize("size", [7, 14])
def test_it_peaks_on_what_the_model_looks_at(cells, size):
    oracle = WeightedSum(dict.fromkeys(cells, 1.0), threshold=len(cells) / 2, grid=7, link="smooth")
    net, image = oracle.classifier(56), oracle.image(56)
    saliency = i_gos(net, image, 1, size=size, baseline="black", l2=0.5, iterations=5)[0]
    used = oracle.used.view(7, 7).repeat_interleave(size // 7, 0).repeat_interleave(size // 7, 1)
    assert used.flatten()[saliency.argmax()]
    assert saliency[used].mean() > 3 * saliency[~used].mean()


def test_the_seed_map_ranks_used_cells_first():
    oracle = WeightedSum({16: 1.0, 17: 1.0, 32: 1.0}, threshold=1.5, grid=7, link="smooth")
    saliency = seed_map(oracle.classifier(56), oracle.image(56, shade=4), 1, baseline="black")
    assert set(saliency.flatten().topk(3).indices.tolist()) == {16, 17, 32}


def test_penalties_do_what_they_are_for():
    oracle = WeightedSum({24: 1.0, 10: 1.0}, threshold=1.0, grid=7, link="smooth")
    net, image = oracle.classifier(56), oracle.image(56)
    options = {"size": 14, "baseline": "black", "iterations": 8, "noise": 0.0}
    sparse, plenty = (i_gos(net, image, 1, l2=0.5, l1=l1, **options)[0] for l1 in (4.0, 0.05))
    assert sparse.sum() < plenty.sum()
    rough, smooth = (i_gos(net, image, 1, l1=0.5, l2=l2, **options)[0] for l2 in (0.01, 20.0))
    assert smooth.diff(dim=0).square().mean() < rough.diff(dim=0).square().mean()


def test_a_deletion_aims_at_its_target(net, images):
    by_default = i_gos(net, images, size=7, iterations=2, steps=3, **MILD)
    predicted = net.predict(images).targets
    assert torch.equal(by_default, i_gos(net, images, predicted, size=7, iterations=2, steps=3, **MILD))
    other = i_gos(net, images, (predicted + 1) % 4, size=7, iterations=2, steps=3, **MILD)
    assert (other - by_default).abs().flatten(1).amax(dim=1).min() > 1e-3
    assert torch.equal(
        i_gos(net, images, "cow", size=7, iterations=2, steps=3, **MILD),
        i_gos(net, images, 2, size=7, iterations=2, steps=3, **MILD),
    )


def batches_seen(module):
    seen = []
    module.register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0])))
    return seen


@pytest.mark.parametrize("batch_size", [1, 5, 64])
def test_memory_is_bounded_and_batches_change_nothing(net, images, batch_size):
    options = {"size": 7, "steps": 6, "iterations": 3, **MILD}
    expected = i_gos(net, images, **options)
    seen = batches_seen(net.module)
    found = i_gos(net, images, batch_size=batch_size, **options)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    assert max(seen) <= batch_size
    assert max(seen) == min(batch_size, 3 * 6)  # full batches, over images and steps


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_trying_several_steps_at_once_finds_the_same_step(net, images, monkeypatch, at_once):
    expected = i_gos(net, images, size=7, steps=4, iterations=4, **MILD)
    monkeypatch.setattr(line_search, "TRIALS_AT_ONCE", at_once)
    found = i_gos(net, images, size=7, steps=4, iterations=4, **MILD)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_noise_belongs_to_the_image(net, images):
    options = {"size": 7, "steps": 3, "iterations": 2, **MILD}
    first = i_gos(net, images, seed=1, **options)
    assert not torch.equal(first, i_gos(net, images, seed=2, **options))
    quiet = [i_gos(net, images, seed=s, noise=0, **options) for s in (1, 2)]
    assert torch.equal(*quiet)
    # The same picture twice is the same map twice, unless it is said to be another.
    twice = images[:1].repeat(2, 1, 1, 1)
    torch.testing.assert_close(*i_gos(net, twice, **options), atol=1e-6, rtol=0)
    one, other = i_gos(net, twice, ids=["a", "b"], **options)
    assert (one - other).abs().max() > 1e-4
    torch.testing.assert_close(i_gos(net, images[:1], ids=["b"], **options)[0], other, atol=1e-6, rtol=0)


def test_images_that_stay_where_they_are_cost_nothing_more(images):
    module = network(sharpness=0)
    net = Classifier(module, size=SIDE, mean=MEAN, std=STD)
    seen = batches_seen(module)
    maps = i_gos(net, images, size=7, steps=4, iterations=50, noise=0)
    assert torch.equal(maps, torch.zeros(3, 7, 7))  # nothing makes a constant model fade
    # Whole images, first losses, one round of gradients, and at most one line search of eleven trials.
    assert sum(seen) <= 3 * (1 + 1 + 4 + 11)


class NotANumber(nn.Module):
    def forward(self, x):
        return x.mean(dim=(2, 3)) * float("nan")


def test_nan_never_leaves(images):
    net = Classifier(NotANumber(), size=SIDE, mean=MEAN, std=STD)
    assert torch.equal(i_gos(net, images, 1, size=7, iterations=2, steps=2), torch.zeros(3, 7, 7))


def test_a_grid_of_one_cell_has_a_map(net, images):
    maps = seed_map(net, images, grid=1)
    assert maps.shape == (3, 1, 1)
    assert maps.isfinite().all()


def test_a_model_without_gradients_is_refused():
    oracle = AnyOf([(0, 1)], grid=4)
    with pytest.raises(OptionError, match="no gradient"):
        i_gos(oracle.classifier(16), oracle.image(16), size=4)


def test_it_works_in_inference_mode(net, images):
    expected = i_gos(net, images, size=7, steps=3, iterations=2, **MILD)
    with torch.inference_mode():
        found = i_gos(net, images.clone(), size=7, steps=3, iterations=2, **MILD)
    torch.testing.assert_close(found, expected)


def test_half_precision_modules_give_float32_maps(net, images):
    expected = i_gos(net, images, size=7, steps=4, iterations=2, **MILD)
    net.module.bfloat16()
    found = i_gos(net, images, size=7, steps=4, iterations=2, **MILD)
    assert found.dtype == torch.float32
    assert (found - expected).abs().mean() < 0.02


class Cramped(nn.Module):
    """A model for which three images at once are too many."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        if len(x) > 2:
            raise torch.cuda.OutOfMemoryError("out of memory")
        return self.inner(x)


def test_running_out_of_memory_halves_the_batch(net, images):
    expected = i_gos(net, images, size=7, steps=4, iterations=2, **MILD)
    cramped = Classifier(Cramped(net.module), size=SIDE, mean=MEAN, std=STD)
    with pytest.warns(SufficeWarning, match="Out of memory"):
        found = i_gos(cramped, images, size=7, steps=4, iterations=2, **MILD)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size=0"),
        ({"size": SIDE + 1}, "1 to 28"),
        ({"steps": 0}, "steps=0"),
        ({"iterations": -1}, "iterations=-1"),
        ({"noise": -0.1}, "noise=-0.1"),
        ({"noise": (0.1, 0.2)}, "three for red"),
        ({"step_size": 1e-6}, "step_size"),
        ({"step_size": float("inf")}, "step_size"),
        ({"ids": ["a"]}, "1 ids were given for 3 images"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"targets": [0, 1]}, "2 targets"),
    ],
)
def test_options_without_sense_are_refused(net, images, options, message):
    with pytest.raises(OptionError, match=message):
        i_gos(net, images, **{"size": 7, **options})
