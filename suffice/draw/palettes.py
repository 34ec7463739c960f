"""Colors in use."""

from __future__ import annotations

import numpy as np

INK = "#1b2430"
QUIET = "#4d5866"  # second voice
FAINT = "#6d7988"  # third voice
HAIRLINE = "#d8dee5"
EMPTY = "#eef1f5"
PLAIN = "#5b7a9b"  # bars, and kept cells where there is no picture
VEIL = "#e6eaef"  # over what is hidden; a little gray, so that white cells that are kept still stand out
MARK = "#d55e00"  # vermilion: told apart from the ramp with any color vision, and by shape in gray

# 0 … 1: sand to navy. Lightness falls in even steps (CIE L* 89 to 16), so the order survives in gray.
RAMP = ("#f0dfa8", "#b3cdae", "#7bb9ac", "#4ba2a4", "#278996", "#007187", "#005776", "#073f63", "#17264f")

# From nothing to much, evenly getting lighter: dark violet over red and orange to pale yellow for what speaks for a
# class, dark blue to pale cyan for what speaks against it.
WARM = np.array(
    [(13, 8, 35), (66, 10, 84), (132, 31, 98), (196, 56, 75), (240, 106, 44), (250, 172, 40), (252, 245, 178)]
)
COOL = np.array(
    [(13, 8, 35), (14, 30, 82), (16, 66, 124), (20, 108, 160), (58, 152, 190), (128, 198, 216), (214, 240, 244)]
)


def ramp_color(ratio: float) -> str:
    """The color of a ratio; those beyond 0 and 1 have the colors of the ends, what is not a number that of 0.

    Example:
        >>> ramp_color(0), ramp_color(0.5), ramp_color(1.2)
        ('#f0dfa8', '#278996', '#17264f')
    """
    position = (min(ratio, 1.0) if ratio > 0 else 0.0) * (len(RAMP) - 1)
    low = min(int(position), len(RAMP) - 2)
    ends = [[int(hexed[i : i + 2], 16) for i in (1, 3, 5)] for hexed in RAMP[low : low + 2]]
    mixed = [round(a + (b - a) * (position - low)) for a, b in zip(*ends, strict=True)]
    return "#" + "".join(f"{channel:02x}" for channel in mixed)
