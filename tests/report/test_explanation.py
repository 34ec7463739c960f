"""The figure of one image."""

from xml.etree import ElementTree

import torch

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
