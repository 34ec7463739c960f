"""Several methods at once, and layers given as modules."""

import pytest
import torch
from torch import nn

import suffice
from suffice.errors import AnatomyError, OptionError


@pytest.fixture
def net():
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3),
    )  # fmt: skip
    return suffice.Classifier(module, size=16, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))


@pytest.fixture
def images():
    return torch.rand(3, 3, 16, 16, generator=torch.Generator().manual_seed(1))


def test_a_list_of_methods_gives_maps_by_name(net, images):
    told = []
    report = {"on_progress": lambda *done: told.append(done)}
    found = suffice.attribute(net, images, ["gradient", "rise"], targets=1, masks=8, output="score", **report)
    assert list(found) == ["gradient", "rise"]
    assert told == [(3, 6), (6, 6)]
    for name, options in {"gradient": {"output": "score"}, "rise": {"masks": 8, "output": "score"}}.items():
        alone = suffice.attribute(net, images, name, targets=1, **options)
        torch.testing.assert_close(found[name].maps, alone.maps)
        assert found[name].settings["options"] == alone.settings["options"]


@pytest.mark.parametrize(
    ("methods", "options", "said"),
    [
        (["gradient", "rise"], {"windw": 3}, "None of gradient, rise has an option 'windw'"),
        (["gradient", "rollout"], {}, "rollout does not fit"),
        (["gradient", "rise"], {"masks": 0}, "masks=0"),
        (["gradient", "gradient"], {}, "different"),
        ([], {}, "one or more"),
    ],
)
def test_mistakes_of_lists(net, images, methods, options, said):
    with pytest.raises(OptionError, match=said):
        suffice.attribute(net, images, methods, **options, on_progress=lambda *_: pytest.fail("too late"))


@pytest.mark.parametrize("method", ["grad-cam", "grad-cam++", "score-cam", "vit-cx"])
def test_a_layer_can_be_given_as_a_module(net, images, method):
    by_module = suffice.attribute(net, images, method, layer=net.module[1])
    assert by_module.settings["options"]["layer"] == "1"
    torch.testing.assert_close(by_module.maps, suffice.attribute(net, images, method, layer="1").maps)


def test_a_layer_of_another_model_is_refused(net, images):
    with pytest.raises(AnatomyError, match="no part of this Sequential"):
        suffice.attribute(net, images, "grad-cam", layer=nn.ReLU())
