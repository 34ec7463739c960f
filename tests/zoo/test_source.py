"""Networks of the zoo and scenes, by name."""

import json
from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

import suffice
from suffice.errors import UnknownModel
from suffice.zoo.architectures import ARCHITECTURES, build
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
    net = suffice.load("zoo/levit", pretrained=False, device="cpu")
    save_file({k: v.clone() for k, v in net.module.state_dict().items()}, tmp_path / "w.safetensors")
    again = suffice.load("zoo/levit", checkpoint=tmp_path / "w.safetensors", device="cpu")
    pixels = torch.rand(2, 3, 56, 56)
    assert torch.equal(again(pixels), net(pixels))


def test_weights_trained_on_other_images_bring_their_classes_size_and_preprocessing(tmp_path):
    module = build("resnet", num_classes=3, size=64)
    facts = {"name": "resnet", "classes": ["a", "b", "c"], "size": [64, 64], "mean": [0.4] * 3, "std": [0.3] * 3}
    file = tmp_path / "resnet-seed0.safetensors"
    save_file({k: v.contiguous() for k, v in module.state_dict().items()}, file, {"suffice": json.dumps(facts)})
    net = suffice.load("zoo/resnet", checkpoint=file, device="cpu")
    assert net.size == (64, 64)
    assert list(net.labels) == ["a", "b", "c"]
    assert (list(net.mean), list(net.std)) == ([0.4] * 3, [0.3] * 3)
    pixels = torch.rand(2, 3, 64, 64)
    expected = module.eval()((pixels - 0.4) / 0.3).softmax(dim=1)
    torch.testing.assert_close(net(pixels), expected)


def test_photographs_in_one_file_open_by_name(tmp_path):
    encoded = [BytesIO(), BytesIO()]
    for shade, target in zip((0, 255), encoded, strict=True):
        Image.new("RGB", (8, 8), (shade,) * 3).save(target, "jpeg")
    parts = [np.frombuffer(one.getvalue(), np.uint8) for one in encoded]
    offset = np.cumsum([0, *map(len, parts)])
    np.savez(tmp_path / "two.npz", jpeg=np.concatenate(parts), offset=offset, y=[1, 0], wnid=["n01", "n02"])
    images = suffice.open_images(f"npz:{tmp_path / 'two.npz'}")
    assert images.labels == ["n02", "n01"]
    assert images.names == ["two.npz[0]", "two.npz[1]"]


def test_unknown_names_suggest_known_ones():
    with pytest.raises(UnknownModel, match="zoo/convnext-3-bn"):
        suffice.load("zoo/convnext-3-bm")


def test_scenes_open_by_name_with_labels_and_boxes():
    images = suffice.open_images("scenes:test[:8]")
    assert len(images) == 8
    assert all(0 <= label < 16 for label in images.labels)
    assert images[0].decode().size == (56, 56)
    assert len(images.boxes) == 8
