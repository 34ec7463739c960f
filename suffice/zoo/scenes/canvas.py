"""Windows of images, and laying colors over each other in them."""

from __future__ import annotations

import torch
from torch import Tensor

from suffice.zoo.scenes.ranges import SIZE

PIXELS = SIZE * SIZE


class Window:
    """A square of pixels around a point in each image, with coordinates turned and scaled about that point.

    Args:
        side: Pixels.
        middle_x: Where in the image, [B].
        middle_y: Where in the image, [B].
        cos: Direction, [B].
        sin: Direction, [B].
        scale: Pixels a unit, [B].
    """

    def __init__(self, side: int, middle_x: Tensor, middle_y: Tensor, cos: Tensor, sin: Tensor, scale: Tensor) -> None:
        left = (middle_x - side / 2).round().clamp(0, SIZE - side)
        top = (middle_y - side / 2).round().clamp(0, SIZE - side)
        steps = torch.arange(side, device=left.device)
        across = ((left + 0.5 - middle_x)[:, None] + steps) / scale[:, None]
        down = ((top + 0.5 - middle_y)[:, None] + steps) / scale[:, None]
        self.x = (across * cos[:, None])[:, None, :] + (down * sin[:, None])[:, :, None]
        self.y = (down * cos[:, None])[:, :, None] - (across * sin[:, None])[:, None, :]
        columns, rows = left.long()[:, None] + steps, top.long()[:, None] + steps
        self.at = (rows[:, :, None] * SIZE + columns[:, None, :]).flatten(1)  # [B, side²]


class Canvas:
    """Images in the making, and who owns each pixel: 0 the surroundings, 1 to 5 the parts."""

    def __init__(self, pixels: Tensor, owner: Tensor | None) -> None:
        self.pixels = pixels  # [B, 3, PIXELS]
        self.owner = owner  # int8 [B, PIXELS], or None: nobody asks

    def paint(self, window: Window, layers: list[tuple[Tensor, Tensor]], owner: int = 0) -> None:
        """Lay colors over each other; whoever covers half of a pixel owns it.

        Args:
            window: Where.
            layers: Cover in [0, 1], [B, side, side], and color [B, 3], from bottom to top. The first is the largest.
            owner: Who gets the pixels.
        """
        at = window.at[:, None].expand(-1, 3, -1)
        value = self.pixels.gather(2, at)
        for cover, color in layers:
            value += (color[:, :, None] - value).mul_(cover.flatten(1)[:, None])
        self.pixels.scatter_(2, at, value)
        self.own(window, layers[0][0], owner)

    def own(self, window: Window, cover: Tensor, owner: int) -> None:
        """Give the pixels that are more than half covered to an owner."""
        if self.owner is not None:
            give(self.owner, window, cover, owner)


def give(owners: Tensor, window: Window, cover: Tensor, owner: int) -> None:
    """Write an owner into int8 [B, PIXELS] wherever the cover, [B, side, side], is more than half."""
    before = owners.gather(1, window.at)
    owners.scatter_(1, window.at, torch.where(cover.flatten(1) > 0.5, owner, before))
