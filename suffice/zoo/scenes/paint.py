"""From plans to pixels: everything is painted in small windows of the images, many images at once."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from suffice.zoo.scenes.canvas import PIXELS, Canvas, Window, give
from suffice.zoo.scenes.code import PARTS, TYPES
from suffice.zoo.scenes.draws import Draws
from suffice.zoo.scenes.plan import Plan
from suffice.zoo.scenes.ranges import DISTRACTORS, OCCLUDERS, SIZE
from suffice.zoo.scenes.shapes import CRESTS, MARKINGS, OUTLINES, TAILS, TEXTURES, by_type

_BANK = 256
_OUTLINE, _TEXTURE, _MARKING, _CREST, _TAIL = range(len(PARTS))
_RINGS = TYPES[_TEXTURE].index("rings")

# Middles in radii (x right, y down), and sides of windows in pixels that hold the largest of its kind, turned.
_CREST_Y, _TAIL_Y, _MARKING_Y = -1.19, 1.16, 0.2
_BODY_WINDOW, _LIMB_WINDOW, _PATCH_WINDOW, _DISTRACTOR_WINDOW, _OCCLUDER_WINDOW = 44, 28, 18, 22, 38
_LIMB_SCALE, _MARKING_SCALE, _PATCH = 0.84, 0.86, 0.47
_RIM, _THIN_RIM = 1.8, 1.1  # pixels


def _nobody(plan: Plan) -> Tensor:
    return torch.zeros(len(plan), PIXELS, dtype=torch.int8, device=plan.x.device)


def paint_scenes(plan: Plan, *, owners: bool = True) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Paint what was planned.

    Args:
        plan: Of B images.
        owners: Whether to keep account of who owns each pixel.

    Returns:
        Pixels, float32 [B, 3, 56, 56] in [0, 1]; the owner of each pixel, int8 [B, 56, 56] (0 none, else part
        number + 1) and the same before things were put in front of the object, or None.

    Example:
        >>> from suffice.zoo.scenes.plan import plan_scenes
        >>> pixels, owner, whole = paint_scenes(plan_scenes(torch.arange(2)))
        >>> pixels.shape, owner.max().item()
        (torch.Size([2, 3, 56, 56]), 5)
    """
    canvas = Canvas(_ground(plan), _nobody(plan) if owners else None)
    _paint_distractors(canvas, plan)
    _paint_object(canvas, plan)
    whole = None if canvas.owner is None else canvas.owner.clone().view(-1, SIZE, SIZE)
    _paint_occluders(canvas, plan)
    pixels = _light(canvas.pixels.view(-1, 3, SIZE, SIZE), plan)
    return pixels, None if canvas.owner is None else canvas.owner.view(-1, SIZE, SIZE), whole


def silhouettes(plan: Plan) -> Tensor:
    """Where the whole object is, also where something hides it; much faster than painting.

    Args:
        plan: Of B images.

    Returns:
        bool [B, 56, 56].

    Example:
        >>> from suffice.zoo.scenes.plan import plan_scenes
        >>> silhouettes(plan_scenes(torch.arange(2))).shape
        torch.Size([2, 56, 56])
    """
    owners = _nobody(plan)
    for slot in (_CREST, _TAIL):
        window, outer, _ = _limb(plan, slot)
        give(owners, window, outer, 1)
    window, outer, _ = _body(plan)
    give(owners, window, outer, 1)
    return owners.view(-1, SIZE, SIZE) > 0


def _cover(distance: Tensor, sharpness: Tensor) -> Tensor:
    """How much of a pixel lies inside; ``sharpness`` is units of distance to widths of the soft edge, [B]."""
    return (0.5 - distance * sharpness[:, None, None]).clamp_(0, 1)


def _paint_object(canvas: Canvas, plan: Plan) -> None:
    rim = plan.colors["rim"]
    for slot in (_TAIL, _CREST):
        window, outer, inner = _limb(plan, slot)
        canvas.paint(window, [(outer, rim), (inner, plan.colors[PARTS[slot]])], slot + 1)

    window, outer, inner = _body(plan)
    textured = inner * plan.present[:, _TEXTURE, None, None]
    second = textured * _cover(-_texture(plan, window), plan.period * plan.radius / plan.softness)
    layers = [(outer, rim), (inner, plan.colors["first texture"]), (second, plan.colors["second texture"])]
    canvas.paint(window, layers, _OUTLINE + 1)
    canvas.own(window, textured, _TEXTURE + 1)

    window, patch, emblem = _marking(plan)
    canvas.paint(window, [(patch, plan.colors["patch"]), (emblem, plan.colors["emblem"])], _MARKING + 1)


def _limb(plan: Plan, slot: int) -> tuple[Window, Tensor, Tensor]:
    """Crest or tail: window, cover with its thin rim, cover without."""
    shapes, offset = (CRESTS, _CREST_Y) if slot == _CREST else (TAILS, _TAIL_Y)
    window = _on_object(plan, _LIMB_WINDOW, offset, _LIMB_SCALE)
    distance = by_type(shapes, plan.types[:, slot], window.x, window.y) * _LIMB_SCALE
    half_rim = (0.5 * _THIN_RIM / plan.radius)[:, None, None]
    present, sharpness = plan.present[:, slot, None, None], plan.radius / plan.softness
    return window, _cover(distance - half_rim, sharpness) * present, _cover(distance + half_rim, sharpness) * present


def _body(plan: Plan) -> tuple[Window, Tensor, Tensor]:
    """Window, cover with its rim, cover without."""
    window = _on_object(plan, _BODY_WINDOW, 0.0)
    distance = by_type(OUTLINES, plan.types[:, _OUTLINE], window.x, window.y)
    sharpness = plan.radius / plan.softness
    return window, _cover(distance, sharpness), _cover(distance + (_RIM / plan.radius)[:, None, None], sharpness)


def _marking(plan: Plan) -> tuple[Window, Tensor, Tensor]:
    """Window, cover of the plain patch, cover of the emblem on it."""
    window = _on_object(plan, _PATCH_WINDOW, _MARKING_Y, _MARKING_SCALE)
    patch = (window.x**2 + window.y**2).sqrt() * _MARKING_SCALE - _PATCH
    emblem = by_type(MARKINGS, plan.types[:, _MARKING], window.x, window.y) * _MARKING_SCALE
    present, sharpness = plan.present[:, _MARKING, None, None], plan.radius / plan.softness
    return window, _cover(patch, sharpness) * present, _cover(emblem, sharpness) * present


def _on_object(plan: Plan, side: int, offset: float, scale: float = 1.0) -> Window:
    """A window around a point above (negative) or below the middle of the body."""
    reach = offset * plan.radius
    x, y = plan.x - reach * plan.sin, plan.y + reach * plan.cos
    return Window(side, x, y, plan.cos, plan.sin, plan.radius * scale)


def _texture(plan: Plan, window: Window) -> Tensor:
    cos, sin = ((c / plan.period)[:, None, None] for c in (plan.texture_cos, plan.texture_sin))
    shift = plan.texture_shift[:, :, None, None]
    # Rings keep close to the middle of the body, so that they look like rings; all others may start anywhere.
    shift = torch.where(plan.types[:, _TEXTURE, None, None, None] == _RINGS, shift - 0.5, shift)
    x = window.x * cos + window.y * sin + shift[:, 0]
    y = window.y * cos - window.x * sin + shift[:, 1]
    return by_type(TEXTURES, plan.types[:, _TEXTURE], x, y)


def _paint_distractors(canvas: Canvas, plan: Plan) -> None:
    things = plan.distractors
    # Limbs are enlarged less than markings are, so that all have about the same size.
    slot = things.kind // 4
    scale = things.size * torch.tensor([1.0, 2.0, 1.45, 1.55], device=slot.device)[slot]
    softness = plan.softness[:, None].expand_as(scale).flatten()
    flat = (t.flatten() for t in (things.x, things.y, things.cos, things.sin, scale))
    window = Window(_DISTRACTOR_WINDOW, *flat)
    distance = by_type((*OUTLINES, *MARKINGS, *CRESTS, *TAILS), things.kind.flatten(), window.x, window.y)
    sharpness = scale.flatten() / softness
    shown = things.shown.flatten()[:, None, None]
    edge = (0.5 / scale.flatten())[:, None, None]
    outer, inner = _cover(distance - edge, sharpness) * shown, _cover(distance + edge, sharpness) * shown
    at = window.at
    for k in range(DISTRACTORS):
        window.at = at[k::DISTRACTORS]
        layers = [(outer[k::DISTRACTORS], things.second[:, k]), (inner[k::DISTRACTORS], things.color[:, k])]
        canvas.paint(window, layers)


def _paint_occluders(canvas: Canvas, plan: Plan) -> None:
    things = plan.occluders
    for k in range(OCCLUDERS):
        rows = things.shown[:, k].nonzero().flatten()
        if not len(rows):
            continue
        picked = (t[rows, k] for t in (things.x, things.y, things.cos, things.sin, things.size))
        window = Window(_OCCLUDER_WINDOW, *picked)
        sharpness = things.size[rows, k] / plan.softness[rows]
        cover = _cover(by_type((_blob, _bar), things.kind[rows, k], window.x, window.y), sharpness)
        stripes = cover * _cover((window.x - window.x.floor() - 0.5).abs() - 0.25, sharpness)
        # Only some images have one, so paint those apart and put them back.
        owner = None if canvas.owner is None else canvas.owner.index_select(0, rows)
        part = Canvas(canvas.pixels.index_select(0, rows), owner)
        part.paint(window, [(cover, things.color[rows, k]), (stripes, things.second[rows, k])])
        canvas.pixels.index_copy_(0, rows, part.pixels)
        if canvas.owner is not None and owner is not None:
            canvas.owner.index_copy_(0, rows, owner)


def _blob(x: Tensor, y: Tensor) -> Tensor:
    return 0.85 * ((x * x + 1.6 * y * y + 0.5 * x * y).sqrt() - 1)


def _bar(x: Tensor, y: Tensor) -> Tensor:
    return torch.maximum(x.abs() - 2.2, y.abs() - 0.5)


def _ground(plan: Plan) -> Tensor:
    """Two muted colors mixed by gradient, smooth noise and a faint pattern, [B, 3, PIXELS]."""
    weight = plan.background[:, :, None, None].unbind(1)
    line = torch.arange(SIZE, device=plan.x.device) + 0.5
    x, y = line[None, None, :], line[None, :, None]
    coarse, fine = _smooth_noise(str(plan.x.device))
    row, column = plan.noise_at[:, 0] % _BANK, plan.noise_at[:, 0] // _BANK % _BANK
    along = x * weight[6] + (y * weight[7] + weight[8])
    across = y * weight[6] - (x * weight[7] - weight[9])
    pattern = _wave(along) * (1 - weight[5] + weight[5] * _wave(across))
    mixture = weight[0] * (x / SIZE - 0.5) + (weight[1] * (y / SIZE - 0.5) + 0.5)
    mixture = mixture + weight[4] * pattern
    mixture += weight[2] * coarse[row, column]
    mixture += weight[3] * fine[row, column]
    mixture = mixture.clamp_(0, 1).flatten(1)[:, None]
    first, second = plan.colors["ground"][:, :, None], plan.colors["second ground"][:, :, None]
    return first + mixture * (second - first)


def _wave(phase: Tensor) -> Tensor:
    """Smooth wave of period 1 between -1 and 1, of two parabolas."""
    turn = phase - phase.floor() - 0.5
    return 16 * turn * (turn.abs() - 0.5)


def _light(pixels: Tensor, plan: Plan) -> Tensor:
    contrast, brightness, across, down, vignette, noise = plan.light[:, :, None, None].unbind(1)
    line = (torch.arange(SIZE, device=pixels.device) + 0.5) / (SIZE / 2) - 1
    x, y = line[None, None, :], line[None, :, None]
    gain = contrast * ((1 + across * x - vignette * x * x * 0.5) + (down * y - vignette * y * y * 0.5))
    bank = _white_noise(str(pixels.device))
    grain = bank[plan.noise_at[:, 1]].view_as(pixels) * noise[:, None]
    offset = 0.5 - 0.5 * contrast + brightness
    return (pixels * gain[:, None] + offset[:, None]).add_(grain).clamp_(0, 1)


@lru_cache(maxsize=8)
def _white_noise(device: str) -> Tensor:
    """All stretches of a long row of noise with variance 1, as a view [65536, 3 · PIXELS] that takes no memory."""
    index = torch.arange(65536 + 3 * PIXELS)
    ranges = {f"grain {k}": (-1.0, 1.0) for k in range(3)}
    total = torch.stack(list(Draws(index).uniform(ranges).values())).sum(dim=0)
    return total.float().to(device).unfold(0, 3 * PIXELS, 1)


@lru_cache(maxsize=8)
def _smooth_noise(device: str) -> tuple[Tensor, Tensor]:
    """Two views [256, 256, 56, 56] of smooth noise with variance 1, coarse and fine; they take no memory."""
    side = _BANK + SIZE
    views = []
    for name, width in (("coarse", 11), ("fine", 5)):
        field = Draws(torch.arange(side * side)).uniform({name: (-1, 1)})[name].view(side, side)
        for _ in range(3):
            for axis in (0, 1):
                # A running mean that wraps around, in float64: its last bits do not reach float32.
                field = sum(torch.roll(field, step, axis) for step in range(width)) / width  # type: ignore[assignment]
        views.append((field / field.std()).float().to(device).unfold(0, SIZE, 1).unfold(1, SIZE, 1))
    return views[0], views[1]
