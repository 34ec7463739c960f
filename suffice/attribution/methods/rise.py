"""What the model says of many randomly masked images, averaged where each pixel was seen."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from torch import Tensor

from suffice.attribution.method import method
from suffice.options import Count, Range
from suffice.perturb.baselines import Baseline
from suffice.perturb.batch import Batch, Output
from suffice.vision.noise import uniform_noise

Border = Literal["reflect", "edge"]


@method("rise", reference="Petsiuk, Das, Saenko, RISE, BMVC 2018", questions=lambda net, options: options["masks"] + 1)
def rise(
    batch: Batch,
    *,
    masks: Count = 4000,
    side: Count = 7,
    share: Annotated[float, Range(0, 1, above=True, below=True)] = 0.5,
    baseline: Baseline = "mean",
    coverage: bool = False,
    border: Border = "reflect",
    output: Output = "score",
) -> Tensor:
    """Mean score of randomly masked images in which a pixel is visible.

    Args:
        batch: The images; all see the same masks, which depend on the seed alone.
        masks: How many.
        side: Cells per side of the random grid that is enlarged to a mask.
        share: Of cells that are seen.
        baseline: What shows where the mask is low; ``"mean"`` is zero after normalization, as published.
        coverage: Divide by how much each pixel was really seen, rather than by what is expected on average.
        border: Beyond the centers of the outermost cells a mask is mirrored, ``"reflect"``, as published, or stays as
            it is there, ``"edge"``.
        output: Average the ``"score"`` or the ``"logit"``.

    Returns:
        [B, H, W].
    """
    made = RandomMasks(masks, side, share, batch.seed, len(batch), border)
    image = torch.arange(len(batch), device=batch.pixels.device).repeat(masks)
    scores = batch.probe(baseline, output=output).ask(image, made)
    total, seen = made.sums(scores, image, len(batch), batch.net.size)
    # A pixel that no mask ever showed says nothing.
    weight = seen.clamp(min=torch.finfo(seen.dtype).tiny) if coverage else torch.full_like(seen, masks * share)
    return total / weight


class RandomMasks:
    """Masks from random grids of ``side`` cells a side, of which a ``share`` is seen, enlarged and shifted.

    They are made on demand, each a function of the seed and its number; each stands for as many questions as there are
    ``images``, one after the other.
    """

    def __init__(
        self, count: int, side: int, share: float, seed: int, images: int = 1, border: Border = "reflect"
    ) -> None:
        self.count, self.side, self.share, self.seed, self.images = count, side, share, seed, images
        self.border = border

    def __len__(self) -> int:
        return self.count * self.images

    def rows(self, rows: slice, size: tuple[int, int], device: torch.device) -> Tensor:
        """Some of the masks, [B, H, W]; see :class:`suffice.perturb.Masks`."""
        question = torch.arange(rows.start, min(rows.stop, len(self)), device=device)
        return self.make(question // self.images, size)

    def sums(self, weights: Tensor, image: Tensor, count: int, size: tuple[int, int]) -> tuple[Tensor, Tensor]:
        """Sums of all masks, weighted [K] for each image, [count, H, W], and plain, [1, H, W], the same for all."""
        each = weights.view(self.count, count)
        total = torch.zeros(count, size[0] * size[1], device=weights.device)
        seen = torch.zeros(1, size[0] * size[1], device=weights.device)
        for chunk in torch.arange(self.count, device=weights.device).split(256):
            rows = self.make(chunk, size).flatten(1)
            total += each[chunk].T @ rows
            seen += rows.sum(dim=0)
        return total.view(count, *size), seen.view(1, *size)

    def make(self, number: Tensor, size: tuple[int, int]) -> Tensor:
        """Masks [K, H, W] by their numbers [K].

        A grid of zeros and ones is enlarged bilinearly to one cell more than the image on each side, and cut out at a
        random offset within a cell, so that no pixel always lies on the border of a cell.
        """
        seeds = torch.full_like(number, self.seed)
        chance = uniform_noise(seeds, number, (self.side * self.side + 2,))
        grid = (chance[:, 2:] < self.share).float().view(-1, self.side, self.side)
        down, across = (_weights(length, self.side, chance[:, axis], self.border) for axis, length in enumerate(size))
        return down @ grid @ across.transpose(1, 2)


def _weights(length: int, side: int, chance: Tensor, border: Border) -> Tensor:
    """How much of each cell of a grid each pixel row shows, [K, length, side], for offsets given by chance [K]."""
    cell = -(-length // side)
    offset = (chance * cell).floor()
    pixel = torch.arange(length, device=chance.device) + offset[:, None]
    # Half-pixel centers of a grid enlarged to (side + 1) cells.
    position = (pixel + 0.5) * side / ((side + 1) * cell) - 0.5
    if border == "reflect":
        position = side - 1 - (side - 1 - position.abs()).abs()
    position = position.clamp(0, side - 1)
    return (1 - (position[:, :, None] - torch.arange(side, device=chance.device)).abs()).clamp(min=0)
