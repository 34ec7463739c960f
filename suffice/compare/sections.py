"""A comparison as tables: what commands print, and files keep."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Section:
    """One table of a comparison.

    Attributes:
        name: Of files and in JSON: letters, digits and dashes.
        title: Above it.
        columns: Headings.
        rows: As many values a row: texts, numbers, intervals (:class:`Index`), or None.
        notes: Sentences below it.
        long: Whether it is too long to be printed, and in files only.
        short: Headings where there is no room for those; rows then begin with a number.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    notes: tuple[str, ...] = ()
    long: bool = False
    short: tuple[str, ...] = ()

    @property
    def headings(self) -> tuple[str, ...]:
        """What is printed above the columns."""
        return self.short or self.columns

    def cells(self) -> Iterator[list[str]]:
        """The rows as texts."""
        for number, row in enumerate(self.rows, start=1):
            first, *rest = (as_text(value) for value in row)
            yield [f"{number} {first}" if self.short else first, *rest]

    @property
    def numeric(self) -> list[int]:
        """The columns that are not texts."""
        return [n for n in range(len(self.columns)) if not any(isinstance(row[n], str) for row in self.rows)]

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        rows = [{name: _plain(value) for name, value in zip(self.columns, row, strict=True)} for row in self.rows]
        return {"title": self.title, "rows": rows, "notes": list(self.notes)}


@dataclass(frozen=True)
class Comparison:
    """What differs between the models of a study.

    Attributes:
        study: Its name.
        models: Labels of the models.
        images: How many images.
        sections: The tables.
    """

    study: str
    models: tuple[str, ...]
    images: int
    sections: tuple[Section, ...]

    def __getitem__(self, name: str) -> Section:
        """A table by its name."""
        return next(one for one in self.sections if one.name == name)

    def __contains__(self, name: str) -> bool:
        return any(one.name == name for one in self.sections)

    def to_json(self) -> dict[str, Any]:
        """The same as plain values; NaN is for whoever writes it to make null."""
        tables = {one.name: one.to_json() for one in self.sections}
        return {"study": self.study, "models": list(self.models), "images": self.images, "tables": tables}

    def write(self, out: str | Path) -> list[Path]:
        """Write ``comparison.md``, ``comparison.json`` and one CSV file a table to a folder; the files."""
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        files = [folder / "comparison.md", folder / "comparison.json"]
        files[0].write_text(self.to_markdown(), encoding="utf-8")
        text = json.dumps(finite(self.to_json()), indent=1, ensure_ascii=False, allow_nan=False)
        files[1].write_text(text + "\n", encoding="utf-8")
        for one in self.sections:
            files.append(folder / f"{one.name}.csv")
            with files[-1].open("w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows([one.columns, *([_exact(value) for value in row] for row in one.rows)])
        return files

    def to_markdown(self) -> str:
        """The tables that are not too long, for people."""
        said = [f"# {self.study}: {len(self.models)} models, {self.images} images"]
        for one in self.sections:
            if one.long:
                continue
            rule = ["---:" if number in one.numeric else "---" for number in range(len(one.columns))]
            lines = [f"| {' | '.join(row)} |" for row in (one.headings, rule, *one.cells())]
            said += [f"## {one.title}", "\n".join(lines), *one.notes]
        return "\n\n".join(said) + "\n"


def as_text(value: Any) -> str:
    """A value as people read it.

    Example:
        >>> as_text(0.123456), as_text(12), as_text(None), as_text(True), as_text(1e-9)
        ('0.123', '12', '–', 'yes', '1e-09')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def _exact(value: Any) -> Any:
    """A value for a file: an interval as ``value [low, high]``, with all digits."""
    plain = _plain(value)
    return f"{plain['value']} [{plain['low']}, {plain['high']}]" if isinstance(plain, Mapping) else plain


def finite(value: Any) -> Any:
    """Plain values for JSON, which has no NaN and no infinity: they become None."""
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
