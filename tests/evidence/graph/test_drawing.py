"""The picture of a graph: well formed, standing alone, complete, and true to the cells."""

import dataclasses
import re
from xml.etree import ElementTree

import pytest
import torch
from PIL import Image

from suffice.draw.palettes import MARK
from suffice.draw.words import percent
from suffice.errors import OptionError
from suffice.evidence import MSE, Settings
from suffice.evidence.graph.graph import build_graph
from suffice.evidence.graph.rows import MARKED_WIDTHS
from tests.evidence.made import make_evidence, subsets

SVG = "{http://www.w3.org/2000/svg}"


def graded(mses, side=7, worth=None, **changes):
    """Evidence in which a subset of an MSE has the share of its cells' worth as its ratio."""
    table = {}
    worth = worth or {}
    for mse in mses:
        total = sum(worth.get(c, 1.0) for c in mse)
        for cells in reversed(subsets(mse)):
            table.setdefault(cells, 0.95 * sum(worth.get(c, 1.0) for c in cells) / total)
        table.setdefault(mse, 0.95)
    return make_evidence(table, mses, side, **{"questions": 2411, **changes})


@pytest.fixture(scope="module")
def photo():
    """Something with the smoothness of a photograph."""
    rough = torch.rand(1, 3, 24, 24, generator=torch.Generator().manual_seed(0))
    return torch.nn.functional.interpolate(rough, (224, 224), mode="bicubic")[0].clamp(0, 1)


@pytest.fixture(scope="module")
def large():
    mses = [(0, 1, 2, 8, 9, 15, 16), (23, 24, 25, 30, 31, 38), (27, 34, 41, 46, 47, 48), (3, 4, 5, 6, 12, 13)]
    graph = build_graph(graded(mses))
    assert len(graph.nodes) == 60
    return graph


def parse(svg):
    return ElementTree.fromstring(svg)


def texts(svg):
    return ["".join(element.itertext()) for element in parse(svg).iter(f"{SVG}text")]


CASES = {
    "one node": [(24,)],
    "none": [],
    "nothing needed": [()],
    "some": [(16, 17, 24), (30, 31)],
    "whole image": [tuple(range(4))],
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("hide", ["plain", "dim", "baseline", "fade"])
@pytest.mark.parametrize("layout", ["page", "column", "slide"])
@pytest.mark.parametrize("numbers", [True, False])
def test_it_is_well_formed_and_stands_alone(case, hide, layout, numbers, photo):
    graph = build_graph(graded(CASES[case], side=2 if case == "whole image" else 7))
    form = {"layout": layout, "numbers": numbers}
    svg = graph.to_svg(**form) if hide == "plain" else graph.to_svg(photo, baseline="blur", hide=hide, **form)
    root = parse(svg)
    elements = list(root.iter())
    ids = [e.get("id") for e in elements if e.get("id")]
    assert len(ids) == len(set(ids))
    for element in elements:
        for key, value in element.attrib.items():
            assert not key.startswith("{")
            if key == "href":
                assert value.startswith("data:image/") or value.removeprefix("#") in ids
            for named in re.findall(r"url\((.*?)\)", value):
                assert named.removeprefix("#") in ids
    rest = re.sub(r"base64,[^\"]*", "", svg)
    assert re.findall(r"\w+://[^\"]*", rest) == ["http://www.w3.org/2000/svg"]
    assert not list(root.iter(f"{SVG}style"))
    assert not list(root.iter(f"{SVG}script"))
    assert not re.search(r"\b(nan|inf|None)\b", rest)


@pytest.mark.parametrize(("hide", "images"), [("fade", 1), ("dim", 2), ("baseline", 2)])
def test_sixty_nodes_share_one_picture(large, photo, hide, images):
    svg = large.to_svg(photo, "blur", hide)
    assert len(list(parse(svg).iter(f"{SVG}image"))) == images
    assert len(svg) < 300_000


def test_every_node_shows_its_cells_and_ratio(large, photo):
    root = parse(large.to_svg(photo))
    shapes = [path.get("d") for path in root.iterfind(f".//{SVG}clipPath/{SVG}path")]
    drawn = {frozenset(7 * int(y) + int(x) for x, y in re.findall(r"M(\d+) (\d+)h1v1h-1z", d)) for d in shapes}
    assert drawn == {frozenset(node.cells) for node in large.nodes}
    said = texts(large.to_svg(photo))
    for node in large.nodes:
        assert said.count(percent(node.ratio)) >= sum(percent(n.ratio) == percent(node.ratio) for n in large.nodes)
    assert {f"MSE {node.mse + 1}" for node in large.nodes if node.is_mse} <= set(said)
    assert [f"{size} cells" for size in large.by_size] == [t for t in said if re.fullmatch(r"\d+ cells", t)]


def test_what_is_left_out_is_said(large):
    said = texts(large.to_svg())
    per_node = [f"+{node.hidden_children} more" for node in large.nodes if node.hidden_children]
    per_level = [f"+{large.hidden[size]} more" for size in large.by_size if large.hidden.get(size)]
    undrawn = {size: count for size, count in large.hidden.items() if size not in large.by_size}
    last = f"+{sum(undrawn.values())} more of {min(undrawn)} to {max(undrawn)} cells"
    for expected in [*per_node, *per_level, last]:
        assert expected in said
    assert "4 minimal sufficient explanations, 3 drawn" in said


def test_thousands_are_grouped(large):
    many = dataclasses.replace(large, hidden={next(iter(large.by_size)): 1204})
    assert "+1\u2009204 more" in texts(many.to_svg())


def test_removed_cells_are_outlined_by_how_much_they_mattered():
    worth = {0: 0.1, 1: 0.3, 2: 0.8}
    graph = build_graph(graded([(0, 1, 2)], side=3, worth=worth), expand_at=0.9)
    strengths = {edge.removed: edge.strength for edge in graph.edges}
    assert strengths == {0: 0, 1: 1, 2: 2}
    outlined = {}
    for group in parse(graph.to_svg()).iter(f"{SVG}g"):
        for box in group.iterfind(f"{SVG}rect[@stroke='{MARK}']"):
            if "scale" in group.get("transform", ""):
                scale = float(group.get("transform").split("scale(")[1].rstrip(")"))
                cell = 3 * int(box.get("y")) + int(box.get("x"))
                outlined[cell] = float(box.get("stroke-width")) * scale
    assert outlined == {cell: pytest.approx(MARKED_WIDTHS[s], abs=0.05) for cell, s in strengths.items()}


def test_a_merged_node_outlines_every_cell_that_leads_to_it():
    graph = build_graph(graded([(0, 1, 2)], side=3))
    boxes = [e for e in parse(graph.to_svg()).iter(f"{SVG}rect") if e.get("stroke") == MARK]
    strengths = {edge.strength for edge in graph.edges}
    assert len(boxes) - len(strengths) == len(graph.edges) == 9  # less those of the legend


def test_no_explanation_and_nothing_needed_are_said():
    none = texts(build_graph(graded([])).to_svg())
    assert "No sufficient explanation found" in none
    assert "no minimal sufficient explanation" in none
    assert any("up to 8 cells" in line for line in none)
    hopeless = build_graph(graded([], stopped="no confidence", confidence=1e-4))
    assert {"Nothing to explain", hopeless.evidence.why} <= set(texts(hopeless.to_svg()))
    empty = texts(build_graph(graded([()], stopped="nothing needed", baseline_confidence=0.76)).to_svg())
    assert {"Nothing is needed", "The baseline alone already keeps 95% of the confidence."} <= set(empty)
    assert "no cells" in empty
    some = texts(build_graph(graded([(1, 2)])).to_svg())
    assert not {"Nothing is needed", "No sufficient explanation found", "Nothing to explain"} & set(some)


def test_deletions_nobody_asked_about_are_said():
    evidence = graded([(0, 1, 2)])
    only_root = dataclasses.replace(evidence, regions=evidence.regions[:1], ratios=evidence.ratios[:1])
    assert "not asked" in texts(build_graph(only_root).to_svg())
    assert "not asked" not in texts(build_graph(evidence).to_svg())
    budget = texts(build_graph(dataclasses.replace(evidence, truncated=True)).to_svg())
    assert any("budget" in line for line in budget)


def test_what_is_not_a_number_is_drawn_as_a_dash():
    nan = float("nan")
    evidence = graded([(0, 1)])
    graph = build_graph(dataclasses.replace(evidence, ratios=torch.full_like(evidence.ratios, nan)))
    svg = dataclasses.replace(graph, evidence=dataclasses.replace(evidence, confidence=nan)).to_svg()
    assert texts(svg).count("–") == 2
    assert "–" + " confidence on the whole image" in texts(svg)
    assert "nan" not in " ".join(v for e in parse(svg).iter() for v in e.attrib.values())


def test_names_cannot_break_the_document():
    nasty = 'a<b>&"c"\' ]]> <script>alert(1)</script>'
    svg = build_graph(graded([(1, 2)], name=nasty, label=nasty)).to_svg()
    assert not list(parse(svg).iter(f"{SVG}script"))
    assert nasty in texts(svg)
    assert nasty in parse(svg).findtext(f"{SVG}title")
    unprintable = build_graph(graded([(1, 2)], name="a\x00b\x1b\udcff.jpg")).to_svg()
    assert "a�b��.jpg" in texts(unprintable)
    unprintable.encode()


def test_a_long_formula_counts_the_terms_it_leaves_out():
    mses = [tuple(sorted({i, i + 7, i + 8, i + 20, (3 * i + 1) % 49})) for i in range(28)]
    evidence = graded([])
    graph = build_graph(dataclasses.replace(evidence, mses=tuple(MSE(m, 0.95) for m in mses)))
    lines = [t for t in texts(graph.to_svg()) if "∧" in t]
    formula = re.sub(r"\s+", " ", " ".join(lines))
    terms = re.findall(r"\((P[^()]*)\)", formula)
    more = int(re.search(r"… and (\d+) more", formula).group(1))
    assert len(lines) <= 2
    assert len(terms) + more == 28
    assert len(terms) > 1
    cells = [tuple(map(int, re.findall(r"P(\d+)", term))) for term in terms]
    assert cells[: len(graph.roots)] == [graph.nodes[root].cells for root in graph.roots][: len(cells)]
    assert set(cells) <= set(mses)


def test_the_same_in_the_same_out(large, photo):
    assert large.to_svg(photo) == large.to_svg(photo.clone())
    assert large._repr_svg_() == large.to_svg()


def test_pictures_in_one_page_do_not_share_names(large, photo):
    def names(svg):
        return {e.get("id") for e in parse(svg).iter() if e.get("id")}

    one = names(large.to_svg(photo))
    for other in (large.to_svg(1 - photo), large.to_svg(photo, hide="fade"), large.to_svg(photo, numbers=False)):
        assert not one & names(other)


def test_a_pil_image_and_its_tensor_look_the_same(photo):
    graph = build_graph(graded([(1, 2)]))
    array = (photo * 255).round().byte()
    assert graph.to_svg(Image.fromarray(array.permute(1, 2, 0).numpy())) == graph.to_svg(array.float() / 255)


def test_a_wide_picture_keeps_its_shape():
    svg = build_graph(graded([(1, 2)])).to_svg(Image.new("RGB", (280, 140), "green"))
    image = next(parse(svg).iter(f"{SVG}image"))
    assert float(image.get("width")) == 2 * float(image.get("height"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hide": "blur"}, "hide='blur'"),
        ({"hide": "baseline"}, "needs a picture"),
        ({"hide": "black", "picture": torch.zeros(3, 9, 9)}, "'dim', 'baseline', 'fade'"),
        ({"layout": "poster"}, "'page', 'column', 'slide'"),
        ({"picture": torch.zeros(1, 3, 9, 9)}, r"picture\[0\]"),
    ],
)
def test_mistakes_are_explained(arguments, message):
    with pytest.raises(OptionError, match=message):
        build_graph(graded([(1, 2)])).to_svg(**arguments)


def test_a_baseline_without_a_name_must_be_given(photo):
    graph = build_graph(graded([(1, 2)], settings=Settings(baseline=torch.zeros_like)))
    for hide in ("baseline", "dim"):
        with pytest.raises(OptionError, match="baseline='blur'"):
            graph.to_svg(photo, hide=hide)
    assert "baseline custom" in graph.to_svg()
    assert "hidden cells show the picture, faded" in graph.to_svg(photo)


def test_evidence_draws_its_own_picture_unless_told_otherwise(photo):
    kept = (photo * 255).byte()
    own = build_graph(graded([(1, 2)], picture=kept))
    assert own.to_svg() == build_graph(graded([(1, 2)])).to_svg(kept)
    assert not list(parse(own.to_svg(False)).iter(f"{SVG}image"))
    assert len(list(parse(own.to_svg(hide="baseline")).iter(f"{SVG}image"))) == 2
    assert len(list(parse(own.to_svg(hide="fade")).iter(f"{SVG}image"))) == 1
    assert own.evidence._repr_svg_() == own._repr_svg_() == own.to_svg()


def test_what_hidden_cells_show_is_said(photo):
    graph = build_graph(graded([(1, 2)]))
    words = {"dim": "the baseline, dimmed", "baseline": "the baseline", "fade": "the picture, faded"}
    for hide, expected in words.items():
        foot = next(line for line in texts(graph.to_svg(photo, hide=hide)) if "hidden cells" in line)
        assert f"hidden cells show {expected}" in foot.split("  ·  ")
    assert graph.to_svg(photo) == graph.to_svg(photo, hide="dim")
    assert "hidden cells" not in graph.to_svg()
    flat = build_graph(graded([(1, 2)], settings=Settings(baseline=torch.zeros(3, 8, 8))))
    assert "hidden cells show the baseline, dimmed" in flat.to_svg(photo)


def test_why_the_search_stopped_is_said_in_every_form(photo):
    graph = build_graph(graded([(1, 2), (8, 9)], stopped="max_mses", baseline_confidence=0.12))
    for layout in ("page", "column", "slide"):
        said = " ".join(texts(graph.to_svg(photo, layout=layout)))
        assert graph.evidence.why in said
        assert f"baseline blur, alone: {percent(0.12)} confidence, ratio {percent(0.15)}" in said


def test_stability_is_said_where_it_was_asked():
    evidence = graded([(1, 2)])
    asked = dataclasses.replace(evidence, mses=(MSE((1, 2), 0.95, stays={"jpeg": True, "shift": False}),))
    assert f"stable under small changes: {percent(0.5)}" in " ".join(texts(build_graph(asked).to_svg()))
    assert "stable" not in build_graph(evidence).to_svg()


def test_cells_are_numbered_or_not(photo):
    graph = build_graph(graded([(17, 24)]))
    numbered, bare = texts(graph.to_svg(photo)), texts(graph.to_svg(photo, numbers=False))
    assert [t for t in numbered if t.isdigit()] == [str(cell) for cell in range(49)]
    assert any("P17" in t for t in numbered)
    assert not any(t.isdigit() or "P17" in t for t in bare)
    fine = build_graph(graded([(17, 24)], side=14))
    along = [t for t in texts(fine.to_svg(photo)) if re.fullmatch(r"\+?\d+", t)]
    assert {"0", "14", "+1"} & set(along) == {"0", "14"} or "+2" in along  # every second or third line has its number
    assert f"cell in row {17 // 14 * 14}, column +{17 % 14}" in texts(fine.to_svg(photo))


def test_it_is_saved_by_its_suffix(tmp_path):
    graph = build_graph(graded([(1, 2)]))
    for suffix, text in (("svg", graph.to_svg()), ("dot", graph.to_dot()), ("json", graph.to_json())):
        assert graph.save(tmp_path / f"cat.{suffix}").read_text(encoding="utf-8") == text
    slide = graph.save(tmp_path / "slide.svg", layout="slide", numbers=True)
    assert slide.read_text(encoding="utf-8") == graph.to_svg(layout="slide", numbers=True)
    assert graph.save(tmp_path / "cat.pdf", layout="column").read_bytes().startswith(b"%PDF-")
    assert graph.save(tmp_path / "cat.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(OptionError, match=r"\.svg, \.png, \.pdf, \.dot, \.json"):
        graph.save(tmp_path / "cat.gif")
    with pytest.raises(OptionError, match="layout: only pictures"):
        graph.save(tmp_path / "cat.json", layout="slide")
