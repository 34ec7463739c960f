"""Tables of :mod:`suffice.compare` as tables of the page: cross-tests, landscapes, families, activations, ensembles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from suffice.compare.channels import Activations
from suffice.compare.cross_result import CrossTest
from suffice.compare.indices import Index
from suffice.compare.of_cross import of_activations, of_cross_test
from suffice.compare.sections import Section, as_text
from suffice.compare.tables import sole_method
from suffice.errors import SufficeError
from suffice.report.figures.reading import good_rows
from suffice.report.page.content import Cell, Column, Source, Table
from suffice.report.page.models import model_cell
from suffice.report.page.sources import select, source_of
from suffice.report.page.wording import short

if TYPE_CHECKING:
    from suffice.study import Study


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
        metrics = ", ".join(f'avg("{metric}") AS "{metric}"' for metric in found.metrics)
        where = "" if method is None else f"method = '{method}'"
        query = select(study, table, f"maps_of, model AS tested_on, {metrics}", "GROUP BY ALL", where)
        for one in sections:
            yield as_table(study, one, source_of(study, table, query), str(method or ""))


def activation_table(study: Study, table: str) -> Table | None:
    """How unevenly the activations of channels are spread."""
    try:
        section = of_activations(Activations.from_table(good_rows(study, table, [])), table)
    except SufficeError:
        return None
    return as_table(study, section, source_of(study, table))


def as_table(study: Study, section: Section, source: Source, more: str = "") -> Table:
    """A table of a comparison as one of the page."""
    known = {model.label for model in study.plan.models}
    kinds: Sequence[bool] = [number in section.numeric for number in range(len(section.columns))]
    columns = [
        Column(title, "number" if numeric else "text") for title, numeric in zip(section.columns, kinds, strict=True)
    ]
    rows = [[_cell(study, value, known) for value in row] for row in section.rows]
    name = "-".join(part for part in (section.name, more) if part)
    title = section.title.partition(": ")[2] or section.title
    title = f"{title[:1].upper()}{title[1:]}{f' ({more})' if more else ''}"
    return Table(f"table-{name}", title, columns, rows, reading=" ".join(section.notes), source=source)


def _cell(study: Study, value: Any, known: set[str]) -> Cell:
    if isinstance(value, str):
        return model_cell(study, value) if value in known else Cell(value)
    if isinstance(value, Index):
        return Cell(short(value.value), value.value, f"[{short(value.low)}, {short(value.high)}]")
    number = float(value) if isinstance(value, (int, float)) and value == value else None
    return Cell(as_text(value), number)
