"""How far everything may vary: the whole of the world's chance on one page."""

from __future__ import annotations

from suffice.zoo.scenes.code import PARTS

SIZE = 56
DISTRACTORS = 3
OCCLUDERS = 2

_UNIT = (0.0, 1.0)

# All that varies continuously. Lengths are pixels, angles turns, colors OKLCh, light relative.
RANGES: dict[str, tuple[float, float]] = {
    "radius": (11.5, 14.5),
    "x": (-1.0, 1.0),
    "y": (-1.0, 1.0),
    "angle": (-25 / 360, 25 / 360),
    "softness": (1.0, 1.7),
    "texture angle": _UNIT,
    "texture period": (0.38, 0.52),  # of the radius
    "texture shift x": _UNIT,
    "texture shift y": _UNIT,
    "occluded": _UNIT,
    "missing": _UNIT,
    **{f"missing {part}": _UNIT for part in PARTS[1:]},
    "dark": _UNIT,
    "ground hue": _UNIT,
    "ground chroma": (0.01, 0.05),
    "ground turn": (-0.15, 0.15),
    "ground change": (0.05, 0.12),
    "gradient": (0.0, 0.5),
    "gradient angle": _UNIT,
    "coarse noise": (0.0, 0.45),
    "fine noise": (0.0, 0.25),
    "patterned": _UNIT,
    "pattern": (0.2, 0.6),
    "dotted": _UNIT,
    "pattern period": (5.0, 14.0),
    "pattern angle": _UNIT,
    "pattern shift": _UNIT,
    "second pattern shift": _UNIT,
    "contrast": (0.72, 1.05),
    "brightness": (-0.07, 0.07),
    "light across": (-0.14, 0.14),
    "light down": (-0.14, 0.14),
    "vignette": (0.0, 0.2),
    "noise": (0.0, 0.024),
    "distractors": (1.0, 1.0 + DISTRACTORS),
    **{f"corner {k}": _UNIT for k in range(4)},
    **{
        f"distractor {name} {k}": bounds
        for name, bounds in {
            "kind": (0.0, 16.0),
            "angle": (-0.1, 0.1),
            "near": (4.0, 8.0),  # from one side of its corner
            "far": (4.0, 17.0),  # from the other
            "side": _UNIT,
            "size": (4.0, 5.6),
            "lightness": (0.5, 0.75),
            "hue": _UNIT,
        }.items()
        for k in range(DISTRACTORS)
    },
    **{
        f"occluder {name} {k}": bounds
        for name, bounds in {
            "kind": (0.0, 2.0),
            "angle": _UNIT,
            "x": (-1.1, 1.1),  # radii from the middle of the object
            "y": (-1.6, 1.6),
            "size": (4.5, 7.5),
            "lightness": (0.35, 0.8),
            "hue": _UNIT,
            "plain": _UNIT,
        }.items()
        for k in range(OCCLUDERS)
    },
}

# Lightness on dark and on light grounds, and chroma. Rims and textures stand out by lightness; every hue is free.
PALETTE: dict[str, tuple[tuple[float, float], tuple[float, float], float]] = {
    "ground": ((0.26, 0.42), (0.72, 0.88), 0.0),
    "rim": ((0.93, 0.98), (0.20, 0.30), 0.04),
    "first texture": ((0.72, 0.82), (0.84, 0.93), 0.11),
    "second texture": ((0.36, 0.48), (0.50, 0.62), 0.15),
    "patch": ((0.93, 0.98), (0.93, 0.98), 0.03),
    "emblem": ((0.30, 0.52), (0.30, 0.52), 0.15),
    "crest": ((0.62, 0.78), (0.48, 0.66), 0.15),
    "tail": ((0.62, 0.78), (0.48, 0.66), 0.15),
}
RANGES |= {f"{name} level": _UNIT for name in PALETTE}
RANGES |= {f"{name} vividness": (0.8, 1.1) for name in PALETTE}
RANGES |= {f"{name} hue": _UNIT for name in PALETTE}
