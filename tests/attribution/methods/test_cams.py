"""CAMs against TorchCAM and against literal formulas, on feature maps and on tokens."""

import pytest
import timm
import torch
from torch.nn.functional import interpolate

from suffice.attribution import attribute
from suffice.errors import AnatomyError, OptionError
from suffice.vision import Classifier
from tests.attribution.nets import MEAN, STD, pictures, small_cnn

IMAGES, TARGETS = pictures(), [1, 4, 2]


def test_grad_cam_equals_torchcam():
    torchcam = pytest.importorskip("torchcam.methods")
    net = small_cnn()
    with torchcam.GradCAM(net.module, target_layer="second") as extractor:
        scores = net.module(net.normalize(IMAGES).requires_grad_())
        theirs = extractor(TARGETS, scores, normalized=False)[0]
    ours = attribute(net, IMAGES, "grad-cam", TARGETS, layer="second").maps
    assert theirs.max() > 0
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6 * float(theirs.max()))


def test_grad_cam_plus_plus_equals_its_formula():
    # TorchCAM divides a copy here, so its weights are not those of the paper; the formula is spelled out instead.
    net = small_cnn(torch.float64)
    kept = {}
    handle = net.module.first.register_forward_hook(lambda m, i, o: kept.update(out=o))
    logits = net.module(net.normalize(IMAGES.double()).requires_grad_())
    handle.remove()
    (slopes,) = torch.autograd.grad(logits.gather(1, torch.tensor(TARGETS)[:, None]).sum(), kept["out"])
    maps = kept["out"].detach()
    by_hand = torch.zeros(3, 16, 16, dtype=torch.float64)
    for b in range(3):
        for c in range(8):
            weight = 0.0
            for slope in slopes[b, c].flatten():
                if slope > 0:
                    weight += slope * slope**2 / (2 * slope**2 + maps[b, c].sum() * slope**3)
            by_hand[b] += weight * maps[b, c]
    ours = attribute(net, IMAGES, "grad-cam++", TARGETS, layer="first").maps
    assert by_hand.max() > 0
    torch.testing.assert_close(ours, by_hand.relu().float(), rtol=1e-4, atol=1e-7)


def test_the_default_layer_is_the_last_with_spatial_detail():
    net = small_cnn()
    assert net.anatomy.grid(net.anatomy.target_layer) == (8, 8)
    ours = attribute(net, IMAGES, "grad-cam", TARGETS).maps
    torch.testing.assert_close(ours, attribute(net, IMAGES, "grad-cam", TARGETS, layer="second").maps)
    with pytest.raises(AnatomyError, match="first"):
        attribute(net, IMAGES, "grad-cam", layer="frist")


def test_without_clipping_negative_values_stay():
    net = small_cnn()
    signed = attribute(net, IMAGES, "grad-cam", TARGETS, positive=False).maps
    assert signed.min() < 0
    torch.testing.assert_close(signed.relu(), attribute(net, IMAGES, "grad-cam", TARGETS).maps)


def test_grad_cam_on_tokens_by_hand():
    torch.manual_seed(0)
    module = timm.models.VisionTransformer(
        img_size=32, patch_size=8, embed_dim=24, depth=3, num_heads=2, num_classes=5
    ).eval()
    net = Classifier(module, size=32, mean=MEAN, std=STD)
    kept = {}
    layer = module.blocks[-1].norm1
    handle = layer.register_forward_hook(lambda m, i, o: kept.update(out=o))
    logits = module(net.normalize(IMAGES).requires_grad_())
    handle.remove()
    (slope,) = torch.autograd.grad(logits.gather(1, torch.tensor(TARGETS)[:, None]).sum(), kept["out"])
    weights = slope[:, 1:].mean(dim=1, keepdim=True)
    by_hand = (weights * kept["out"][:, 1:]).sum(dim=2).relu().view(3, 4, 4)
    ours = attribute(net, IMAGES, "grad-cam", TARGETS).maps
    assert net.anatomy.target_layer == "blocks.2.norm1"
    assert by_hand.max() > 0
    torch.testing.assert_close(ours, by_hand.detach(), rtol=1e-4, atol=1e-7)


def literal_score_cam(net, image, target, reading, corners):
    """One channel at a time, in float64."""
    module, x = net.module, net.normalize(image[None].double())
    kept = {}
    handle = module.second.register_forward_hook(lambda m, i, o: kept.update(out=o))
    module(x)
    handle.remove()
    channels = kept["out"][0]
    said, masks = [], []
    for channel in channels:
        options = {"mode": "bilinear", "align_corners": corners}
        large = interpolate(channel[None, None], (32, 32), **options)
        mask = (large - large.min()) / (large.max() - large.min())
        logits = module(x * mask)[0]
        said.append((logits if reading == "softmax" else logits.softmax(0))[target])
        masks.append(mask[0, 0])
    said = torch.stack(said)
    if reading == "mask-sum":
        return sum(w * m for w, m in zip(said, masks, strict=True))
    weights = said.softmax(0) if reading == "softmax" else said
    return sum(w * a for w, a in zip(weights, channels, strict=True)).relu()


@torch.no_grad()
@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("reading", ["softmax", "original", "mask-sum"])
def test_score_cam_equals_its_formula(reading, corners):
    net = small_cnn(torch.float64)
    enlargement = "bilinear-corners" if corners else "bilinear"
    ours = attribute(net, IMAGES, "score-cam", TARGETS, reading=reading, layer="second", enlargement=enlargement).maps
    twins = [literal_score_cam(net, i, t, reading, corners) for i, t in zip(IMAGES, TARGETS, strict=True)]
    torch.testing.assert_close(ours, torch.stack(twins).float(), rtol=1e-4, atol=1e-6)


def test_constant_channels_count_for_nothing():
    net = small_cnn()
    with torch.no_grad():
        net.module.second[0].weight[3:] = 0  # nine channels are constant
        net.module.second[0].bias[3:] = 5.0
    for reading in ("softmax", "original", "mask-sum"):
        maps = attribute(net, IMAGES, "score-cam", reading=reading).maps
        assert maps.isfinite().all()
    with torch.no_grad():
        net.module.second[0].weight[:] = 0
    for reading in ("softmax", "original", "mask-sum"):
        assert not attribute(net, IMAGES, "score-cam", reading=reading).maps.any()
    with pytest.raises(OptionError, match="reading='paper'"):
        attribute(net, IMAGES, "score-cam", reading="paper")
