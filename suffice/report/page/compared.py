"""Tables of :mod:`suffice.compare` as tables of the page: cross-tests, landscapes, families, activations, ensembles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from suffice.compare.channels import Activations
from suffice.compare.cross_result import CrossTest
from suffice.compare.indices import Index
from suffice.compare.of_cross import of_activations, of_cross_test
from suffice.compare.sections import Section, as_text
from suffice.compare.tables import sole_method
from suffice.errors import SufficeError
from suffice.report.figures import queries
from suffice.report.figures.matrices import cross_query
from suffice.report.figures.reading import good_rows
from suffice.report.page.content import Cell, Column, Source, Table
from suffice.report.page.models import model_cell
from suffice.report.page.sources import source_of
from suffice.report.page.wording import short

if TYPE_CHECKING:
    from suffice.study import Study

# Tables of a cross-test by the ends of their names, and what the query of the matrix calls their numbers.
PARTS = {"": "raw", "-normalized": "value", "-landscape": "", "-families": "value"}
LANDSCAPE = "suffice.compare.CrossTest.landscape of the matrix that the query gives"
COLUMN = "{column}"


def cross_test_tables(study: Study, table: str) -> Iterator[Table]:
    """Matrices, landscape and families of every method and metric of a cross-test."""
    import pyarrow.compute as pc

    rows = good_rows(study, table, [])
    for method in rows["method"].unique().to_pylist() if "method" in rows.column_names else [None]:
        own = sole_method(rows, method)
        whole = own.filter(pc.is_in(own["maps_of"], own["model"].unique()))
        try:
            found = CrossTest.from_table(whole)
            sections = of_cross_test(found, table)
        except SufficeError:  # too little is done yet
            continue
        by_name = {one.name: one for one in sections}
        for metric in found.metrics:
            for part, what in PARTS.items():
                one = by_name.get(f"{table}-{metric.replace('/', '-')}{part}")
                if one is not None:
                    made = {"positions": LANDSCAPE} if part == "-landscape" else {}
                    query = cross_query(study, table, found, metric, families=part == "-families")
                    source = source_of(study, table, query, **made)
                    yield as_table(study, one, source, str(method or ""), _cells_of(query, what))


def _cells_of(query: str, what: str) -> str:
    """From the query of a matrix to that of one of its numbers; none without what it is called in the matrix."""
    if not what:
        return ""
    return f'SELECT {what} FROM (\n{queries.inside(query)}\n)\nWHERE "row" = \'{{maps_of}}\' AND "column" = {COLUMN};'


def activation_table(study: Study, table: str) -> Table | None:
    """How unevenly the activations of channels are spread."""
    try:
        section = of_activations(Activations.from_table(good_rows(study, table, [])), table)
    except SufficeError:
        return None
    made = {"dominance": "suffice.compare.Activations.dominance of the means"}
    found = as_table(study, section, source_of(study, table, queries.channels(study, table), **made))
    return replace(found, title="How unevenly activations are spread over channels")


def as_table(study: Study, section: Section, source: Source, more: str = "", query: str = "") -> Table:
    """A table of a comparison as one of the page; of a matrix, with the query of its numbers."""
    known = {model.label for model in study.plan.models}
    kinds: Sequence[bool] = [number in section.numeric for number in range(len(section.columns))]
    columns = [
        Column(title, "number", query=query.replace(COLUMN, queries.text(title))) if numeric else Column(title)
        for title, numeric in zip(section.columns, kinds, strict=True)
    ]
    keys = [{"maps_of": str(row[0])} for row in section.rows] if query else []
    rows = [[_cell(study, value, known) for value in row] for row in section.rows]
    name = "-".join(part for part in (section.name, more) if part)
    title = section.title.partition(": ")[2] or section.title
    title = f"{title[:1].upper()}{title[1:]}{f' ({more})' if more else ''}"
    return Table(f"table-{name}", title, columns, rows, keys, " ".join(section.notes), source)


def _cell(study: Study, value: Any, known: set[str]) -> Cell:
    if isinstance(value, str):
        return model_cell(study, value) if value in known else Cell(value)
    if isinstance(value, Index):
        return Cell(short(value.value), value.value, f"[{short(value.low)}, {short(value.high)}]")
    number = float(value) if isinstance(value, (int, float)) and value == value else None
    return Cell(short(number) if number is not None and isinstance(value, float) else as_text(value), number)
