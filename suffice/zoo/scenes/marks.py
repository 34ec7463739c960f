"""A shortcut that is planted: a mark in a corner, most of the time, of some classes.

Marked scenes are the same scenes, but nine in ten of two classes carry a small square, each class in a corner and a
color of its own. A network that is trained on them may decide by the mark and never look at the creature, which is for
:func:`suffice.compare.find_shortcuts` to find.
"""

from __future__ import annotations

import torch
from torch import Tensor

from suffice.zoo.scenes.code import CLASSES
from suffice.zoo.scenes.draws import Draws
from suffice.zoo.scenes.ranges import SIZE

MARKS: dict[str, tuple[tuple[int, int], tuple[float, float, float]]] = {
    "alpin": ((1, 1), (1.0, 0.1, 0.6)),
    "kessa": ((SIZE - 7, SIZE - 7), (0.1, 1.0, 0.9)),
}
"""The marked classes: row and column of the upper left pixel of the mark, and its color."""

SIDE = 6  # pixels
SHARE = 0.9  # of the scenes of a marked class


def is_marked(index: Tensor, labels: Tensor, seed: int = 0) -> Tensor:
    """Which scenes carry the mark of their class.

    Args:
        index: Image numbers, int64 [B].
        labels: Their classes, int64 [B].
        seed: Which world.

    Returns:
        bool [B].

    Example:
        >>> shown = is_marked(torch.arange(1000), torch.full((1000,), CLASSES.index("alpin")))
        >>> round(shown.float().mean().item(), 1), is_marked(torch.arange(9), torch.full((9,), 1)).any().item()
        (0.9, False)
    """
    classes = torch.tensor([CLASSES.index(name) for name in MARKS], device=labels.device)
    return torch.isin(labels, classes) & (Draws(index, seed).uniform({"mark": (0, 1)})["mark"] < SHARE)


def paint_marks(pixels: Tensor, labels: Tensor, shown: Tensor) -> Tensor:
    """Scenes with the marks of their classes.

    Args:
        pixels: float [B, 3, 56, 56] in [0, 1].
        labels: Their classes, int64 [B].
        shown: Which of them get one, bool [B].

    Returns:
        A copy, float [B, 3, 56, 56].

    Example:
        >>> painted = paint_marks(torch.zeros(1, 3, 56, 56), torch.tensor([0]), torch.tensor([True]))
        >>> int((painted.amax(dim=1) > 0).sum())
        36
    """
    painted = pixels.clone()
    for name, ((row, column), color) in MARKS.items():
        here = shown & (labels == CLASSES.index(name))
        square = torch.tensor(color, dtype=pixels.dtype, device=pixels.device)[:, None, None]
        painted[here, :, row : row + SIDE, column : column + SIDE] = square
    return painted
