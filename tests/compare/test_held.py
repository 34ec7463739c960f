"""Images that are kept at the size of a model."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from suffice import cross_test
from suffice.compare.held import held
from suffice.testing import AnyOf
from suffice.vision import Images, open_images


@dataclass(eq=False)
class Counted:
    """Pixels that count how often they are read."""

    pixels: Tensor
    reads: int = 0

    def read(self) -> Tensor:
        self.reads += 1
        return self.pixels

    def fingerprint(self) -> str:
        return str(self.pixels.sum().item())


@pytest.fixture
def sources() -> list[Counted]:
    return [Counted(torch.rand(3, 40, 48, generator=torch.Generator().manual_seed(i))) for i in range(3)]


def images_of(sources: list[Counted]) -> Images:
    pictures = open_images(torch.stack([source.pixels for source in sources]), labels=["a", "b", "c"])
    return Images(replace(picture, source=source) for picture, source in zip(pictures, sources, strict=True))


def test_pixels_are_read_once_and_are_those_that_the_model_sees(sources: list[Counted]) -> None:
    net, images = AnyOf([(5,)], grid=4).classifier(32), images_of(sources)
    wanted = net.prepare(images)
    kept = held(net, images)
    assert [source.reads for source in sources] == [1, 1, 1]  # nothing more until somebody asks
    for _ in range(3):
        assert torch.equal(net.prepare(kept), wanted)
    assert [source.reads for source in sources] == [2, 2, 2]
    assert torch.equal(net.prepare(kept[[2, 0]]), wanted[[2, 0]])
    assert (kept.names, kept.ids, kept.labels) == (images.names, images.ids, images.labels)


def test_what_is_beyond_the_limit_is_read_again(sources: list[Counted]) -> None:
    net, images = AnyOf([(5,)], grid=4).classifier(32), images_of(sources)
    kept = held(net, images, most=3 * 32 * 32 * 4)  # one of them
    for _ in range(2):
        for picture in kept:
            picture.decode()
    assert [source.reads for source in sources] == [1, 2, 2]


def test_a_cross_test_decodes_as_often_for_three_models_maps_as_for_two(sources: list[Counted]) -> None:
    nets = [AnyOf([(cell,)], grid=4).classifier(32) for cell in (5, 6, 9)]
    for net, name in zip(nets, "abc", strict=True):
        net.name = name
    reads = []
    for count in (2, 3):
        before = sum(source.reads for source in sources)
        cross_test(
            nets[:count], images_of(sources), "occlusion", "insertion",
            options={"window": 8, "stride": 8}, baseline="black", steps=4,
        )  # fmt: skip
        reads.append((sum(source.reads for source in sources) - before) // count)
    assert reads[0] == reads[1]  # for each model, however many maps it is shown


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_pixels_wait_on_the_device_of_the_model(sources: list[Counted]) -> None:
    net = AnyOf([(5,)], grid=4).classifier(32).to("cuda")
    kept = held(net, images_of(sources))
    assert {kept[0].decode().device.type, net.prepare(kept).device.type} == {"cuda"}
    assert torch.equal(net.prepare(kept), net.prepare(images_of(sources)))
