"""What a report is made of, before it is a page: sections with sentences, tables, figures and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from suffice.report.figures.drawing import Drawing

FOLD = 14  # rows of a table that show at once


@dataclass(frozen=True)
class Source:
    """Where numbers come from.

    Attributes:
        facts: What to know about them: measurement, protocol, settings, test, by name.
        query: SQL over the folder of the study that gives the numbers.
    """

    facts: Mapping[str, str]
    query: str = ""


@dataclass(frozen=True)
class Cell:
    """What stands in one place of a table.

    Attributes:
        text: As it is read.
        value: The number behind it, for sorting and for copies; None where there is none.
        more: An interval or the like, quieter beside it.
        letters: Models that share one do not differ significantly.
        best: Whether it is to stand out.
        color: Of a dot before it.
    """

    text: str
    value: float | None = None
    more: str = ""
    letters: str = ""
    best: bool = False
    color: str = ""

    @property
    def whole(self) -> str:
        """All of it in a row, for copies."""
        return " ".join(part for part in (self.text, self.more, self.letters) if part)


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        title: Its heading.
        kind: ``"text"``, ``"number"``, or ``"wide"`` for sentences.
        hint: What it means, where the heading does not say.
        query: SQL for one of its numbers, with ``{model}``, ``{method}`` and so on for what the row is about.
    """

    title: str
    kind: Literal["text", "number", "wide"] = "text"
    hint: str = ""
    query: str = ""


def lettered(rows: Iterable[Iterable[Cell]]) -> bool:
    """Whether any cell has letters, which say what does not differ significantly."""
    return any(cell.letters for row in rows for cell in row)


@dataclass(frozen=True)
class Table:
    """A table that sorts, and copies.

    Attributes:
        name: Of its place on the page.
        title: What it shows.
        columns: Its columns.
        rows: A cell for each column.
        keys: What each row is about, by name: ``{"model": "zoo/deit"}``; fills the queries of columns.
        reading: How to read it.
        source: Where the numbers come from.
    """

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    keys: Sequence[Mapping[str, str]] = ()
    reading: str = ""
    source: Source | None = None

    @property
    def fold(self) -> int:
        """So many rows show at once; 0 where all do."""
        return FOLD if len(self.rows) > FOLD + 4 else 0


@dataclass(frozen=True)
class Finding:
    """A sentence that significant differences allow.

    Attributes:
        text: The sentence.
        shown: Interval, test and number of images.
        question: Section where the rest stands.
        source: Where the numbers come from.
    """

    text: str
    shown: str
    question: str
    source: Source | None = None


@dataclass(frozen=True)
class Tile:
    """A picture in the gallery.

    Attributes:
        markup: An ``img`` or ``svg`` element; empty where there is nothing to see.
        what: Below it.
        alt: What it shows.
    """

    markup: str
    what: str
    alt: str


@dataclass(frozen=True)
class Card:
    """What one model has to say of an image: its name, its color, pictures, and a line."""

    model: str
    color: str
    tiles: Sequence[Tile]
    says: str


@dataclass(frozen=True)
class Case:
    """An image of the gallery with all models, and the rule that chose it."""

    image: str
    rule: str
    why: str
    cards: Sequence[Card]
    definitions: str = ""


@dataclass(frozen=True)
class Section:
    """A part of the report.

    Attributes:
        id: Its anchor.
        title: A question, mostly.
        lead: How to think about it.
        figures: Drawings.
        tables: Tables.
    """

    id: str
    title: str
    lead: str = ""
    figures: Sequence[Drawing] = ()
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Page:
    """All of a report.

    Attributes:
        title: Name of the study.
        lead: What it is, in a sentence or two.
        facts: Numbers to begin with, by what they count.
        studied: Models, measurements.
        findings: In sentences.
        untold: What the data could not tell.
        sections: A question each.
        cases: The gallery.
        methods: Prose for an appendix.
        settings: Tables of settings and versions.
        bibtex: References.
        made: When, with what.
        terms: What words of the findings mean.
    """

    title: str
    lead: str
    facts: Mapping[str, str]
    studied: Section
    findings: Sequence[Finding]
    untold: Sequence[str]
    sections: Sequence[Section]
    cases: Sequence[Case]
    methods: Sequence[str]
    settings: Sequence[Table]
    bibtex: str
    made: str
    terms: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
