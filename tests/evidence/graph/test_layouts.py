"""Three forms of the picture: sizes that fit, everything inside, nothing on top of something else."""

import itertools
import re
from xml.etree import ElementTree

import pytest
from PIL import Image

from suffice.draw.words import text_width
from suffice.errors import OptionError
from suffice.evidence.graph.graph import build_graph
from tests.evidence.made import make_evidence, subsets

SVG = "{http://www.w3.org/2000/svg}"
SHAPES = {"square": (128, 128), "tall": (72, 128), "wide": (128, 64)}


def graded(mses, side=7, **changes):
    table = {}
    for mse in mses:
        for cells in subsets(mse):
            table.setdefault(cells, 0.95 * len(cells) / len(mse))
        table.setdefault(mse, 0.95)
    return make_evidence(table, mses, side, **changes)


LONG = {"name": "photographs/" + "x" * 200 + ".jpg", "label": "Greater Swiss Mountain dog, Tricolor, " * 4}
CASES = {
    "some": graded([(0, 1, 2), (8, 9, 10, 11), (30, 31, 37, 45)]),
    "one": graded([(16, 17, 24)]),
    "nothing": graded([], stopped="no confidence", confidence=1e-5),
    "nothing needed": graded([()], stopped="nothing needed"),
    "long": graded([(0, 1, 2), (8, 9, 10, 11)], truncated=True, **LONG),
    "fine": graded([(20, 34, 48, 62, 63), (100, 101, 102, 115, 116)], side=14),
}


def thumbnails(root, side):
    """Left, top, right of every thumbnail."""
    for group in root.iter(f"{SVG}g"):
        found = re.fullmatch(r"translate\((\S+) (\S+)\) scale\((\S+)\)", group.get("transform", ""))
        if found:
            x, y, scale = map(float, found.groups())
            yield x, y, x + side * scale


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layout", ["page", "column", "slide"])
@pytest.mark.parametrize("numbers", [True, False])
def test_everything_is_inside(case, shape, layout, numbers):
    graph = build_graph(CASES[case])
    photo = Image.new("RGB", SHAPES[shape], "green")
    root = ElementTree.fromstring(graph.to_svg(photo, layout=layout, numbers=numbers))
    width, height = float(root.get("width")), float(root.get("height"))
    side, aspect = graph.evidence.grid.side, SHAPES[shape][1] / SHAPES[shape][0]
    boxes = list(thumbnails(root, side))
    assert boxes
    for left, top, right in boxes:
        assert 0 < left < right < width
        assert 0 < top < top + (right - left) * aspect < height
    for (l1, t1, r1), (l2, t2, r2) in itertools.combinations(boxes, 2):
        apart = r1 <= l2 or r2 <= l1 or t1 + (r1 - l1) * aspect <= t2 or t2 + (r2 - l2) * aspect <= t1
        assert apart
    shifted = {e for g in root.iter(f"{SVG}g") if g.get("transform", "").startswith("translate(0 ") for e in g.iter()}
    for element in root.iter(f"{SVG}text"):
        if element in shifted:
            continue  # the legend of a slide has its own origin
        x, y, size = (float(element.get(key) or 8) for key in ("x", "y", "font-size"))
        assert 0 < y <= height
        wide = 0.86 * text_width("".join(element.itertext()), size)  # the estimate is generous
        anchor = element.get("text-anchor") or "start"
        if anchor == "start":
            assert x + wide <= width, "".join(element.itertext())


def test_sizes_of_the_forms():
    graph = build_graph(CASES["some"])

    def size(layout):
        root = ElementTree.fromstring(graph.to_svg(layout=layout))
        return float(root.get("width")), float(root.get("height"))

    assert size("column")[0] == 320
    assert size("column")[1] < 760
    assert size("slide") == (1280, 720)
    assert size("slide")[0] / size("slide")[1] == pytest.approx(16 / 9)
    assert size("page")[0] >= 960


@pytest.mark.parametrize("layout", ["column", "slide"])
def test_small_forms_count_what_they_leave_out(layout):
    mses = [(0, 1, 2, 3, 4), (20, 21, 22, 23, 24)]
    graph = build_graph(graded(mses))
    root = ElementTree.fromstring(graph.to_svg(layout=layout))
    said = ["".join(e.itertext()) for e in root.iter(f"{SVG}text")]
    drawn = len(list(thumbnails(root, 7))) - 1  # less the photo
    assert drawn < len(graph.nodes)
    assert any(re.fullmatch(r"\+\d+ more( of .*)?", line) for line in said)
    sizes = [float(e.get("font-size")) for e in root.iter(f"{SVG}text")]
    assert min(sizes) >= (8 if layout == "column" else 12)  # six points in print; read from the last row


def test_too_many_roots_for_a_slide_are_an_error():
    graph = build_graph(graded([(i, i + 1) for i in range(0, 20, 2)]), roots=None)
    assert graph.to_svg()
    with pytest.raises(OptionError, match="layout='page'"):
        graph.to_svg(layout="slide")
