"""Scenes as a data set and as images by name."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from suffice.errors import OptionError
from suffice.zoo.scenes import SPLITS, Scenes, find_boxes, labels_of, open_scenes, render, render_pixels
from suffice.zoo.scenes.dataset import to_bytes


def pixels_of(image) -> torch.Tensor:
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)


def test_splits_are_disjoint():
    numbers = [range(first, first + count) for first, count in SPLITS.values()]
    assert sum(map(len, numbers)) == len(set().union(*numbers)) == 220_000


@pytest.mark.parametrize("split", SPLITS)
def test_items_are_the_rendered_images(split):
    scenes = Scenes(split, seed=7)
    first, count = SPLITS[split]
    assert len(scenes) == count
    for position in (0, 33, count - 1):
        image, label = scenes[position]
        pixels, labels = render_pixels(torch.tensor([first + position]), 7)
        assert (pixels_of(image).int() - to_bytes(pixels[0]).int()).abs().max() <= 1
        assert label == labels[0]


def test_bytes_are_the_nearest_levels():
    pixels, _ = render_pixels(torch.arange(8))
    levels = to_bytes(pixels)
    assert levels.dtype == torch.uint8
    assert (levels.float() / 255 - pixels).abs().max() <= 0.5 / 255 + 1e-6


def test_ends_and_outside():
    scenes = Scenes("test")
    assert pixels_of(scenes[-1][0]).equal(pixels_of(scenes[9999][0]))
    for position in (10_000, -10_001):
        with pytest.raises(IndexError, match="10000"):
            scenes[position]


def test_a_loader_fetches_the_same_items():
    scenes = Scenes("validation")
    loader = DataLoader(scenes, batch_size=5, sampler=[3, 1, 4, 1, 5], collate_fn=list)
    (batch,) = list(loader)
    for position, (image, label) in zip([3, 1, 4, 1, 5], batch, strict=True):
        alone = scenes[position]
        assert pixels_of(image).equal(pixels_of(alone[0]))
        assert label == alone[1]


def test_open_scenes_has_names_labels_and_boxes():
    images = open_scenes("test[40:200:7]")
    positions = torch.arange(40, 200, 7)
    numbers = SPLITS["test"][0] + positions
    assert images.names == [f"scenes:test[{position}]" for position in positions.tolist()]
    assert images.labels == labels_of(numbers).tolist()
    assert [list(boxes[0]) for boxes in images.boxes] == find_boxes(numbers).tolist()


def test_masks_are_the_parts_to_be_seen():
    images = pickle.loads(pickle.dumps(open_scenes("test[30:34]")))
    parts = render(SPLITS["test"][0] + torch.arange(30, 34)).parts
    for picture, own in zip(images, parts, strict=True):
        assert picture.read_mask().equal(own.any(dim=0))
        assert not picture.read_mask().all()


def test_opened_images_are_those_of_the_data_set():
    images, scenes = open_scenes("test[:100]"), Scenes("test")
    for position in (0, 31, 32, 99):
        assert pixels_of(images[position].decode()).equal(pixels_of(scenes[position][0]))
        assert images[position].label == scenes[position][1]


def test_slices_may_run_backwards_and_from_the_end():
    assert open_scenes("validation[-2:]").names == ["scenes:validation[9998]", "scenes:validation[9999]"]
    assert open_scenes("test[2::-1]").labels == open_scenes("test[:3]").labels[::-1]


def test_identity_is_of_the_pixels_and_survives_pickling():
    images = open_scenes("test[:3]")
    again = pickle.loads(pickle.dumps(images))
    assert again.ids == images.ids
    assert len(set(images.ids)) == 3


@pytest.mark.parametrize(("rest", "message"), [("exam", "train, validation, test"), ("test[5:5]", "no image")])
def test_what_is_not_there_is_named(rest, message):
    with pytest.raises(OptionError, match=message):
        open_scenes(rest)


def test_an_unknown_split_is_named():
    with pytest.raises(OptionError, match="'exam'"):
        Scenes("exam")
