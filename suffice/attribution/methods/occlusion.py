"""What is lost when a window of the image is hidden."""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor

from suffice.attribution.method import method
from suffice.errors import OptionError
from suffice.options import Count
from suffice.perturb.baselines import Baseline
from suffice.perturb.batch import Batch, Output


@method(
    "occlusion",
    reference="Zeiler, Fergus, Visualizing and Understanding Convolutional Networks, ECCV 2014",
    questions=lambda net, options: (
        1
        + prod(len(range(0, length - options["window"] + options["stride"], options["stride"])) for length in net.size)
    ),
)
def occlusion(
    batch: Batch, *, window: Count = 32, stride: Count = 16, baseline: Baseline = "gray", output: Output = "score"
) -> Tensor:
    """Drop of the score when a sliding window hides part of the image.

    Args:
        batch: The images.
        window: Height and width of the window in pixels.
        stride: By how many pixels it moves; the last windows may reach beyond the border.
        baseline: What the window shows.
        output: What is lost: of the ``"score"`` or of the ``"logit"``.

    Returns:
        [B, H, W]: at each pixel the mean loss over the windows that hide it.
    """
    height, width = batch.net.size
    if not (1 <= stride <= window <= min(height, width)):
        raise OptionError(
            f"window={window} and stride={stride}; expected 1 ≤ stride ≤ window ≤ {min(height, width)}, so that every "
            "pixel is hidden at some time."
        )
    windows = Windows(len(batch), (height, width), window, stride, batch.pixels.device)
    image = torch.arange(len(batch), device=batch.pixels.device).repeat_interleave(windows.positions)
    probe = batch.probe(baseline, output=output)
    left = probe.ask(image, windows).view(len(batch), *windows.grid)
    lost = probe.whole[:, None, None] - left
    rows, columns = (covers.float() for covers in windows.covers)
    total = torch.einsum("bij,ih,jw->bhw", lost, rows, columns)
    return total / torch.outer(rows.sum(dim=0), columns.sum(dim=0))


class Windows:
    """Masks that hide a window sliding over each of several images, made on demand."""

    def __init__(self, images: int, size: tuple[int, int], window: int, stride: int, device: torch.device) -> None:
        # Which rows (columns) of pixels the window covers at each of its positions, bool [positions, length].
        self.covers = tuple(_covers(length, window, stride, device) for length in size)
        self.grid = (len(self.covers[0]), len(self.covers[1]))
        self.positions = self.grid[0] * self.grid[1]
        self._count = images * self.positions

    def __len__(self) -> int:
        return self._count

    def rows(self, rows: slice, size: tuple[int, int], device: torch.device) -> Tensor:
        """Some of the masks, bool [B, H, W], False in the window; see :class:`suffice.perturb.Masks`."""
        position = torch.arange(rows.start, min(rows.stop, self._count), device=device) % self.positions
        down, across = self.covers[0][position // self.grid[1]], self.covers[1][position % self.grid[1]]
        return ~(down[:, :, None] & across[:, None, :])


def _covers(length: int, window: int, stride: int, device: torch.device) -> Tensor:
    starts = torch.arange(0, length - window + stride, stride, device=device)
    pixel = torch.arange(length, device=device)
    return (pixel >= starts[:, None]) & (pixel < starts[:, None] + window)
