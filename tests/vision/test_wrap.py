"""Modules where a classifier is expected."""

import pytest
import timm
import torch
from torch import nn
from transformers import ResNetConfig, ResNetForImageClassification

import suffice
from suffice.errors import OptionError
from suffice.metrics import sanity_check, score_table
from suffice.metrics.torchmetrics import MapMetric
from suffice.report import explain_images
from suffice.vision import as_classifier


@pytest.fixture(scope="module")
def module():
    torch.manual_seed(0)
    return timm.create_model("resnet10t", num_classes=5)


@pytest.fixture(scope="module")
def images():
    return torch.rand(2, 3, 176, 176, generator=torch.Generator().manual_seed(0))


def test_a_module_of_timm_brings_its_preprocessing(module):
    net, loaded = as_classifier(module), suffice.load("timm/resnet10t", pretrained=False, device="cpu")
    assert net.module is module
    assert (net.name, net.family, net.geometry) == (loaded.name, loaded.family, loaded.geometry)
    assert (net.mean, net.std) == (loaded.mean, loaded.std)
    assert net.labels is None  # its five classes are not ImageNet's
    assert suffice.Classifier(module, mean=(0.5, 0.5, 0.5)).mean == (0.5, 0.5, 0.5)  # what is given goes before


def test_functions_take_it(module, images):
    net = as_classifier(module)
    maps = suffice.attribute(module, images, "gradient")
    torch.testing.assert_close(maps.maps, suffice.attribute(net, images, "gradient").maps)
    assert suffice.measure(module, images, maps, steps=3).protocol["model"] == "timm/resnet10t"
    assert suffice.find_evidence(module, images[:1], grid=2, min_confidence=0.0).model == "timm/resnet10t"
    assert suffice.Probe(module, images).whole.shape == (2,)
    assert suffice.Runner(module).net.module is module
    assert "rollout" not in suffice.list_methods(net=module)
    assert len(score_table(module, images, ["gradient"], ["sparseness"]).rows) == 1
    assert sanity_check(module, images, "gradient").model == "timm/resnet10t"
    assert explain_images(module, images, ["gradient"]).net.module is module
    metric = MapMetric("sparseness", module)
    metric.update(images, maps.maps)
    assert torch.isfinite(metric.compute())


def test_what_is_not_known_is_not_guessed(images):
    plain = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
    with pytest.raises(OptionError, match=r"size, mean, std missing.*net = suffice.Classifier\(module, size=…, mean="):
        suffice.attribute(plain, images)
    small = ResNetConfig(embedding_size=4, hidden_sizes=[4], depths=[1], layer_type="basic")
    hf = ResNetForImageClassification(small)
    hf.config._name_or_path = "microsoft/resnet-50"
    with pytest.raises(OptionError, match=r'net = suffice.load\("hf/microsoft/resnet-50"\)'):
        suffice.find_evidence(hf, images)
    with pytest.raises(OptionError, match=r"not str; write suffice.load"):
        suffice.attribute("timm/resnet10t", images)
