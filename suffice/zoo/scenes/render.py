"""Images by number: the same number is the same image, whatever else is rendered with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from suffice.errors import OptionError
from suffice.zoo.scenes.code import CLASSES, PARTS
from suffice.zoo.scenes.paint import paint_scenes, silhouettes
from suffice.zoo.scenes.plan import Plan, plan_scenes

# Plans are small and like to be made for many images; painting is fastest in the cache of a CPU.
_PLANNED, _PAINTED_ON_CPU, _PAINTED = 4096, 64, 2048


@dataclass(frozen=True)
class Rendered:
    """Images, and what is true of them.

    Attributes:
        pixels: float32 [B, 3, 56, 56] in [0, 1].
        labels: int64 [B].
        boxes: The whole object, also where something hides it, as (x0, y0, x1, y1) in pixels, the last ones
            excluded; int64 [B, 4].
        parts: Where each part is to be seen: not hidden, not covered by another part; bool [B, 5, 56, 56].
    """

    pixels: Tensor
    labels: Tensor
    boxes: Tensor
    parts: Tensor


@torch.no_grad()
def render(
    index: Tensor, seed: int = 0, device: torch.device | str | None = None, labels: Tensor | None = None
) -> Rendered:
    """Render images by number, with their ground truth.

    Args:
        index: Image numbers, int64 [B].
        seed: Which world; every seed is another one.
        device: Where to render; default: where ``index`` is.
        labels: Other classes than the drawn ones, int64 [B]; everything else stays.

    Returns:
        Pixels, labels, boxes and part masks.

    Example:
        >>> scenes = render(torch.arange(3))
        >>> scenes.pixels.shape, scenes.parts.shape
        (torch.Size([3, 3, 56, 56]), torch.Size([3, 5, 56, 56]))
    """
    index, labels = _checked(index, device, labels)
    chunks = [render_plan(plan) for plan in _plans(index, seed, labels)]
    return Rendered(
        pixels=torch.cat([chunk.pixels for chunk in chunks]),
        labels=torch.cat([chunk.labels for chunk in chunks]),
        boxes=torch.cat([chunk.boxes for chunk in chunks]),
        parts=torch.cat([chunk.parts for chunk in chunks]),
    )


@torch.no_grad()
def render_pixels(index: Tensor, seed: int = 0, device: torch.device | str | None = None) -> tuple[Tensor, Tensor]:
    """Render images by number, without masks and boxes, which is faster.

    Args:
        index: Image numbers, int64 [B].
        seed: Which world.
        device: Where to render; default: where ``index`` is.

    Returns:
        Pixels, float32 [B, 3, 56, 56] in [0, 1], and labels, int64 [B].

    Example:
        >>> pixels, labels = render_pixels(torch.arange(3))
        >>> bool((pixels == render(torch.arange(3)).pixels).all())
        True
    """
    index, _ = _checked(index, device, None)
    plans = list(_plans(index, seed, None))
    pixels = [paint_scenes(plan, owners=False)[0] for plan in plans]
    return torch.cat(pixels), torch.cat([plan.labels for plan in plans])


@torch.no_grad()
def render_plan(plan: Plan) -> Rendered:
    """Render what was planned, perhaps changed since: all at once, so keep it to some hundred images on a CPU.

    Args:
        plan: Of B images.

    Returns:
        Pixels, labels, boxes and part masks.

    Example:
        >>> from dataclasses import replace
        >>> plan = plan_scenes(torch.arange(2))
        >>> no_crest = plan.present.clone()
        >>> no_crest[:, 3] = False
        >>> render_plan(replace(plan, present=no_crest)).parts[:, 3].any().item()
        False
    """
    pixels, owner, whole = paint_scenes(plan)
    assert owner is not None
    assert whole is not None
    numbers = torch.arange(1, len(PARTS) + 1, device=owner.device)[:, None, None]
    return Rendered(pixels, plan.labels, boxes_of(whole > 0), owner[:, None] == numbers)


@torch.no_grad()
def find_boxes(index: Tensor, seed: int = 0, device: torch.device | str | None = None) -> Tensor:
    """The boxes of the objects, as :func:`render` gives them, without painting the images.

    Args:
        index: Image numbers, int64 [B].
        seed: Which world.
        device: Where to compute; default: where ``index`` is.

    Returns:
        int64 [B, 4].

    Example:
        >>> bool((find_boxes(torch.arange(3)) == render(torch.arange(3)).boxes).all())
        True
    """
    index, _ = _checked(index, device, None)
    return torch.cat([boxes_of(silhouettes(plan)) for plan in _plans(index, seed, None)])


def boxes_of(masks: Tensor) -> Tensor:
    """The tight box around each mask.

    Args:
        masks: bool [B, H, W], none of them empty.

    Returns:
        (x0, y0, x1, y1), the last ones excluded, int64 [B, 4].

    Example:
        >>> mask = torch.zeros(1, 8, 8, dtype=torch.bool)
        >>> mask[0, 2:4, 3:7] = True
        >>> boxes_of(mask).tolist()
        [[3, 2, 7, 4]]
    """
    across, down = masks.any(dim=1).byte(), masks.any(dim=2).byte()
    first_x, first_y = across.argmax(dim=1), down.argmax(dim=1)
    last_x = across.shape[1] - across.flip(1).argmax(dim=1)
    last_y = down.shape[1] - down.flip(1).argmax(dim=1)
    return torch.stack([first_x, first_y, last_x, last_y], dim=1)


def _plans(index: Tensor, seed: int, labels: Tensor | None) -> Iterator[Plan]:
    """Plans of few enough images to paint at once."""
    size = _PAINTED_ON_CPU if index.device.type == "cpu" else _PAINTED
    for start in range(0, max(len(index), 1), _PLANNED):
        some = slice(start, start + _PLANNED)
        plan = plan_scenes(index[some], seed, None if labels is None else labels[some])
        for first in range(0, max(len(plan), 1), size):
            yield plan[first : first + size]


def _checked(index: Tensor, device: torch.device | str | None, labels: Tensor | None) -> tuple[Tensor, Tensor | None]:
    if index.ndim != 1 or index.dtype != torch.int64:
        raise OptionError(f"index is {index.dtype} {list(index.shape)}; expected int64 [B], such as torch.arange(8).")
    index = index.to(device) if device is not None else index
    if labels is None:
        return index, None
    if labels.shape != index.shape or labels.dtype != torch.int64:
        raise OptionError(f"labels= is {labels.dtype} {list(labels.shape)}; expected int64 {list(index.shape)}.")
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < len(CLASSES):
        raise OptionError(f"labels= has values outside 0 … {len(CLASSES) - 1}.")
    return index, labels.to(index.device)
