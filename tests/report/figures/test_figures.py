"""Every figure is drawn from a study, says what it shows in numbers, and shows what its table has."""

import json
import math
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from suffice.compare import CrossTest, explained_by, how_it_decides
from suffice.draw.theme import family_color
from suffice.errors import OptionError
from suffice.report.figures import FIGURES, Drawing, figure, find_figure, list_figures
from suffice.report.figures.papers import CITATIONS, CVPR, EEA, PREPRINT, TIS, VIT_CX
from suffice.report.figures.registry import _figures_of

OF_STUDIES = {
    "summary": ["summary-mses", "summary-mse-size", "summary-subexplanations"],
    "trainings": ["trainings-distinct_50"],
    "mse-sizes": ["mse-sizes"],
    "explained-by": ["explained-by"],
    "diverse": ["diverse"],
    "compositionality": ["compositionality", "confidence-left"],
    "plane": ["plane"],
    "cross-test": ["cross-test-insertion"],
    "families": ["families-insertion"],
    "landscape": ["landscape"],
    "tree": ["tree"],
    "activations": ["activations"],
    "methods": ["methods-insertion", "methods-deletion"],
    "time": ["time"],
    "sanity": ["sanity-cascading-zoo-vgg"],
    "attention-graphs": ["attention-graphs-"],
    "maps": ["maps-zoo-vgg"],
    "maps-of-models": ["maps-of-models-grad-cam"],
    "mixed-maps": ["mixed-maps-0"],
}


def rows_of(drawing):
    """All rows in the data of a chart."""
    return [row for rows in drawing.spec["datasets"].values() for row in rows]


def same(one, other):
    if isinstance(one, float) and not math.isfinite(one):
        return other is None
    return one == (pytest.approx(other) if isinstance(one, float) and other is not None else other)


@pytest.mark.parametrize("name", sorted(OF_STUDIES))
def test_a_study_has_the_figure(name, drawings):
    for wanted in OF_STUDIES[name]:
        assert any(found.startswith(wanted) for found in drawings), list(drawings)


def test_all_figures_of_studies_are_tested_here():
    known = [find_figure(name) for name in list_figures()]
    of_studies = [one.name for one in known if not (one.of_model or one.of_file or one.asks)]
    assert sorted(of_studies) == sorted(OF_STUDIES)


def test_every_figure_of_the_five_papers_has_a_command():
    found: dict[str, set[int]] = {}
    for name in list_figures():
        for said in find_figure(name).papers:
            paper, _, what = said.rpartition(", Figure")
            for first, last in re.findall(r"(\d+)(?:–(\d+))?", what) if paper else ():
                found.setdefault(paper, set()).update(range(int(first), int(last or first) + 1))
    assert set(found) == set(CITATIONS)
    assert found[CVPR] == set(range(1, 9))
    assert found[PREPRINT] == set(range(1, 38))
    assert found[VIT_CX] == set(range(1, 7))
    assert found[TIS] == set(range(1, 4))
    assert found[EEA] == set(range(1, 17))


def test_every_drawing_says_what_it_shows_with_numbers_and_where_it_comes_from(drawings):
    for drawing in drawings.values():
        assert re.search(r"\d", drawing.alt), drawing.name
        assert drawing.title
        assert drawing.reading.endswith((".", "="))
        assert "Study figures: 4 models, 4 images." in drawing.source
        assert "nan" not in drawing.alt
        assert (drawing.spec is None) != (drawing.svg is None)


def test_charts_show_what_their_tables_have(drawings):
    for drawing in drawings.values():
        if drawing.spec is None:
            continue
        shown = rows_of(drawing)
        for row in drawing.table.to_pylist():
            if drawing.name == "tree":  # lines are drawn, not joints
                row = {"distance": row["distance"]}
            assert any(all(same(value, other.get(key)) for key, value in row.items()) for other in shown), (
                drawing.name,
                row,
            )


def test_charts_keep_to_the_rules_of_vega_lite(drawings):
    """They are not checked each time that they are made, as that takes seconds."""
    altair = pytest.importorskip("altair")
    for drawing in drawings.values():
        if drawing.spec is not None:
            altair.Chart.from_dict(dict(drawing.spec), validate=True)
    broken = {**next(one.spec for one in drawings.values() if one.spec is not None), "mark": {"type": "no mark"}}
    with pytest.raises(pytest.importorskip("jsonschema").ValidationError):
        altair.Chart.from_dict(broken, validate=True)


def test_every_drawing_is_a_whole_document_light_and_dark(drawings):
    few = ["summary-mses", "cross-test-insertion", "landscape", "maps-zoo-vgg"]
    few += [name for name in drawings if name.startswith("attention-graphs")]
    for name in few:
        light, dark = drawings[name].to_svg(), drawings[name].to_svg(dark=True)
        for markup in (light, dark):
            assert ElementTree.fromstring(markup).tag.endswith("svg")
            assert "http://" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", markup)
        assert light != dark
    assert drawings["plane"].alt.split(",")[0] in drawings["plane"].to_svg().replace("&gt;", ">")


def test_drawings_are_saved_and_shown_in_notebooks(drawings, tmp_path):
    chart, sheet = drawings["explained-by"], drawings["maps-zoo-vgg"]
    assert chart.save(tmp_path / "a.svg").read_text("utf-8").count("<metadata>Study figures") == 1
    assert chart.save(tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    assert sheet.save(tmp_path / "b.pdf").read_bytes()[:4] == b"%PDF"
    bundle = chart._repr_mimebundle_()
    assert bundle["application/vnd.vegalite.v5+json"]["width"] == 700
    assert "<svg" in bundle["text/html"]
    assert "text/html" in sheet._repr_mimebundle_()
    assert chart.spec["width"] == "container"
    json.dumps(chart.themed(dark=True), allow_nan=False)


def test_families_have_the_same_color_in_all_charts(drawings):
    seen = 0
    for drawing in drawings.values():
        for part in _scales(drawing.spec or {}):
            colors = dict(zip(part["domain"], part["range"], strict=False))
            if "zoo/vgg" in colors and str(colors["zoo/vgg"]).startswith("#"):
                assert colors["zoo/vgg"] == family_color("older-cnn")
                seen += 1
                deit = [color for name, color in colors.items() if name.startswith("deit")]
                assert set(deit) <= {family_color("transformer")}
    assert seen >= 8


def _scales(part):
    if isinstance(part, dict):
        if "domain" in part and "range" in part and isinstance(part["range"], list):
            yield part
        for value in part.values():
            yield from _scales(value)
    elif isinstance(part, list):
        for value in part:
            yield from _scales(value)


def test_numbers_are_those_of_the_comparisons(study, drawings):
    crossed = CrossTest.from_study(study)
    table = drawings["cross-test-insertion"].table.to_pylist()
    matrix = crossed.normalized("insertion")
    for i, row in enumerate(crossed.models):
        for j, column in enumerate(crossed.models):
            (cell,) = [c["value"] for c in table if (c["row"], c["column"]) == (row, column)]
            assert cell == pytest.approx(matrix[i, j])
    evidence = study.table("evidence")
    own = evidence.filter(np.array(evidence["model"].to_pylist()) == "zoo/vgg")
    (vgg,) = [row for row in drawings["plane"].table.to_pylist() if row["model"] == "zoo/vgg"]
    assert vgg["disjunctivism"] == pytest.approx(how_it_decides(own).disjunctivism.value)
    most = max(row["cells"] for row in drawings["explained-by"].table.to_pylist())
    shares = explained_by({"zoo/vgg": own["sizes"].to_pylist()}, most)["zoo/vgg"]
    drawn = [r["share"] for r in drawings["explained-by"].table.to_pylist() if r["model"] == "zoo/vgg"]
    assert drawn == pytest.approx(shares)
    scores = study.score_tables()["scores"]
    (first,) = [r for r in scores.rows if (r.model, r.method) == ("zoo/vgg", "gradient")]
    cells = drawings["methods-insertion"].table.to_pylist()
    (cell,) = [c["value"] for c in cells if (c["row"], c["column"]) == ("gradient", "zoo/vgg")]
    assert cell == pytest.approx(first["insertion"].mean)


def test_curves_have_the_areas_of_the_study(study):
    made = find_figure("curves").drawings(study, model="zoo/resnet", device="cpu")
    scores = study.score_tables()["scores"]
    assert [one.name for one in made] == ["curves-insertion-zoo-resnet", "curves-deletion-zoo-resnet"]
    for row in scores.rows:
        if row.model == "zoo/resnet":
            assert f"{row.method} {row['insertion'].mean:.3f}" in made[0].alt


def test_an_image_is_chosen_by_position_or_name(study):
    by_position = find_figure("mixed-maps").drawings(study, image=2)
    by_name = find_figure("mixed-maps").drawings(study, image=study.plan.names[2])
    assert by_position[0].svg == by_name[0].svg
    (one,) = find_figure("mse-sizes").drawings(study, image=1)
    assert one.name == "mse-sizes-1"
    with pytest.raises(OptionError, match="0 to 3"):
        find_figure("mixed-maps").drawings(study, image=4)
    with pytest.raises(OptionError, match="Did you mean"):
        find_figure("mixed-maps").drawings(study, image="scenes:test[9]")


def test_what_a_figure_does_not_take_is_said(study):
    with pytest.raises(OptionError, match="plane has no option 'image'"):
        find_figure("plane").drawings(study, image=3)
    with pytest.raises(OptionError, match="Did you mean 'landscape'"):
        find_figure("landscap")


def test_figures_of_others_come_with_ours(study):
    @figure("how-many", "How many images", needs="predictions", order=1)
    def how_many(study):
        count = study.table("said").num_rows
        return Drawing("how-many", "How many", "Count.", f"{count} rows.", svg="<svg/>", source="said")

    try:
        assert list_figures()[0] == "how-many"
        assert next(_figures_of(study, asks=False)).alt == "16 rows."
    finally:
        FIGURES.forget("how-many")


def test_disputed_images_are_seen_by_one_model_of_each_family(study):
    (one,) = find_figure("cross-test-looks").drawings(study, count=1, device="cpu")
    rows = one.table.to_pylist()
    assert len({row["image"] for row in rows}) == 1
    assert {row["model"] for row in rows} == {row["maps_of"] for row in rows} == {"zoo/vgg", "deit#deit-0"}


def test_the_page_of_the_docs_lists_all_figures():
    page = (Path(__file__).parents[3] / "docs" / "figures.md").read_text(encoding="utf-8")
    listed = [row.split("|") for row in page.splitlines() if row.startswith("| `")]
    known = [find_figure(name) for name in list_figures()]
    assert [row[1].strip(" `") for row in listed] == [one.name for one in known]
    assert [row[2].strip() for row in listed] == [one.title for one in known]
    assert [row[4].strip() for row in listed] == ["; ".join(one.papers) for one in known]


def test_any_name_can_stand_at_a_tree():
    """Names are part of an expression there."""
    from suffice.compare.landscapes import Landscape
    from suffice.report.figures.landscapes import tree_chart

    names = ("it's", 'a "b" c', "back\\slash")
    tree = np.array([[0, 1, 0.1, 2], [2, 3, 0.2, 3]])
    placed = Landscape(names, np.zeros((3, 2)), "mds", (1.0, 0.0), 0.0, 0.0, tree, None)
    drawing = Drawing("tree", "A bell \x07 & more", "", "Three.", spec=tree_chart(placed, ["", "", ""]))
    said = "".join(ElementTree.fromstring(drawing.to_svg()).itertext())
    assert all(name in said for name in (*names, "A bell \ufffd & more"))
