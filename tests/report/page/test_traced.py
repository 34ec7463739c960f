"""Every number can be asked for again: all SQL that a report shows is run by DuckDB, and gives the number it is of."""

import math
from html.parser import HTMLParser
from pathlib import Path

import duckdb
import pytest

from suffice.report import make_report

ALONE = ("landscape", "tree", "seeds-needed")  # figures whose numbers a function makes of what the query gives
ENOUGH = 1e-5  # some means are of float32


class Shown(HTMLParser):
    """What a page shows of SQL: that of cells with their numbers, and that below tables, figures and findings."""

    def __init__(self, html):
        super().__init__()
        self.cells, self.below, self.tables = [], [], {}
        self._place, self._heads, self._row, self._column, self._code, self._how = "", [], {}, 0, None, False
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        kind = given.get("class") or ""
        if tag == "figure" or (tag == "div" and kind == "table"):
            self._place = given["id"]
        elif tag == "thead":
            self._heads = []
        elif tag == "tr":
            self._row = {name[5:]: value for name, value in attributes if name.startswith("data-")}
            self._column = 0
        elif tag == "th" and given.get("scope") == "col":
            self._heads.append(given.get("data-query"))
        elif tag in ("th", "td"):
            if "traced" in kind.split():
                query = self._heads[self._column]
                for name, value in self._row.items():
                    query = query.replace(f"{{{name}}}", value.replace("'", "''"))
                self.cells.append((self._place, query, given["data-value"]))
            self._column += 1
        elif tag == "details":
            self._how = "how" in kind
        elif tag == "code" and self._how:
            self._code = ""

    def handle_endtag(self, tag):
        if tag == "code" and self._code is not None:
            self.below.append((self._place, self._code))
            self._code = None
        elif tag == "details":
            self._how = False

    def handle_data(self, data):
        if self._code is not None:
            self._code += data


@pytest.fixture(scope="module")
def small(study):
    """The report of a study with every kind of measurement."""
    return make_report(study, each=1)


@pytest.fixture(scope="module", params=["small", "report"])
def traced(request):
    """A report, and the folder of its study, in which queries are run."""
    study = request.getfixturevalue("study" if request.param == "small" else "made_up")
    return request.getfixturevalue(request.param), Path(study.store.root)


def same(number, other):
    return math.isclose(float(number), float(other), rel_tol=ENOUGH, abs_tol=1e-7)


def numbers(rows):
    return [value for row in rows for value in row if isinstance(value, (int, float)) and math.isfinite(value)]


def asked(query):
    """Rows that a query gives; planned and run once, where ``duckdb.sql`` would plan it twice."""
    return duckdb.execute(query).fetchall()


def test_every_number_that_can_be_clicked_is_what_its_query_gives(traced, monkeypatch):
    report, folder = traced
    monkeypatch.chdir(folder)
    cells = Shown(report.html).cells
    for place, query, value in cells:
        ((found, *_),) = asked(query)
        assert value == "" or same(found, value), (place, query)
    assert len(cells) > 60


def test_queries_below_tables_and_figures_are_complete(traced, monkeypatch):
    report, folder = traced
    monkeypatch.chdir(folder)
    shown = Shown(report.html)
    of_tables = {}
    for place, query in shown.below:
        rows = asked(query)
        assert rows, place
        of_tables.setdefault(place, []).extend(numbers(rows))
    for place, _, value in shown.cells:
        assert value == "" or any(same(value, one) for one in of_tables[place]), (place, value)
    figures = [figure for figure in report.figures if figure.table is not None]
    assert {f"figure-{figure.name}" for figure in figures} <= set(of_tables)


def test_queries_of_figures_give_their_numbers(traced, monkeypatch):
    """Each number of a chart stands in a row of what the query gives, beside the model or method that it is of."""
    report, folder = traced
    monkeypatch.chdir(folder)
    for figure in report.figures:
        if figure.table is None or figure.name.startswith(ALONE):
            continue
        found = asked(figure.query)
        for row in figure.table.to_pylist():
            value, names = row[drawn(figure)], {str(one) for one in row.values() if isinstance(one, str)}
            if value is None or not math.isfinite(value) or value == 0:
                continue
            assert any(
                any(isinstance(one, (int, float)) and same(one, value) for one in other)
                and names & {one for one in other if isinstance(one, str)}
                for other in found
            ), (figure.name, row)


def drawn(figure):
    """The column that a chart draws."""
    known = ("value", "per_image", "share", "ratio", "mean", "disjunctivism", "seconds")
    if figure.name == "activations":
        return "mean"
    return next(name for name in known if name in figure.table.column_names)


def test_queries_of_findings_give_their_effects(made_up, report, monkeypatch):
    monkeypatch.chdir(Path(made_up.store.root))
    for found in report.page.findings:
        (((effect, images)),) = asked(found.source.query)
        words = found.text.replace("\u00a0", " ")
        said = [f"{effect:.1f} times", f"{100 * (effect - 1):.0f} % more", f"{100 * (1 - effect):.0f} % fewer"]
        said += [f"{abs(effect):.{places}f} " for places in range(5)]
        assert any(one in words for one in said), (words, effect)
        assert f"over {images} images" in found.shown
    assert len(report.page.findings) > 5


def test_what_made_the_rest_is_named(small):
    """Positions and intervals are no SQL; the function that made them is said."""
    by_name = {figure.name: figure for figure in small.figures}
    assert "CrossTest.landscape(metric='insertion'" in by_name["landscape"].source
    assert "suffice.compare" in by_name["summary-mses"].source
    assert "CrossTest.landscape" in small.html
