"""What is to be seen in each image, before a pixel is painted: all random choices, by name."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

import torch
from torch import Tensor

from suffice.zoo.scenes.code import CLASSES, PARTS, types_of
from suffice.zoo.scenes.colors import color
from suffice.zoo.scenes.draws import Draws
from suffice.zoo.scenes.ranges import DISTRACTORS, OCCLUDERS, PALETTE, RANGES, SIZE


@dataclass(frozen=True)
class Things:
    """Small things, ``K`` an image, in pixels. Distractors use one of four part slots, occluders a blob or a bar."""

    shown: Tensor  # bool [B, K]
    kind: Tensor  # int64 [B, K]
    x: Tensor  # middle [B, K]
    y: Tensor
    cos: Tensor  # direction [B, K]
    sin: Tensor
    size: Tensor  # [B, K]
    color: Tensor  # [B, K, 3]
    second: Tensor  # [B, K, 3]: rim of a distractor, stripes of an occluder


@dataclass(frozen=True)
class Plan:
    """All that an image depends on. Change fields with ``dataclasses.replace`` to see what a single one does.

    Tensors are float32 unless said otherwise.
    """

    labels: Tensor  # int64 [B]
    types: Tensor  # int64 [B, 5]
    present: Tensor  # bool [B, 5]
    x: Tensor  # middle of the body in pixels [B]
    y: Tensor
    radius: Tensor  # pixels [B]
    cos: Tensor  # rotation of the object [B]
    sin: Tensor
    softness: Tensor  # width of every edge in pixels [B]
    period: Tensor  # of the texture, in radii [B]
    texture_cos: Tensor
    texture_sin: Tensor
    texture_shift: Tensor  # [B, 2], in periods
    colors: dict[str, Tensor] = field(repr=False)  # name to [B, 3]
    distractors: Things = field(repr=False)
    occluders: Things = field(repr=False)
    background: Tensor = field(repr=False)  # [B, 10]: weights, directions and phases, see paint
    noise_at: Tensor = field(repr=False)  # int64 [B, 2]: where in the stored noise to read, smooth and grain
    light: Tensor = field(repr=False)  # [B, 6]: contrast, brightness, gradient x and y, vignette, noise

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: slice) -> Plan:
        return _sliced(self, rows)


def _sliced(part: Any, rows: slice) -> Any:
    """The same rows of every tensor."""
    if isinstance(part, Tensor):
        return part[rows]
    if isinstance(part, dict):
        return {name: _sliced(entry, rows) for name, entry in part.items()}
    return type(part)(**{entry.name: _sliced(getattr(part, entry.name), rows) for entry in fields(part)})


def labels_of(index: Tensor, seed: int = 0) -> Tensor:
    """The class of each image, without painting it.

    Args:
        index: Image numbers, int64 [B].
        seed: Which world.

    Returns:
        int64 [B].

    Example:
        >>> labels_of(torch.arange(5)).shape
        torch.Size([5])
    """
    return Draws(index, seed).choice("label", len(CLASSES))


def plan_scenes(index: Tensor, seed: int = 0, labels: Tensor | None = None) -> Plan:
    """Draw everything that the images depend on.

    Args:
        index: Image numbers, int64 [B].
        seed: Which world.
        labels: Other classes than the drawn ones, int64 [B]; everything else stays.

    Returns:
        The plan, on the device of ``index``.

    Example:
        >>> plan = plan_scenes(torch.arange(4), labels=torch.tensor([3, 3, 3, 3]))
        >>> plan.types[0].tolist(), len(plan)
        ([0, 3, 1, 2, 3], 4)
    """
    draws = Draws(index, seed)
    labels = draws.choice("label", len(CLASSES)) if labels is None else labels
    drawn = draws.uniform(RANGES)
    # The object reaches 1.65 radii up and 1.6 down.
    reach = SIZE / 2 - 1.65 * drawn["radius"]
    cos, sin = _direction(drawn["angle"])
    texture_cos, texture_sin = _direction(drawn["texture angle"])
    occluders = (drawn["occluded"] < 0.40).long() + (drawn["occluded"] < 0.10).long()
    colors = _colors(drawn)
    x, y = SIZE / 2 + (reach + 3.0) * drawn["x"], SIZE / 2 + reach * drawn["y"]
    return Plan(
        labels=labels,
        types=types_of(labels),
        present=_present(drawn, occluders),
        x=x.float(),
        y=y.float(),
        radius=drawn["radius"].float(),
        cos=cos,
        sin=sin,
        softness=drawn["softness"].float(),
        period=drawn["texture period"].float(),
        texture_cos=texture_cos,
        texture_sin=texture_sin,
        texture_shift=torch.stack([drawn["texture shift x"], drawn["texture shift y"]], dim=1).float(),
        colors=colors,
        distractors=_distractors(drawn, colors["rim"], (x, y, cos, sin)),
        occluders=_occluders(drawn, occluders, x, y),
        background=_background(drawn),
        noise_at=draws.words("smooth noise", "grain").T & 0xFFFF,
        light=_light(drawn),
    )


def _direction(turns: Tensor) -> tuple[Tensor, Tensor]:
    # In float64 first, so that the last bit of cos on another device is lost when rounding to float32.
    angle = turns * (2 * math.pi)
    return angle.cos().float(), angle.sin().float()


def _present(drawn: dict[str, Tensor], occluders: Tensor) -> Tensor:
    """Which parts an object has: any one but the outline may be missing, or two where nothing hides the object."""
    order = torch.stack([drawn[f"missing {part}"] for part in PARTS[1:]], dim=1).argsort(dim=1)
    count = (drawn["missing"] < 0.20).long() + ((drawn["missing"] < 0.05) & (occluders == 0)).long()
    # Behind two occluders nothing is missing.
    keep = (order >= count[:, None]) | (occluders == 2)[:, None]
    return torch.cat([torch.ones_like(keep[:, :1]), keep], dim=1)


def _colors(drawn: dict[str, Tensor]) -> dict[str, Tensor]:
    """Vivid parts on a muted ground: dark rims on light grounds, light rims on dark ones."""
    dark = drawn["dark"] < 0.5
    levels, chromas, hues = [], [], []
    for name, (on_dark, on_light, chroma) in PALETTE.items():
        low, high = (torch.where(dark, a, b) for a, b in zip(on_dark, on_light, strict=True))
        levels.append(low + (high - low) * drawn[f"{name} level"])
        chromas.append(chroma * drawn[f"{name} vividness"])
        hues.append(drawn[f"{name} hue"])
    chromas[0] = drawn["ground chroma"]
    levels.append(levels[0] + torch.where(dark, drawn["ground change"], -drawn["ground change"]))
    chromas.append(chromas[0])
    hues.append(hues[0] + drawn["ground turn"])
    return dict(
        zip(
            (*PALETTE, "second ground"),
            color(torch.stack(levels), torch.stack(chromas), torch.stack(hues)).unbind(0),
            strict=True,
        )
    )


def _distractors(drawn: dict[str, Tensor], rim: Tensor, pose: tuple[Tensor, Tensor, Tensor, Tensor]) -> Things:
    """Up to three single parts in different corners of the image, smaller than on objects and not touching one.

    One that would touch the object moves into its corner, and stays away where even that is too close.
    """

    def each(what: str) -> Tensor:
        return torch.stack([drawn[f"distractor {what} {k}"] for k in range(DISTRACTORS)], dim=1)

    corner = torch.stack([drawn[f"corner {k}"] for k in range(4)], dim=1).argsort(dim=1)[:, :DISTRACTORS]
    cos, sin = _direction(each("angle"))
    # Along one side of the corner the position is rather free, along the other it is close to the border.
    across = each("side") < 0.5
    from_left = torch.where(across, each("far"), each("near"))
    from_top = torch.where(across, each("near"), each("far"))
    shown = torch.arange(DISTRACTORS, device=rim.device) < drawn["distractors"].floor()[:, None]

    def positions() -> tuple[Tensor, Tensor, Tensor]:
        x = torch.where(corner % 2 == 0, from_left, SIZE - from_left)
        y = torch.where(corner // 2 == 0, from_top, SIZE - from_top)
        return x, y, _touches(x, y, drawn["radius"], pose)

    touching = positions()[2]
    from_left, from_top = (torch.where(touching, 4.5, side) for side in (from_left, from_top))
    x, y, touching = positions()
    return Things(
        shown=shown & ~touching,
        kind=each("kind").long(),
        x=x.float(),
        y=y.float(),
        cos=cos,
        sin=sin,
        size=each("size").float(),
        color=color(each("lightness"), 0.13, each("hue")),
        second=rim[:, None].expand(-1, DISTRACTORS, -1),
    )


def _touches(x: Tensor, y: Tensor, radius: Tensor, pose: tuple[Tensor, Tensor, Tensor, Tensor]) -> Tensor:
    """Whether something of five pixels' radius at a point, [B, K], comes near the body or the limbs of the object."""
    middle_x, middle_y, cos, sin = (entry[:, None] for entry in pose)
    radius = radius[:, None]
    across = ((x - middle_x) * cos + (y - middle_y) * sin).abs()
    down = ((y - middle_y) * cos - (x - middle_x) * sin).abs()
    near_body = (across < 1.05 * radius + 5) & (down < 0.95 * radius + 5)
    near_limbs = (across < 0.55 * radius + 5) & (down < 1.65 * radius + 5)
    return near_body | near_limbs


def _occluders(drawn: dict[str, Tensor], count: Tensor, x: Tensor, y: Tensor) -> Things:
    """Blobs and bars, plain or striped, that hide a piece of the object."""

    def each(what: str) -> Tensor:
        return torch.stack([drawn[f"occluder {what} {k}"] for k in range(OCCLUDERS)], dim=1)

    cos, sin = _direction(each("angle"))
    level = each("lightness")
    stripe = torch.where(level < 0.575, 0.12, -0.12) * (each("plain") < 0.5)
    radius = drawn["radius"][:, None]
    return Things(
        shown=torch.arange(OCCLUDERS, device=count.device) < count[:, None],
        kind=each("kind").long(),
        x=(x[:, None] + radius * each("x")).float(),
        y=(y[:, None] + radius * each("y")).float(),
        cos=cos,
        sin=sin,
        size=each("size").float(),
        color=color(level, 0.06, each("hue")),
        second=color(level + stripe, 0.06, each("hue")),
    )


def _background(drawn: dict[str, Tensor]) -> Tensor:
    """Weights of gradient, smooth noise and pattern; whether it has a second wave; its frequency and shifts."""
    gradient_cos, gradient_sin = _direction(drawn["gradient angle"])
    pattern_cos, pattern_sin = _direction(drawn["pattern angle"])
    columns = [
        gradient_cos * drawn["gradient"],
        gradient_sin * drawn["gradient"],
        drawn["coarse noise"],
        drawn["fine noise"],
        drawn["pattern"] * (drawn["patterned"] < 0.5),
        (drawn["dotted"] < 0.5).double(),
        pattern_cos / drawn["pattern period"],
        pattern_sin / drawn["pattern period"],
        drawn["pattern shift"],
        drawn["second pattern shift"],
    ]
    return torch.stack(columns, dim=1).float()


def _light(drawn: dict[str, Tensor]) -> Tensor:
    """Contrast, brightness, gradient across and down, vignette, noise."""
    names = ("contrast", "brightness", "light across", "light down", "vignette", "noise")
    return torch.stack([drawn[name] for name in names], dim=1).float()
