"""The images that explainers learn from."""

import numpy as np
import pytest
import torch
from PIL import Image

import suffice
from suffice.attribution.learned.images import ExplainerImages, open_explainer_images
from suffice.errors import OptionError, UnreadableImage
from suffice.perturb import Runner


def images(held_out):
    count = len(held_out)
    pixels, places = torch.zeros(count, 3, 2, 2, dtype=torch.uint8), torch.arange(count)
    return ExplainerImages(pixels, places, places, held_out, name="some")


def test_images_to_look_at_are_of_all_that_are_held_out():
    held_out = torch.ones(11, dtype=torch.bool)
    held_out[3] = False
    some = images(held_out)
    assert some.to_look_at(5).tolist() == [0, 2, 5, 7, 9]
    assert some.to_look_at(99).tolist() == some.validation.tolist()


@pytest.fixture
def photos(tmp_path):
    """A folder with two photographs, and a file that is none between them."""
    noise = np.random.default_rng(0)
    for name in ("a", "c"):
        Image.fromarray(noise.integers(256, size=(60, 60, 3), dtype=np.uint8)).save(tmp_path / f"{name}.png")
    (tmp_path / "b.png").write_bytes(b"broken")
    return tmp_path


def test_images_that_cannot_be_read_are_noted(photos):
    runner = Runner(suffice.load("zoo/resnet", device="cpu"))
    found = open_explainer_images(runner, photos)
    assert [(skip.index, skip.name) for skip in found.skipped] == [(1, "b.png")]
    assert len(found.pixels) == 2
    with pytest.raises(UnreadableImage, match=r"b\.png"):
        open_explainer_images(runner, photos, on_error="raise")


def test_if_too_few_can_be_read_that_is_said(photos):
    runner = Runner(suffice.load("zoo/resnet", device="cpu"))
    with pytest.raises(UnreadableImage, match=r"None of the images could be read\. .*b\.png"):
        open_explainer_images(runner, photos / "b.png")
    with pytest.raises(OptionError, match=r"1 images of photos .* 1 cannot be read, such as .*b\.png"):
        open_explainer_images(runner, [photos / "a.png", photos / "b.png"], name="photos")
