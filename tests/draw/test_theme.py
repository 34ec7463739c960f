"""Colors of families can be told apart, by everybody and on every ground."""

from itertools import combinations

import numpy as np
import pytest

from suffice.draw.theme import (
    DARK_GROUND,
    FAMILY_COLORS,
    OTHER_COLORS,
    Looks,
    chart_config,
    darkened,
    family_color,
)

# Machado, Oliveira, Fernandes 2009, full severity; in linear RGB.
VISIONS = {
    "normal": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(color):
    channels = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lightness(color):
    return float(linear(color) @ [0.2126, 0.7152, 0.0722])


def lab(light):
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ np.clip(light, 0, 1) / [0.95047, 1, 1.08883]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("color", [*FAMILY_COLORS.values(), *OTHER_COLORS])
def test_colors_stand_out_on_light_and_dark_ground(color):
    for ground in ("#ffffff", DARK_GROUND):
        bright, dim = sorted([lightness(color), lightness(ground)], reverse=True)
        assert (bright + 0.05) / (dim + 0.05) >= 3


@pytest.mark.parametrize("vision", VISIONS)
def test_families_of_the_papers_differ_for_every_kind_of_color_vision(vision):
    seen = {family: lab(np.array(VISIONS[vision]) @ linear(color)) for family, color in FAMILY_COLORS.items()}
    for one, other in combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 10, (one, other)


def test_other_families_keep_a_color_of_their_own():
    assert family_color("mixer") == family_color("mixer")
    assert family_color("mixer") in OTHER_COLORS
    assert family_color("") == family_color(None)


def test_models_of_a_family_share_its_color_and_differ_otherwise():
    families = {f"model-{i}": "transformer" if i % 2 else "convnext" for i in range(12)}
    looks = Looks.of_models(families)
    assert sorted(looks.names) == sorted(families)
    for family in ("transformer", "convnext"):
        own = [i for i, name in enumerate(looks.names) if families[name] == family]
        assert {looks.colors[i] for i in own} == {family_color(family)}
        assert len({(looks.shapes[i], looks.dashes[i]) for i in own}) == 6
        assert own == list(range(own[0], own[0] + 6))  # beside each other


def test_twenty_models_of_one_family_still_differ_in_shape_or_line():
    looks = Looks.of_models({f"m{i}": "transformer" for i in range(20)})
    assert len(set(zip(looks.shapes, looks.dashes, strict=True))) == 20


def test_dark_pages_have_light_ink():
    light, dark = chart_config(), chart_config(dark=True)
    assert light["text"]["color"] != dark["text"]["color"]
    assert lightness(dark["text"]["color"]) > 0.6
    assert lightness(light["text"]["color"]) < 0.05
    assert darkened('<rect fill="#fff"/><image href="data:#fff"/>').count("#fff") == 1
