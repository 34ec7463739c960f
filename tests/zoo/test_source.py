"""Networks of the zoo and scenes, by name."""

import pytest
import torch

import suffice
from suffice.errors import UnknownModel
from suffice.zoo.architectures import ARCHITECTURES
from suffice.zoo.scenes import CLASSES


def test_every_architecture_is_listed():
    listed = suffice.vision.model_entries("zoo/*")
    assert [m.name for m in listed] == [f"zoo/{name}" for name in ARCHITECTURES]
    assert [m.family for m in listed] == [a.family for a in ARCHITECTURES.values()]


def test_networks_load_with_the_preprocessing_and_labels_of_scenes():
    net = suffice.load("zoo/convnext-3-bn", pretrained=False, device="cpu")
    assert net.size == (56, 56)
    assert tuple(net.labels) == CLASSES
    images = suffice.open_images("scenes:test[:4]")
    assert net.predict(images).scores.shape == (4, 16)
    assert suffice.load("zoo/resnet", pretrained=False, num_classes=100, size=64, device="cpu").labels is None


def test_a_checkpoint_is_loaded(tmp_path):
    from safetensors.torch import save_file

    net = suffice.load("zoo/levit", pretrained=False, device="cpu")
    save_file({k: v.clone() for k, v in net.module.state_dict().items()}, tmp_path / "w.safetensors")
    again = suffice.load("zoo/levit", checkpoint=tmp_path / "w.safetensors", device="cpu")
    pixels = torch.rand(2, 3, 56, 56)
    assert torch.equal(again(pixels), net(pixels))


def test_unknown_names_suggest_known_ones():
    with pytest.raises(UnknownModel, match="zoo/convnext-3-bn"):
        suffice.load("zoo/convnext-3-bm")


def test_scenes_open_by_name_with_labels_and_boxes():
    images = suffice.open_images("scenes:test[:8]")
    assert len(images) == 8
    assert all(0 <= label < 16 for label in images.labels)
    assert images[0].decode().size == (56, 56)
    assert len(images.boxes) == 8
