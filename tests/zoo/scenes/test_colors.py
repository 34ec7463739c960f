"""Colors of OKLab."""

from __future__ import annotations

import torch

from suffice.zoo.scenes.colors import color


def test_colors_have_their_lightness():
    gray = color(torch.linspace(0, 1, 11), 0.0, torch.zeros(11))
    assert (gray.amax(dim=1) - gray.amin(dim=1)).max() < 1e-3
    assert (gray[1:, 0] > gray[:-1, 0]).all()
    red = color(torch.tensor([0.63]), 0.25, torch.tensor([29 / 360]))[0]
    assert red[0] > 0.9
    assert red[1:].max() < 0.25
