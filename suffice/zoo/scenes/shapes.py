"""The four types of every part, as distances: negative inside, positive outside, in units of the body's radius.

``x`` points right and ``y`` down. Only sums, products, roots and comparisons are used on pixels, which every device
rounds alike. Distances are true near the edges, where they are needed for soft borders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Shape = Callable[[Tensor, Tensor], Tensor]


def by_type(shapes: Sequence[Shape], types: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """For every image the value of its own type of shape, so that no other is computed.

    Args:
        shapes: One function per type.
        types: int64 [B].
        x: Coordinates, float32 [B, H, W].
        y: Coordinates, float32 [B, H, W].

    Returns:
        float32 [B, H, W].

    Example:
        >>> x = torch.zeros(2, 1, 1)
        >>> by_type(OUTLINES, torch.tensor([0, 1]), x, x).flatten().tolist()
        [-0.98..., -0.87...]
    """
    value = torch.empty_like(x)
    for kind, shape in enumerate(shapes):
        rows = (types == kind).nonzero().flatten()
        if len(rows):
            value.index_copy_(0, rows, shape(x.index_select(0, rows), y.index_select(0, rows)))
    return value


def _radius(x: Tensor, y: Tensor) -> Tensor:
    return (x * x + y * y).sqrt()


def _box(x: Tensor, y: Tensor, half_width: float, half_height: float) -> Tensor:
    return torch.maximum(x.abs() - half_width, y.abs() - half_height)


# Outlines: about the same area (three squared radii) and height, so that crest and tail fit each of them.


def _disc(x: Tensor, y: Tensor) -> Tensor:
    return _radius(x, y) - 0.98


def _square(x: Tensor, y: Tensor) -> Tensor:
    return _box(x, y, 0.87, 0.87)


def _bell(x: Tensor, y: Tensor) -> Tensor:
    slope = 0.894 * x.abs() - 0.447 * y - 0.72
    return torch.maximum(slope, y.abs() - 0.88)


def _star(x: Tensor, y: Tensor) -> Tensor:
    # Four points on the diagonals. Folding the plane along its symmetries leaves one straight edge.
    x, y = x.abs(), y.abs()
    return 0.931 * (torch.maximum(x, y) - 0.68) - 0.366 * torch.minimum(x, y)


OUTLINES: tuple[Shape, ...] = (_disc, _square, _bell, _star)


# Markings: within 0.42 of their middle.


def _cross(x: Tensor, y: Tensor) -> Tensor:
    return torch.minimum(_box(x, y, 0.42, 0.13), _box(x, y, 0.13, 0.42))


def _ring(x: Tensor, y: Tensor) -> Tensor:
    return (_radius(x, y) - 0.31).abs() - 0.105


def _bars(x: Tensor, y: Tensor) -> Tensor:
    return _box(x, y.abs() - 0.23, 0.38, 0.115)


def _wedge(x: Tensor, y: Tensor) -> Tensor:
    return torch.maximum(0.87 * x.abs() - 0.49 * y - 0.2, y - 0.3)


MARKINGS: tuple[Shape, ...] = (_cross, _ring, _bars, _wedge)


# Crests stand on the body: y = 0.35 is about its top, and what lies below is covered by it.


def _ball(x: Tensor, y: Tensor) -> Tensor:
    return torch.minimum(_radius(x, y + 0.06) - 0.42, _box(x, y - 0.45, 0.13, 0.3))


def _cone(x: Tensor, y: Tensor) -> Tensor:
    return torch.maximum(0.86 * x.abs() - 0.51 * y - 0.27, y - 0.7)


def _horns(x: Tensor, y: Tensor) -> Tensor:
    bowl = (_radius(x, (y + 0.08).clamp_min(0)) - 0.47).abs() - 0.16
    return torch.minimum(torch.maximum(bowl, -y - 0.5), _box(x, y - 0.5, 0.2, 0.2))


def _hammer(x: Tensor, y: Tensor) -> Tensor:
    return torch.minimum(_box(x, y + 0.3, 0.66, 0.18), _box(x, y - 0.28, 0.2, 0.5))


CRESTS: tuple[Shape, ...] = (_ball, _cone, _horns, _hammer)


# Tails hang from the body: y = -0.35 is about its lower end.


def _legs(x: Tensor, y: Tensor) -> Tensor:
    return _box(x.abs() - 0.38, y + 0.14, 0.17, 0.6)


def _fishtail(x: Tensor, y: Tensor) -> Tensor:
    spread = torch.maximum(0.82 * x.abs() - 0.57 * y - 0.32, y - 0.46)
    notched = torch.maximum(spread, 0.8 * (y - 0.02) - 0.6 * x.abs())
    return torch.minimum(notched, _box(x, y + 0.45, 0.14, 0.3))


def _diamond(x: Tensor, y: Tensor) -> Tensor:
    return torch.minimum(0.71 * (x.abs() + y.abs()) - 0.36, _box(x, y + 0.45, 0.13, 0.3))


def _loop(x: Tensor, y: Tensor) -> Tensor:
    return torch.minimum((_radius(x, y) - 0.36).abs() - 0.14, _box(x, y + 0.55, 0.13, 0.2))


TAILS: tuple[Shape, ...] = (_legs, _fishtail, _diamond, _loop)


# Textures: signed heights in units of their period, positive on one color and negative on the other.


def _wave(phase: Tensor) -> Tensor:
    """Triangle wave of period 1 with unit slope: the distance to the nearest change of sign."""
    return (phase - phase.floor() - 0.5).abs() - 0.25


def _stripes(x: Tensor, y: Tensor) -> Tensor:
    return _wave(x)


def _dots(x: Tensor, y: Tensor) -> Tensor:
    row = y.floor()
    x = x + 0.5 * row
    return 0.31 - _radius(x - x.floor() - 0.5, y - row - 0.5)


def _checks(x: Tensor, y: Tensor) -> Tensor:
    x, y = 0.62 * x, 0.62 * y
    return 6 * _wave(x) * _wave(y)


def _rings(x: Tensor, y: Tensor) -> Tensor:
    return _wave(_radius(x, y))


TEXTURES: tuple[Shape, ...] = (_stripes, _dots, _checks, _rings)
