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
    others = {name: 1 - values for name, values in maps.items()}
    rows = [ClassRow("cat <1>", 0.91, maps), ClassRow("dog", 0.05, others)]
    tree = figure(rows, title="a & b.jpg", model="timm/x", top=[("cat <1>", 0.91), ("dog", 0.05)])
    said = texts(tree)
    for expected in ("a & b.jpg", "timm/x", "gradient", "rise", "cat <1>91.0%", "dog5.0%", "low", "high"):
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


def boxes(tree):
    """Left, top, right and bottom of the maps: all pictures but the image itself and the bar of colors."""
    places = [[float(image.get(k)) for k in ("x", "y", "width", "height")] for image in tree.iter(f"{SVG}image")]
    return [(x, y, x + width, y + height) for x, y, width, height in places[1:-1]]


def place_of(tree, said):
    texts = tree.iter(f"{SVG}text")
    return next((float(t.get("x")), float(t.get("y"))) for t in texts if "".join(t.itertext()) == said)


def test_each_class_is_a_heading_above_its_row_and_no_caption_of_a_map():
    rows = [ClassRow(label, 0.5, {"a": torch.rand(7, 7), "b": torch.rand(7, 7)}) for label in ("cat", "dog")]
    tree = figure(rows)
    (_, first), (_, second) = sorted({(0, top) for _, top, _, _ in boxes(tree)})
    bottom = min(bottom for *_, bottom in boxes(tree))
    cat, dog = (place_of(tree, f"{label}50.0%") for label in ("cat", "dog"))
    assert cat[1] < first
    assert bottom < dog[1] < second
    assert second - dog[1] < dog[1] - bottom, "nearer to the maps that it is about"
    for t in tree.iter(f"{SVG}text"):
        x, y = float(t.get("x")), float(t.get("y"))
        assert not any(left <= x < right and top < y < below for left, top, right, below in boxes(tree))


def test_many_methods_wrap_into_a_grid():
    tree = figure([ClassRow("cat", 0.9, {f"method {i}": torch.rand(7, 7) for i in range(12)})], top=[("cat", 0.9)] * 5)
    assert len({left for left, *_ in boxes(tree)}) == 5
    assert [sum(top == y for _, top, *_ in boxes(tree)) for y in sorted({y for _, y, *_ in boxes(tree)})] == [5, 5, 2]
    for i in range(12):
        x, y = place_of(tree, f"method {i}")
        left, top, _, _ = boxes(tree)[i]
        assert x == left
        assert 0 < top - y < 12, "right above its map"


def test_a_map_that_knows_no_class_is_drawn_once_and_noted_then():
    same = torch.rand(7, 7)
    maps = [{"rollout": same, "tis": torch.rand(7, 7)} for _ in range(2)]
    notes = {"rollout": "insertion 0.50", "tis": "insertion 0.70"}
    tree = figure([ClassRow("cat", 0.9, maps[0], notes), ClassRow("dog", 0.1, maps[1], notes)])
    assert len(boxes(tree)) == 3
    said = " ".join(texts(tree))
    assert "the same map as above: it does not depend on the class" in said
    assert said.count("insertion 0.50") == 2, "its score is that of the other class"
    tree = figure([ClassRow(label, 0.5, {"rollout": same}) for label in ("cat", "dog")])
    assert len(boxes(tree)) == 1
    assert "the same as above: the maps of these methods do not depend on the class" in texts(tree)
    alone = figure([ClassRow("cat", 0.9, maps[0])])
    assert len(boxes(alone)) == 2
