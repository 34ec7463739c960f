"""Several sets of maps of the same images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from suffice import Classifier, Runner, cross_test, measure
from suffice.metrics import Scores, find_protocol
from suffice.metrics.together import Maps, measure_together
from suffice.testing import AnyOf
from suffice.vision import Images, open_images

METRICS = ("insertion", "deletion")
STEPS = {"steps": 6}


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
    return [Counted(torch.rand(3, 40, 48, generator=torch.Generator().manual_seed(i))) for i in range(5)]


@pytest.fixture
def net() -> Classifier:
    return AnyOf([(5,), (6, 9)], grid=4).classifier(32)


@pytest.fixture
def several(sources: list[Counted]) -> list[Maps]:
    """Maps of three sizes, and every way to say which classes are asked about."""
    random = torch.Generator().manual_seed(0)
    sizes, targets = (4, 7, 4, 40), (1, None, torch.tensor([0, 1, 1, 0, 1]), 0)
    maps = [torch.rand(len(sources), size, size, generator=random) for size in sizes]
    return [Maps(one, asked, "given") for one, asked in zip(maps, targets, strict=True)]


def images_of(sources: Sequence[Counted]) -> Images:
    pictures = open_images(torch.stack([source.pixels for source in sources]))
    return Images(replace(picture, source=source) for picture, source in zip(pictures, sources, strict=True))


def together(
    net: Classifier, images: Images, several: Sequence[Maps], runner: Runner, **options: object
) -> list[Scores]:
    chosen = STEPS | options
    return measure_together(net, images, several, METRICS, find_protocol("jiang"), chosen, seed=3, runner=runner)


@pytest.mark.parametrize("batch", [1, 3, 8, 64])
@pytest.mark.parametrize("baseline", ["blur", ("noise", "black")])
def test_each_gets_the_scores_that_it_gets_alone(net, sources, several, batch, baseline) -> None:
    images = images_of(sources)
    found = together(net, images, several, Runner(net, batch_size=batch), baseline=baseline)
    for one, scores in zip(several, found, strict=True):
        alone = measure(
            net, images, one.maps, METRICS, "jiang", targets=one.targets, target_class="predicted", seed=3,
            baseline=baseline, **STEPS,
        )  # fmt: skip
        assert torch.equal(scores.targets, alone.targets)
        assert (scores.names, scores.ids) == (alone.names, alone.ids)
        for name in METRICS:
            for part, outcome in alone.outcomes[name].with_parts(name).items():
                own = scores.outcomes[name].with_parts(name)[part]
                torch.testing.assert_close(own.values, outcome.values)
                for tensor in ("y", "whole", "hidden"):
                    torch.testing.assert_close(getattr(own.curves, tensor), getattr(outcome.curves, tensor))


def test_an_image_is_decoded_and_asked_about_whole_but_once(net, sources, several) -> None:
    images, runner = images_of(sources), Runner(net, batch_size=8)
    before = [source.reads for source in sources]
    alone = []
    for count in (1, 4):
        asked = runner.counters.forwards
        together(net, images, several[:count], runner)
        alone.append(runner.counters.forwards - asked)
    assert [source.reads - earlier for source, earlier in zip(sources, before, strict=True)] == [2] * len(sources)
    whole = len(sources)
    assert alone[1] - whole == 4 * (alone[0] - whole)


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
