"""Gradients, integrated gradients, SmoothGrad and occlusion against Captum, to 1e-4 of the largest value."""

import captum.attr as captum
import pytest
import torch

from suffice import open_images
from suffice.attribution import attribute
from suffice.perturb import Batch, Runner
from suffice.vision.noise import normal_noise
from tests.attribution.nets import pictures, small_cnn

NET, IMAGES = small_cnn(), pictures()
TARGETS = [1, 4, 2]
INPUTS = NET.normalize(IMAGES)


def agree(ours, theirs):
    assert (ours - theirs).abs().max() <= 1e-4 * theirs.abs().max()


def ours(name, **options):
    return attribute(NET, IMAGES, name, TARGETS, **options).maps


@pytest.mark.parametrize("output", ["logit", "score"])
def test_gradient(output):
    forward = NET.logits if output == "logit" else lambda x: NET.scores(NET.logits(x))
    theirs = captum.Saliency(forward).attribute(INPUTS, TARGETS, abs=False)
    agree(ours("gradient", reduction="sum", output=output), theirs.sum(dim=1))
    agree(ours("gradient", output=output), theirs.abs().amax(dim=1))
    agree(ours("gradient", reduction="sum-abs", output=output), theirs.abs().sum(dim=1))
    agree(ours("gradient", reduction="abs-sum", output=output), theirs.sum(dim=1).abs())


def test_gradient_times_input():
    theirs = captum.InputXGradient(NET.logits).attribute(INPUTS, TARGETS)
    agree(ours("gradient", times="input", reduction="sum"), theirs.sum(dim=1))


@pytest.mark.parametrize(
    ("rule", "theirs"),
    [("gauss-legendre", "gausslegendre"), ("middle", "riemann_middle"), ("right", "riemann_right")],
)
def test_integrated_gradients(rule, theirs):
    black = NET.normalize(torch.zeros_like(IMAGES))
    reference = captum.IntegratedGradients(NET.logits).attribute(INPUTS, black, TARGETS, n_steps=20, method=theirs)
    agree(ours("integrated-gradients", steps=20, rule=rule), reference.sum(dim=1))
    agree(ours("integrated-gradients", steps=20, rule=rule, batch_size=7), reference.sum(dim=1))


def test_integrated_gradients_add_up_and_average_baselines():
    batch = Batch(NET, IMAGES, torch.tensor(TARGETS), list("abc"), 0, Runner(NET))
    black, gray = (NET.normalize(batch.baseline(b)) for b in ("black", "gray"))
    with torch.no_grad():
        whole, nothing = batch.outputs(INPUTS), batch.outputs(black)
    torch.testing.assert_close(
        ours("integrated-gradients", steps=100).sum(dim=(1, 2)), whole - nothing, atol=3e-3, rtol=3e-3
    )
    both = ours("integrated-gradients", baseline="black+gray")
    agree(both, (ours("integrated-gradients") + ours("integrated-gradients", baseline="gray")) / 2)
    assert not torch.equal(black, gray)


@pytest.mark.parametrize("variant", ["mean", "squared", "variance"])
def test_smoothgrad_with_the_same_noise(variant):
    samples, relative = 6, 0.2
    batch = Batch(NET, IMAGES, torch.tensor(TARGETS), open_images(IMAGES).ids, 7, Runner(NET))
    mean, std, own = (torch.tensor(v).view(3, 1, 1) for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225), NET.std))
    image = (IMAGES - mean) / std
    spread = relative * (image.amax(dim=(1, 2, 3)) - image.amin(dim=(1, 2, 3)))[:, None, None, None] * std / own
    noises = [normal_noise(batch.seeds, torch.full((3,), k), (3, 32, 32)) * spread for k in range(samples)]
    # Captum draws its own noise, so its gradient is taken at our noisy images and averaged here.
    slopes = torch.stack(
        [captum.Saliency(NET.logits).attribute(INPUTS + noise, TARGETS, abs=False) for noise in noises]
    )
    theirs = {"mean": slopes.mean(0), "squared": slopes.square().mean(0), "variance": slopes.var(0, unbiased=False)}
    found = ours("smoothgrad", samples=samples, noise=relative, variant=variant, reduction="sum", seed=7)
    agree(found, theirs[variant].sum(dim=1))


@pytest.mark.parametrize(("window", "stride"), [(8, 8), (8, 5), (10, 3), (32, 32)])
@pytest.mark.parametrize("output", ["logit", "score"])
def test_occlusion(window, stride, output):
    forward = NET.logits if output == "logit" else lambda x: NET.scores(NET.logits(x))
    gray = torch.zeros_like(INPUTS)  # the mean color, normalized
    theirs = captum.Occlusion(forward).attribute(
        INPUTS, (3, window, window), (3, stride, stride), gray, TARGETS, perturbations_per_eval=4
    )
    agree(ours("occlusion", window=window, stride=stride, output=output), theirs[:, 0])
