"""LayerCAM, HiResCAM and EigenCAM against the real pytorch-grad-cam, on feature maps and on tokens."""

import numpy as np
import pytest
import timm
import torch

from suffice.attribution import attribute
from suffice.vision import Classifier
from tests.attribution.nets import MEAN, STD, pictures, small_cnn

cams = pytest.importorskip("pytorch_grad_cam", reason="needs the package grad-cam")
IMAGES, TARGETS = pictures(3, 96), [1, 4, 2]


def network(kind):
    torch.manual_seed(0)
    if kind == "resnet":
        module = timm.create_model("resnet10t", num_classes=5)
    else:
        module = timm.models.VisionTransformer(
            img_size=96, patch_size=16, embed_dim=24, depth=3, num_heads=2, num_classes=5
        )
    head = module.get_classifier()
    with torch.no_grad():  # logits of some size, with a positive part for every image
        head.weight *= 30
    return Classifier(module.double().eval(), size=96, mean=MEAN, std=STD, name=kind)


def theirs(net, name, classes=TARGETS):
    """What they find, at the resolution of the layer, clipped and stretched to [0, 1] as they do; in float64."""
    anatomy = net.anatomy
    with getattr(cams, name)(
        net.module,
        [net.module.get_submodule(anatomy.target_layer)],
        reshape_transform=lambda values: anatomy.maps(anatomy.target_layer, values),
    ) as cam:
        cam.get_target_width_height = lambda _: anatomy.grid(anatomy.target_layer)[::-1]  # enlarges nothing
        targets = [cams.utils.model_targets.ClassifierOutputTarget(t) for t in classes]
        # Without a gradient at the inputs, theirs would find none where all weights are frozen.
        return torch.from_numpy(cam(net.normalize(IMAGES.double()).requires_grad_(), targets)).double()


def stretched(maps):
    maps = maps.double().relu()
    maps = maps - maps.amin(dim=(1, 2), keepdim=True)
    return maps / maps.amax(dim=(1, 2), keepdim=True)


@pytest.mark.parametrize("kind", ["resnet", "vit"])
@pytest.mark.parametrize(("name", "peer"), [("layer-cam", "LayerCAM"), ("hires-cam", "HiResCAM")])
def test_equal_to_theirs(name, peer, kind):
    net = network(kind)
    found = attribute(net, IMAGES, name)
    ours, classes = found.maps, found.targets.tolist()
    assert ours.shape[1:] == net.anatomy.grid(net.anatomy.target_layer)
    assert (ours.amax(dim=(1, 2)) > 0).all()
    torch.testing.assert_close(stretched(ours), theirs(net, peer, classes), rtol=0, atol=1e-5)
    signed = attribute(net, IMAGES, name, classes, positive=False).maps
    torch.testing.assert_close(signed.relu(), ours)


@pytest.mark.parametrize("kind", ["resnet", "vit"])
def test_eigen_cam_is_theirs_once_centered_but_for_its_sign(kind):
    net = network(kind)
    ours = attribute(net, IMAGES, "eigen-cam", centered=True, positive=False).maps
    for own, other in zip(ours, theirs(net, "EigenCAM"), strict=True):
        assert own.max() >= -own.min()
        distances = [(stretched(sign * own[None])[0] - other).abs().max() for sign in (1, -1)]
        assert min(distances) < 1e-5 < max(distances)


@pytest.mark.parametrize("layer", ["first", "second"])  # 256 places of 8 channels, and 64 of 12
@pytest.mark.parametrize("centered", [False, True])
def test_eigen_cam_by_hand(layer, centered):
    net, images = small_cnn(torch.float64), pictures()
    kept = {}
    handle = net.module.get_submodule(layer).register_forward_hook(lambda m, i, o: kept.update(out=o))
    net.module(net.normalize(images.double()))
    handle.remove()
    ours = attribute(net, images, "eigen-cam", layer=layer, centered=centered, positive=False).maps
    for own, maps in zip(ours.double().numpy(), kept["out"].detach().numpy(), strict=True):
        places = maps.reshape(len(maps), -1).T
        places = places - places.mean(axis=0) * centered
        by_hand = (places @ np.linalg.svd(places, full_matrices=False)[2][0]).reshape(own.shape)
        by_hand *= np.sign(by_hand.flatten()[np.abs(by_hand).argmax()])
        np.testing.assert_allclose(own, by_hand, rtol=1e-5, atol=1e-6)


def test_eigen_cam_of_constant_maps_is_constant_and_of_any_class_the_same():
    net, images = small_cnn(), pictures()
    one, other = (attribute(net, images, "eigen-cam", target).maps for target in (1, 3))
    assert torch.equal(one, other)
    with torch.no_grad():
        net.module.second[0].weight.zero_(), net.module.second[0].bias.zero_()
    assert not attribute(net, images, "eigen-cam").maps.any()


def test_hires_cam_adds_up_to_the_logit_where_what_follows_is_linear():
    net = network("resnet")
    maps = attribute(net, IMAGES, "hires-cam", TARGETS, positive=False).maps.double()
    with torch.no_grad():
        logits = net.module(net.normalize(IMAGES.double()))
    expected = (logits - net.module.fc.bias).gather(1, torch.tensor(TARGETS)[:, None])[:, 0]
    torch.testing.assert_close(maps.sum(dim=(1, 2)), expected.detach(), rtol=1e-5, atol=1e-6)
