"""Models of one's own by where they are made, in Python."""

import pytest
import torch

import suffice
from suffice.errors import CheckpointError, OptionError, UnknownModel

CODE = """
import torch
from torch import nn
import timm

def plain(num_classes=2):
    torch.manual_seed(0)
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, num_classes * 1))

def known():
    return timm.create_model("resnet10t", num_classes=2)

made = plain()

class Makers:
    inner = staticmethod(plain)
"""
HALF = {"size": 16, "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5), "device": "cpu"}


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module that can be imported, and a folder for files."""
    (tmp_path / "makes_models.py").write_text(CODE, encoding="utf-8")
    (tmp_path / "needs_more.py").write_text("import nowhere_to_be_found\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["plain", "made", "Makers.inner"])
def test_functions_and_modules(module, name):
    net = suffice.load(f"makes_models:{name}", **HALF)
    assert net.name == f"makes_models:{name}"
    assert net(torch.rand(1, 3, 16, 16)).shape == (1, 2)


def test_options_go_to_the_function_and_to_the_classifier(module):
    net = suffice.load("makes_models:plain", num_classes=3, labels=["a", "b", "c"], **HALF)
    assert net(torch.rand(1, 3, 16, 16)).shape == (1, 3)
    assert net.labels == ["a", "b", "c"]


def test_one_of_timm_needs_no_preprocessing(module):
    assert suffice.load("makes_models:known", device="cpu").size == (176, 176)


def test_weights_from_a_checkpoint(module):
    other = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(3, 2))
    torch.save(other.state_dict(), module / "other.pth")
    net = suffice.load("makes_models:plain", checkpoint=module / "other.pth", **HALF)
    torch.testing.assert_close(net.module[2].weight, other[2].weight)
    assert net.checkpoint == "other.pth"
    with pytest.raises(CheckpointError):
        suffice.load("makes_models:plain", checkpoint=module / "other.pth", num_classes=5, **HALF)


def test_mistakes(module):
    with pytest.raises(OptionError, match=r"cannot be called so: .*colour.*it is makes_models:plain\(num_classes=2\)"):
        suffice.load("makes_models:plain", colour="red", **HALF)
    with pytest.raises(TypeError, match="unsupported operand"):  # of its own
        suffice.load("makes_models:plain", num_classes=None, **HALF)
    with pytest.raises(OptionError, match="is made already, and takes no num_classes"):
        suffice.load("makes_models:made", num_classes=5, **HALF)
    with pytest.raises(UnknownModel, match="no 'nobody'"):
        suffice.load("makes_models:nobody", **HALF)
    with pytest.raises(ModuleNotFoundError, match="nowhere_to_be_found"):  # its own mistake, with its own traceback
        suffice.load("needs_more:model", **HALF)
