"""The figure of one image."""

from xml.etree import ElementTree

import numpy as np
import torch

from suffice.attribution.pictures import levels, overlay, side_by_side
from suffice.report import ClassRow, explanation_figure

SVG = "{http://www.w3.org/2000/svg}"


def figure(rows, **options):
    return ElementTree.fromstring(explanation_figure(torch.rand(3, 32, 48), rows, **options))


def texts(tree):
    return ["".join(t.itertext()) for t in tree.iter(f"{SVG}text")]


def test_it_names_everything():
    maps = {"gradient": torch.rand(7, 7), "rise": torch.rand(32, 48)}
    rows = [ClassRow("cat <1>", 0.91, maps), ClassRow("dog", 0.05, maps)]
    tree = figure(rows, title="a & b.jpg", model="timm/x", top=[("cat <1>", 0.91), ("dog", 0.05)])
    said = texts(tree)
    for expected in ("a & b.jpg", "timm/x", "gradient", "rise", "cat <1>  91.0%", "dog  5.0%", "low", "high"):
        assert expected in said
    assert len(tree.findall(f".//{SVG}image")) == 1 + 4 + 1
    # Nothing lies outside of the drawing.
    width, height = float(tree.get("width")), float(tree.get("height"))
    for image in tree.iter(f"{SVG}image"):
        assert float(image.get("x")) + float(image.get("width")) <= width
        assert float(image.get("y")) + float(image.get("height")) <= height


def test_maps_with_both_signs_have_a_bar_with_both():
    said = texts(figure([ClassRow("cat", 0.9, {"signed": torch.randn(7, 7)})]))
    assert "against" in said
    assert "for" in said


def test_levels():
    assert torch.equal(levels(torch.full((4, 4), 3.0)), torch.zeros(4, 4))
    unsigned = levels(torch.tensor([[2.0, 4.0], [3.0, 2.0]]))
    assert unsigned.min() == 0
    assert unsigned.max() == 1
    signed = levels(torch.tensor([[-4.0, 2.0], [0.0, 0.0]]))
    assert signed[0, 0] == -1
    assert 0.4 < signed[0, 1] < 0.6
    assert (signed[1] == 0).all()


def test_colors_of_for_and_against_differ_and_nothing_shows_the_image():
    picture = np.asarray(overlay(torch.tensor([[1.0, -1.0, 0.0]]), torch.full((3, 1, 3), 0.5)), dtype=int)[0]
    warm, cool, nothing = picture
    assert warm[0] > warm[2]
    assert cool[2] > cool[0]
    assert abs(nothing[0] - nothing[2]) < 12
    assert side_by_side([overlay(torch.rand(5, 7)), overlay(torch.rand(3, 4))]).size == (7 + 4 + 4, 5)
