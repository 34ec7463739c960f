"""The report of a study: its numbers can be asked for again, nothing in it runs away, and it stays small."""

import json
import math
import re
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import pytest

import suffice
from benchmarks.report_size import made_up_study
from suffice.attribution.method import all_methods
from suffice.errors import StudyError
from suffice.metrics import all_metrics
from suffice.report import make_report
from suffice.report.figures.drawing import Drawing
from suffice.report.page.appendix import CITED, STATISTICS, _entries, _keys
from suffice.report.page.render import tight


class Parts(HTMLParser):
    """What an HTML document is made of."""

    def __init__(self, html):
        super().__init__()
        self.open, self.ids, self.addresses, self.headings, self.unnamed = [], [], [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids += [given["id"]] if "id" in given else []
        self.addresses += [given[name] for name in ("src", "href") if name in given]
        self.headings += [int(tag[1])] if re.fullmatch("h[1-6]", tag) else []
        if tag == "img" and "alt" not in given:
            self.unnamed.append(attributes)


def tables_of(page):
    return [*page.studied.tables, *(table for section in page.sections for table in section.tables)]


def test_findings_are_those_that_were_made_up(report):
    """Each model has larger MSEs, fewer of them, and more sub-explanations than the one before; rise is truest."""
    said = [found.text for found in report.page.findings]
    assert any(
        re.match(r"model-06 needs \S+ more cells for a minimal sufficient explanation than model-00 ", s) for s in said
    )
    assert any(
        re.match(r"model-00 has .* more minimal sufficient explanations \(MSEs\) than model-06 ", s) for s in said
    )
    assert any(s.startswith("By insertion, rise scores 0.2") for s in said)
    assert any(s.startswith("By deletion, rise scores 0.") and " lower than " in s for s in said)


def test_tables_name_measurement_protocol_and_settings(report):
    sources = [table.source for table in tables_of(report.page) if table.source]
    assert all(source.facts["measurement"] and source.facts["settings"] for source in sources)
    assert "default" in [source.facts["protocol"] for source in sources]


def test_it_refers_to_nothing_outside_itself(report):
    parts = Parts(report.html)
    assert [one for one in parts.addresses if not one.startswith(("#", "data:"))] == []
    assert len(set(parts.ids)) == len(parts.ids)
    assert {one[1:] for one in parts.addresses if len(one) > 1 and one[0] == "#"} <= set(parts.ids)


def test_it_can_be_read_aloud(report):
    parts = Parts(report.html)
    assert parts.unnamed == []
    assert parts.headings[0] == 1
    assert parts.headings.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(parts.headings, parts.headings[1:], strict=False))
    assert all(word in report.html for word in ('<html lang="en">', "<main", "<nav", "<header", "<footer"))
    for figure in report.figures:
        assert escape(figure.alt) in report.html or figure.alt.replace("'", "&#39;") in report.html


def test_no_path_of_this_machine_is_in_it(made_up, report):
    assert str(Path(made_up.store.root).parent) not in report.html
    assert str(Path.home()) not in report.html


def test_texts_of_a_study_cannot_become_part_of_the_page(tmp_path):
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>'\""
    study = made_up_study(tmp_path / "evil", models=2, images=12, block=16)
    plan = json.loads((tmp_path / "evil/plan.json").read_text())
    plan["asked"]["name"] = evil
    plan["models"][0]["family"] = evil
    (tmp_path / "evil/plan.json").write_text(json.dumps(plan))
    chart = Drawing(evil, evil, evil, evil, spec={"mark": "bar", "data": {"values": [{"a": evil}]}}, source=evil)
    html = make_report(suffice.Study.open(study.store.place), figures=[chart]).html
    assert "<img src=x" not in html
    assert "<script>alert" not in html
    assert html.count("<script") == html.count("</script>")


def test_it_says_what_is_not_done(tmp_path):
    study = made_up_study(tmp_path / "half", models=2, images=40, block=16)
    for file in (tmp_path / "half/tables/measurement=evidence").rglob("00002.parquet"):
        file.unlink()
    assert "It is not finished" in make_report(study, figures=[]).page.studied.lead
    empty = suffice.Study("empty", "scenes:test[:2]", ["zoo/resnet"], {"said": {"kind": "predictions"}})
    empty.run(tmp_path / "empty", only="said", device="cpu")
    for file in (tmp_path / "empty/tables").rglob("*.parquet"):
        file.unlink()
    with pytest.raises(StudyError, match="run it first"):
        make_report(suffice.Study.open(tmp_path / "empty"))


def test_many_models_stay_small_and_the_gallery_gives_way(tmp_path):
    """benchmarks/report_size.py does the same with 20 models and 5,000 images."""
    study = made_up_study(tmp_path / "run", models=8, images=60, block=60)
    made = make_report(study, figures=[], each=1)
    assert made.page.cases
    assert len(made.html.encode()) < 1_500_000
    smaller = make_report(study, figures=[], each=1, largest=1)
    assert smaller.page.cases == []
    assert smaller.page.findings == made.page.findings


def test_it_saves_and_shows_itself(report, tmp_path, made_up):
    assert report.save(tmp_path / "deep/report.html").read_text("utf-8") == report.html
    shown = report._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert shown.count("<") == 2  # the whole page is text in it
    assert "findings" in repr(report)
    made_up.report(tmp_path / "again.html", figures=[], each=0)
    assert (tmp_path / "again.html").stat().st_size > 50_000
    svg = Drawing("drawn", "Drawn", "", "alt", svg='<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"/>')
    files = make_report(made_up, figures=[svg], each=0).save_figures(tmp_path / "figures", ["svg"])
    assert [file.name for file in files] == ["drawn.svg"]


def test_every_method_and_metric_has_its_reference():
    entries = _entries()
    methods = [one.name for one in all_methods().values() if "control" not in one.reference and _ours(one.function)]
    without = [name for name in methods if not _keys(name)]
    assert without == []
    assert [name for name, one in all_metrics().items() if _ours(one.function) and not _keys(name)] == []
    assert {key for keys in CITED.values() for key in keys} | set(STATISTICS) == set(entries)
    assert all(entry.count("{") == entry.count("}") for entry in entries.values())


def _ours(function):
    return function.__module__.startswith("suffice.")


def test_references_are_those_of_what_was_used(report):
    keys = re.findall(r"@\w+\{(\w+),", report.page.bibtex)
    assert len(keys) == len(set(keys))
    assert {"suffice", "petsiuk2018rise", "selvaraju2017gradcam", "shitole2021one", "holm1979simple"} <= set(keys)
    assert "englebert2023explaining" not in keys
    cited = {key for line in report.page.methods for key in re.findall(r"[a-z]+\d{4}[a-z]+", line)}
    assert cited <= set(keys)


def test_the_appendix_says_what_was_done(report):
    said = {line.partition(" ")[0]: line for line in report.page.methods}
    settings = report.page.settings[0].rows
    (grid,) = {int(re.search(r"grid = (\d+)", row[2].text)[1]) for row in settings if row[1].text == "evidence"}
    assert int(re.search(r"up to (\d+) cells", said["Evidence"])[1]) <= grid**2
    assert "more than" in said["Evidence"]
    assert said["Scores"].count("by the protocol") == 1


def test_intervals_do_not_break():
    assert tight("39 % fewer [34, 44], p < 0.001 over 5 images") == (
        "39\u00a0% fewer [34,\u00a044], p <\u00a00.001 over 5 images"
    )


def test_a_study_with_predictions_alone_has_a_report(tmp_path):
    study = suffice.Study("said", "scenes:test[:6]", ["zoo/resnet", "zoo/deit"], {"said": {"kind": "predictions"}})
    made = study.run(tmp_path / "run", device="cpu").report()
    titles = [table.title for table in tables_of(made.page)]
    assert titles == ["The models", "What was measured", "Every two models"]
    right = tables_of(made.page)[0].rows[0][2].value
    assert math.isclose(right, 1.0)


def test_letters_are_explained_where_there_are_some(made_up, tmp_path):
    """Of two images nothing can be told apart, so that no model has a letter."""
    told = [table for table in tables_of(made_up.report().page) if "share a letter" in table.reading]
    assert {table.name for table in told} >= {"models", "ways-evidence"}
    few = made_up_study(tmp_path / "few", models=3, images=2, block=2).report()
    for table in tables_of(few.page):
        assert ("share a letter" in table.reading) == any(cell.letters for row in table.rows for cell in row), (
            table.name
        )
