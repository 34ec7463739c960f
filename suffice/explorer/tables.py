"""The tables of a study, page by page: filtered and sorted by DuckDB where they lie.

What the page sends is never part of a query: columns are looked up among those that a table has, comparisons among
those there are, and values are parameters.
"""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any

from suffice.errors import MissingExtra, OptionError, StudyError
from suffice.explorer.errors import Unknown
from suffice.explorer.reading import Fields
from suffice.report.figures import queries
from suffice.study import Study
from suffice.study.reading import finished_shards

MOST_ROWS = 200  # of a page
MOST_FILTERS = 16
FEW_VALUES = 60  # columns of text with no more values than this offer them
LONGEST_VALUE = 300  # characters of a list that is shown
BINS = 24
ROWS = "read_parquet(?, hive_partitioning = true, hive_types_autocast = false, union_by_name = true)"
HIDDEN = ("picture", "region_words", "region_ratios", "measurement")

COMPARISONS = {
    "is": "{} = ?", "is not": "{} <> ?", "<": "{} < ?", "≤": "{} <= ?", ">": "{} > ?", "≥": "{} >= ?",
    "contains": "contains(lower(CAST({} AS VARCHAR)), lower(?))",
    "has": "list_contains(string_split(translate(CAST({} AS VARCHAR), '[] ', ''), ','), ?)",
    "missing": "{} IS NULL", "there": "{} IS NOT NULL",
}  # fmt: skip
FITTING = {
    "text": ("is", "is not", "contains", "missing", "there"),
    "number": ("is", "is not", "<", "≤", ">", "≥", "missing", "there"),
    "flag": ("is", "missing", "there"),
    "list": ("has", "contains", "missing", "there"),
}


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: Its name.
        kind: Whether it holds a ``"number"``, ``"text"``, ``"flag"`` or ``"list"``.
        type: Its type in DuckDB.
    """

    name: str
    kind: str
    type: str = ""

    @property
    def value(self) -> str:
        """Its value in SQL; what is not a number, as metrics give where they do not judge, is missing."""
        return queries.known(self.name) if self.type in ("FLOAT", "DOUBLE") else queries.name(self.name)

    @property
    def shown(self) -> str:
        """What a query selects to show it."""
        return f"left(CAST({self.value} AS VARCHAR), {LONGEST_VALUE})" if self.kind == "list" else self.value

    def condition(self, comparison: str, value: Any) -> tuple[str, list[Any]]:
        """A condition of SQL, and its parameters."""
        if comparison not in FITTING[self.kind]:
            raise OptionError(
                f"{self.name} cannot be compared by {comparison!r}; it can by {', '.join(FITTING[self.kind])}."
            )
        written = COMPARISONS[comparison].format(self.value)
        if comparison in ("missing", "there"):
            return written, []
        if self.kind == "number" and not (isinstance(value, (int, float)) and not isinstance(value, bool)):
            raise OptionError(f"{self.name} is compared with a number, not with {str(value)[:40]!r}.")
        if self.kind == "number" and not abs(value) < 1e18:
            raise OptionError(f"{self.name} is compared with a number below 10^18.")
        if self.kind == "flag" and not isinstance(value, bool):
            raise OptionError(f"{self.name} is true or false, not {str(value)[:40]!r}.")
        if self.kind in ("text", "list") and not (isinstance(value, str) and len(value) <= LONGEST_VALUE):
            raise OptionError(f"{self.name} is compared with a text of up to {LONGEST_VALUE} characters.")
        return written, [value]


class Tables:
    """The tables and figures of a study.

    Args:
        study: One that was run, in a folder of this machine.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        if study.store is None or study.store.local is None:
            raise StudyError("The explorer shows studies that were run, in a folder of this machine.")
        try:
            import duckdb
        except ImportError as error:
            raise MissingExtra("Tables of a study need DuckDB: pip install 'suffice[serve]'.") from error
        self._database = duckdb.connect(":memory:")
        self._lock, self._drawing = threading.Lock(), threading.Lock()
        self._columns = lru_cache(maxsize=64)(self._find_columns)
        self._values = lru_cache(maxsize=64)(self._find_values)

    def close(self) -> None:
        """End the database."""
        with self._lock:
            self._database.close()

    @cached_property
    def names(self) -> list[str]:
        """Tables of which something is done."""
        return [name for name in self.study.tables if self._files(name)]

    @property
    def about(self) -> dict[str, Any]:
        """What the page has to know: the name of the study, its tables, their columns and the values of some."""
        tables = [
            {
                "name": name,
                "columns": [
                    {"name": c.name, "kind": c.kind, "values": self._values(name).get(c.name)}
                    for c in self._columns(name).values()
                ],
            }
            for name in self.names
        ]
        return {"name": self.study.asked.name, "tables": tables, "comparisons": FITTING}

    def rows(self, fields: Fields) -> dict[str, Any]:
        """A page of rows, how many there are in all, and, where a column is named in ``bins``, how they spread.

        Fields: ``table``, ``filters`` (each ``column``, ``by``, ``value``), ``sort``, ``descending``, ``offset``,
        ``count``, ``bins``.
        """
        name = fields.one_of("table", self.names)
        columns = self._columns(name)
        conditions, parameters = self._conditions(columns, fields.some("filters", MOST_FILTERS))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        given = [self._files(name), *parameters]
        order = ""
        if (by := fields.maybe_text("sort")) is not None:
            direction = "DESC" if fields.flag("descending") else "ASC"
            order = f" ORDER BY {_column(columns, by).value} {direction} NULLS LAST"
        offset, count = fields.whole("offset", 0, 10**9, 0), fields.whole("count", 1, MOST_ROWS, 50)
        selected = ", ".join(column.shown for column in columns.values())
        found = self._ask(f"SELECT {selected} FROM {ROWS}{where}{order} LIMIT ? OFFSET ?", [*given, count, offset])
        total = self._ask(f"SELECT count(*) FROM {ROWS}{where}", given)[0][0]
        answer = {"columns": list(columns), "rows": [_plain(row) for row in found], "all": total, "offset": offset}
        if (binned := fields.maybe_text("bins")) is not None:
            answer["bins"] = self._spread(_column(columns, binned), where, given)
        return answer

    def figures(self) -> list[dict[str, Any]]:
        """The figures that the study has the data for: charts as specifications, drawings as SVG."""
        from suffice.report.figures import figures_of

        return [
            {
                "name": one.name, "title": one.title, "reading": one.reading, "alt": one.alt,
                "light": None if one.spec is None else one.themed(), "svg": one.svg,
                "dark_svg": None if one.svg is None else one.to_svg(dark=True),
                "dark": None if one.spec is None else one.themed(dark=True),
                "behind": None if one.behind is None else asdict(one.behind),
            }
            for one in self._drawings(figures_of)
        ]  # fmt: skip

    def _drawings(self, figures_of: Any) -> list[Any]:
        with self._drawing:  # rows can be asked for meanwhile
            if not hasattr(self, "_drawn"):
                self._drawn = list(figures_of(self.study))
        return self._drawn

    def _spread(self, column: Column, where: str, given: list[Any]) -> dict[str, Any]:
        """How many rows lie in each of some bins of a number, or have each of the most frequent texts."""
        if column.kind != "number":
            counted = f"SELECT CAST({column.value} AS VARCHAR) AS v, count(*) FROM {ROWS}{where}"
            query = f"{counted} GROUP BY v ORDER BY 2 DESC, 1 LIMIT ?"
            return {"column": column.name, "values": self._ask(query, [*given, BINS])}
        there = f"(SELECT CAST({column.value} AS DOUBLE) AS v FROM {ROWS}{where}) WHERE isfinite(v)"
        ends = self._ask(f"SELECT min(v), max(v) FROM {there}", given)[0]
        if None in ends:
            return {"column": column.name, "low": 0.0, "high": 0.0, "counts": []}
        low, high = (float(end) for end in ends)
        width = (high - low) / BINS or 1.0
        query = f"SELECT least(CAST(floor((v - ?) / ?) AS INTEGER), ?) AS b, count(*) FROM {there} GROUP BY b"
        counts = dict(self._ask(query, [low, width, BINS - 1, *given]))
        return {"column": column.name, "low": low, "width": width, "counts": [counts.get(b, 0) for b in range(BINS)]}

    def _conditions(self, columns: dict[str, Column], filters: list[Any]) -> tuple[list[str], list[Any]]:
        conditions: list[str] = []
        parameters: list[Any] = []
        for one in filters:
            fields = Fields(one)
            column, by = _column(columns, fields.text("column")), fields.one_of("by", tuple(COMPARISONS), "is")
            condition, values = column.condition(by, one.get("value"))
            conditions.append(condition)
            parameters += values
        return conditions, parameters

    def _files(self, table: str) -> list[str]:
        store = self.study.store
        assert store is not None
        return [store.path(shard.table) for shard in finished_shards(self.study.plan, store, table)]

    def _find_columns(self, table: str) -> dict[str, Column]:
        described = self._ask(f"DESCRIBE SELECT * FROM {ROWS}", [self._files(table)])
        types = {name: str(kind) for name, kind, *_ in described if name not in HIDDEN and kind != "BLOB"}
        found = [Column(name, _kind(kind), kind) for name, kind in types.items()]
        found.sort(key=lambda column: column.name != "model")  # the first, as elsewhere
        return {column.name: column for column in found}

    def _find_values(self, table: str) -> dict[str, list[str]]:
        """Of columns of text with few values, all of them."""
        found = {}
        for column in self._columns(table).values():
            if column.kind == "text" and column.name not in ("image_id", "why"):
                name = column.value
                query = f"SELECT DISTINCT {name} FROM {ROWS} WHERE {name} IS NOT NULL ORDER BY 1 LIMIT ?"
                values = [row[0] for row in self._ask(query, [self._files(table), FEW_VALUES + 1])]
                if 0 < len(values) <= FEW_VALUES:
                    found[column.name] = values
        return found

    def _ask(self, query: str, parameters: list[Any]) -> list[tuple[Any, ...]]:
        with self._lock:
            return list(self._database.execute(query, parameters).fetchall())


def _column(columns: dict[str, Column], name: str) -> Column:
    if name not in columns:
        raise Unknown(f"There is no column {name[:60]!r}.")
    return columns[name]


def _kind(kind: str) -> str:
    if kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "LIST")):
        return "list"
    if kind == "BOOLEAN":
        return "flag"
    return "text" if kind.startswith("VARCHAR") else "number"


def _plain(row: tuple[Any, ...]) -> list[Any]:
    """A row for JSON, which knows no NaN."""
    return [
        None if isinstance(v, float) and v != v else v if isinstance(v, (int, float, str, bool)) else _text(v)
        for v in row
    ]


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
