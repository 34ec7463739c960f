"""Stability: do MSEs stay sufficient when something changes that should not matter?"""

from __future__ import annotations

import io
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from suffice.evidence.beyond.block import Block
from suffice.evidence.search.criterion import Criterion
from suffice.perturb.baselines import Baseline
from suffice.perturb.runner import Runner

JPEG_QUALITY = 75


def jpeg(pixels: Tensor) -> Tensor:
    """Images [N, 3, H, W] in [0, 1] as they are after JPEG of quality 75."""
    decoded = []
    for image in (pixels.clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy():
        file = io.BytesIO()
        Image.fromarray(image).save(file, "JPEG", quality=JPEG_QUALITY)
        decoded.append(torch.from_numpy(np.array(Image.open(file))))
    return (torch.stack(decoded).permute(0, 3, 1, 2) / 255).to(pixels)


def shift(pixels: Tensor) -> Tensor:
    """Images [N, 3, H, W] moved by one pixel to the right and down, with the edge repeated."""
    return torch.nn.functional.pad(pixels, (1, 0, 1, 0), mode="replicate")[..., :-1, :-1]


CHANGES: dict[str, Callable[[Tensor], Tensor]] = {"jpeg": jpeg, "shift": shift}
"""Small changes of images by name, from pixels [N, 3, H, W] in [0, 1] to the same shape."""


class Told(NamedTuple):
    """What a model makes of an MSE after a change."""

    ratio: float
    suffices: bool


# Runners of the same models in bfloat16, so that weights are converted once.
_ROUNDED: WeakKeyDictionary[Runner, Runner] = WeakKeyDictionary()


def other_baseline(baseline: Baseline, second: Baseline | None) -> Baseline:
    """The second baseline where there is one; else the mean color of the model, or blur in place of it."""
    if second is not None:
        return second
    return "blur" if isinstance(baseline, str) and baseline in ("gray", "mean") else "gray"


def answers_under_changes(block: Block) -> list[list[dict[str, Told]]]:
    """For each MSE of each image, its ratio under each of some small changes, and whether it suffices there.

    Ratios are to the confidence on the whole image after the same change: ``"jpeg"`` (quality 75), ``"shift"`` (one
    pixel to the right and down), ``"baseline"`` (the second one, or the mean color; blur where that was the first) and
    ``"precision"`` (bfloat16).

    Example:
        >>> from suffice.evidence import find_evidence
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(1, 2)], grid=3)
        >>> net, image = oracle.classifier(24), oracle.image(24)
        >>> found = find_evidence(net, image, targets=1, grid=3, baseline="black", second_baseline="black")
        >>> answers_under_changes(Block(Runner(net), image[None], ["a"], found))[0][0]["shift"]
        Told(ratio=1.0, suffices=True)
    """
    if block.runner not in _ROUNDED:
        runner = block.runner
        _ROUNDED[runner] = Runner(runner.net, precision="bf16", batch_size=runner.batch_size, counters=runner.counters)
    chosen = block.settings
    asked = {name: told(block, block.criterion(pixels=change(block.pixels))) for name, change in CHANGES.items()}
    baseline = other_baseline(chosen.baseline, chosen.second_baseline)
    asked["baseline"] = told(block, block.criterion(baseline=baseline))
    asked["precision"] = told(block, block.criterion(runner=_ROUNDED[block.runner]))
    return [
        [dict(zip(asked, under, strict=True)) for under in zip(*of_image, strict=True)]
        for of_image in zip(*asked.values(), strict=True)
    ]


def told(block: Block, criterion: Criterion) -> list[list[Told]]:
    """What another criterion for the same images says of each MSE of each image of a block."""
    mses = block.mses()
    answers = criterion.ask(mses.slot, mses.region)
    every = map(Told, answers.ratio.tolist(), answers.suffices.tolist())
    return [list(islice(every, len(e.mses))) for e in block.evidence]
