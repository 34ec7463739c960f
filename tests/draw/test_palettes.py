"""Colors of numbers."""

import numpy as np

from suffice.draw.palettes import RAMP, ramp_color


def lightness(hexed):
    linear = [(int(hexed[i : i + 2], 16) / 255 + 0.055) / 1.055 for i in (1, 3, 5)]
    luminance = sum(weight * value**2.4 for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return 116 * luminance ** (1 / 3) - 16


def test_the_ramp_darkens_in_even_steps():
    steps = -np.diff([lightness(shade) for shade in RAMP])
    assert steps.min() > 0
    assert steps.max() / steps.min() < 1.15
    assert [ramp_color(i / 8) for i in range(9)] == list(RAMP)
    assert ramp_color(float("nan")) == ramp_color(-1) == RAMP[0]
