"""Which parts make which class: a code in which any two parts are enough.

A class is a word of the extended Reed–Solomon code [5, 2, 4] over the field of four elements. Two classes share at
most one part, so any two parts of an object name its class, and one part leaves four candidates. A network may learn
to recognize a class from any of ten pairs, from all parts together, or from anything between.
"""

from __future__ import annotations

import torch
from torch import Tensor

PARTS: tuple[str, ...] = ("outline", "texture", "marking", "crest", "tail")

TYPES: tuple[tuple[str, ...], ...] = (
    ("disc", "square", "bell", "star"),
    ("stripes", "dots", "checks", "rings"),
    ("cross", "ring", "bars", "wedge"),
    ("ball", "cone", "horns", "hammer"),
    ("legs", "fishtail", "diamond", "loop"),
)

CLASSES: tuple[str, ...] = (
    "alpin",
    "borka",
    "cindle",
    "dovo",
    "ember",
    "fenna",
    "gizmo",
    "hulu",
    "ibbit",
    "jorrel",
    "kessa",
    "lumo",
    "mirrow",
    "nub",
    "oswin",
    "pippa",
)

# Elements of GF(4) are 0, 1, w = 2 and w + 1 = 3: addition is exclusive or, and powers of w are 1, 2, 3, 1, …
_LOGARITHM = {1: 0, 2: 1, 3: 2}
_POWER = (1, 2, 3)


def _times(a: int, b: int) -> int:
    return 0 if 0 in (a, b) else _POWER[(_LOGARITHM[a] + _LOGARITHM[b]) % 3]


def _word(constant: int, slope: int) -> tuple[int, ...]:
    """The line ``constant + slope · x`` at the four points of the field, and its slope (its value at infinity)."""
    return (*(constant ^ _times(slope, x) for x in range(4)), slope)


CODE: tuple[tuple[int, ...], ...] = tuple(_word(label // 4, label % 4) for label in range(len(CLASSES)))


def types_of(labels: Tensor) -> Tensor:
    """The type of every part of a class.

    Args:
        labels: Class numbers, int64 [B].

    Returns:
        Part types 0 to 3, int64 [B, 5], in the order of ``PARTS``.

    Example:
        >>> [TYPES[slot][kind] for slot, kind in enumerate(types_of(torch.tensor([6]))[0].tolist())]
        ['square', 'rings', 'bars', 'ball', 'diamond']
    """
    return torch.tensor(CODE, device=labels.device)[labels]


def classes_with(types: dict[str, str]) -> list[str]:
    """The classes that have all the given parts.

    Args:
        types: Type by part, such as ``{"crest": "cone"}``.

    Returns:
        Class names: four for one part, at most one for two or more.

    Example:
        >>> classes_with({"crest": "cone"})
        ['cindle', 'ember', 'jorrel', 'pippa']
    """
    wanted = {PARTS.index(part): TYPES[PARTS.index(part)].index(kind) for part, kind in types.items()}
    return [
        name
        for name, word in zip(CLASSES, CODE, strict=True)
        if all(word[slot] == kind for slot, kind in wanted.items())
    ]
