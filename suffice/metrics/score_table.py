"""Methods × models × metrics over many images: the main table of a paper, with errors and significance."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from suffice.errors import OptionError
from suffice.metrics.outcome import Outcome
from suffice.metrics.scores import Scores, higher_is_better, with_arrow
from suffice.metrics.signed_ranks import wilcoxon
from suffice.metrics.tables import markdown_table, write_tables
from suffice.vision.stream import Skip

LATEX = {"_": "\\_", "%": "\\%", "#": "\\#", "±": "$\\pm$", "↑": "$\\uparrow$", "↓": "$\\downarrow$"}


@dataclass(frozen=True, eq=False)
class TableRow:
    """One model and method.

    Attributes:
        model: Name of the model.
        method: Name of the method, or label of the entry.
        values: By metric, one value an image, [N]; NaN where the metric leaves an image out.
        seconds: For one image, making its map; NaN where that is not known.
        facts: What else is known about the row, such as the number of masks, by name of a column.
        names: Name of each image, where known.
        ids: Identity of each image, where known.
        targets: The class explained in each image, [N], where known.
    """

    model: str
    method: str
    values: dict[str, Tensor]
    seconds: float
    facts: Mapping[str, float] = field(default_factory=dict)
    names: Sequence[str] = ()
    ids: Sequence[str] = ()
    targets: Tensor | None = None

    def __getitem__(self, metric: str) -> Outcome:
        """Values of one metric, with their ``mean`` and ``standard_error``."""
        return Outcome(self.values[metric])


class Standing(NamedTuple):
    """Best and second method in one column of one model, and the p of Wilcoxon's signed-rank test between them.

    The test is two-sided, image by image. ``second`` is None where there is only one method.
    """

    best: str
    second: str | None
    p: float


@dataclass(frozen=True)
class ScoreTable:
    """Scores of methods on models.

    Attributes:
        rows: One for each model and method.
        metrics: Names of the columns: metrics, or parts of them such as ``"insertion/gray"``.
        protocol: By which they were measured.
        images: How many images were measured.
        skipped: Images that could not be read, or have an error in some row.
        about: All that has to be known to make the same table again, by name of the model; see
            :func:`suffice.vision.provenance.provenance`.
        index: Position of each image among those that were given; default: all were measured.
    """

    rows: tuple[TableRow, ...]
    metrics: tuple[str, ...]
    protocol: str
    images: int
    skipped: tuple[Skip, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)
    index: Sequence[int] = ()

    @classmethod
    def of(cls, scores: Iterable[Scores] | Mapping[str, Scores], metrics: Sequence[str] | None = None) -> ScoreTable:
        """A table of scores that exist, of one model and method each, under one protocol.

        Args:
            scores: What :func:`suffice.measure` returned for attributions; by name of the method, where the one in the
                settings of the maps does not say enough.
            metrics: Its columns: metrics, or parts of them such as ``"insertion/gray"``; default: all metrics.

        Raises:
            OptionError: They do not fit into one table; the message says why.

        Example:
            >>> import suffice
            >>> from suffice.testing import WeightedSum
            >>> oracle = WeightedSum({5: 1.0, 6: 1.0}, threshold=1.0, grid=4, link="smooth")
            >>> net, image = oracle.classifier(32), oracle.image(32)
            >>> maps = [suffice.attribute(net, image, method) for method in ("gradient", "occlusion")]
            >>> table = ScoreTable.of(suffice.measure(net, image, found, "insertion") for found in maps)
            >>> [row.method for row in table.rows]
            ['gradient', 'occlusion']
        """
        given = list(scores.values() if isinstance(scores, Mapping) else scores)
        if not given:
            raise OptionError("A table needs scores; there are none.")
        columns = tuple(metrics or given[0].metrics)
        about = [one.protocols[one.metrics[0]] for one in given]
        known = [choices["maps"].get("settings", {}).get("method", "given maps") for choices in about]
        methods = list(scores) if isinstance(scores, Mapping) else known
        lines = [(choices["model"], method) for choices, method in zip(about, methods, strict=True)]
        if len(set(lines)) < len(lines):
            twice = ", ".join(sorted({f"{line[1]} on {line[0]}" for line in lines if lines.count(line) > 1}))
            raise OptionError(f"There is more than one {twice}; give a dict of scores by the name that each has.")
        _check_alike(given, columns)
        rows = [
            TableRow(
                model, method, {column: one[column].values.cpu() for column in columns}, float("nan"),
                names=one.names, ids=one.ids, targets=one.targets,
            )
            for one, (model, method) in zip(given, lines, strict=True)
        ]  # fmt: skip
        made = {choices["model"]: one.about for one, choices in zip(given, about, strict=True)}
        return cls(tuple(rows), columns, about[0]["protocol"], len(given[0]), tuple(given[0].skipped), made)

    def standing(self, model: str, metric: str) -> Standing:
        """Who is best, who is second, and whether the difference could be chance; nobody where no way is better."""
        if higher_is_better(metric) is None:
            return Standing("", None, float("nan"))
        rows = [row for row in self.ordered(metric).rows if row.model == model and not np.isnan(row[metric].mean)]
        if len(rows) < 2:
            return Standing(rows[0].method if rows else "", None, float("nan"))
        difference = (rows[0].values[metric] - rows[1].values[metric]).double().numpy()
        return Standing(rows[0].method, rows[1].method, wilcoxon(difference[~np.isnan(difference)]))

    def ordered(self, metric: str) -> ScoreTable:
        """The same table, for each model the best by one metric first; rows without a value come last.

        By a metric of which neither way is better, the highest come first.
        """
        sign = 1 if higher_is_better(metric) is False else -1
        models = list(dict.fromkeys(row.model for row in self.rows))

        def place(row: TableRow) -> tuple[int, float]:
            mean = row[metric].mean
            return models.index(row.model), float("inf") if np.isnan(mean) else sign * mean

        return replace(self, rows=tuple(sorted(self.rows, key=place)))

    def cells(self, mark: Callable[[str, int], str] = lambda text, place: text) -> Iterator[list[str]]:
        """Rows as text: model, method, one cell a metric, one a fact, seconds an image.

        ``mark`` gets the text of a metric's cell and its rank: 1 for the best of its model, 2 for the second, else 0.
        Means that read the same have the same rank, and after two that are best there is no second.
        """
        for row in self.rows:
            cells = [row.model, row.method]
            cells += [mark(f"{row[column]:.3f}", self._place(row, column)) for column in self.metrics]
            cells += [_short(row.facts[fact]) if fact in row.facts else "" for fact in self.facts]
            yield [*cells, f"{row.seconds:.3g}"] if self._timed else cells

    def _place(self, row: TableRow, column: str) -> int:
        """1 for the best mean of a model, as the table shows it, 2 for the second, else 0."""
        better, own = higher_is_better(column), float(f"{row[column].mean:.3f}")
        if better is None or np.isnan(own):
            return 0
        others = [float(f"{other[column].mean:.3f}") for other in self.rows if other.model == row.model]
        place = 1 + sum(other > own if better else other < own for other in others)
        return place if place <= 2 else 0

    @property
    def _timed(self) -> bool:
        """Whether it is known how long maps took."""
        return any(not np.isnan(row.seconds) for row in self.rows)

    @property
    def facts(self) -> list[str]:
        """Names of the columns that are no metrics."""
        return list(dict.fromkeys(fact for row in self.rows for fact in row.facts))

    @property
    def counted(self) -> str:
        """How many images were measured, and how many could not be, in words."""
        left_out = len({skip.index for skip in self.skipped} - set(self.index))
        images = f"{self.images} image{'' if self.images == 1 else 's'}"
        return f"{images} ({left_out} skipped)" if left_out else images

    @property
    def headings(self) -> list[str]:
        """Above the columns; an arrow says which way is better."""
        named = map(with_arrow, self.metrics)
        return ["model", "method", *named, *self.facts, *(["s / image"] if self._timed else [])]

    def notes(self) -> list[str]:
        """Best against second in every column, in words."""
        notes = []
        for model, metric in product(dict.fromkeys(row.model for row in self.rows), self.metrics):
            best, second, p = self.standing(model, metric)
            if second is not None:
                verdict = "clearly better than" if p < 0.05 else "not clearly better than"
                notes.append(f"{model}, {metric}: {best} is {verdict} {second} (p = {p:.2g}).")
        return notes

    def to_markdown(self, notes: bool = True) -> str:
        """The table in Markdown: best bold, second best in italics, then, as ``notes``, who is clearly better."""
        marks = ("{}", "**{}**", "*{}*")
        lines = markdown_table(self.headings, self.cells(lambda text, place: marks[place].format(text)))
        about = f"over {self.counted}; protocol `{self.protocol}`; best bold, second italic."
        verdicts = ["", *(f"- {note}" for note in self.notes())] if notes else []
        return "\n".join([*lines, "", f"Mean ± standard error {about}", *verdicts]) + "\n"

    def to_latex(self) -> str:
        """The table in LaTeX, for the package booktabs: best bold, second best underlined."""
        marks = ("{}", "\\textbf{{{}}}", "\\underline{{{}}}")

        def written(text: str) -> str:
            for sign, latex in LATEX.items():
                text = text.replace(sign, latex)
            return text

        marked = self.cells(lambda text, place: marks[place].format(text))
        head, *rows = (" & ".join(map(written, cells)) + " \\\\" for cells in (self.headings, *marked))
        begin = f"\\begin{{tabular}}{{ll{'r' * (len(self.headings) - 2)}}}"
        return "\n".join([begin, "\\toprule", head, "\\midrule", *rows, "\\bottomrule", "\\end{tabular}", ""])

    def write(self, folder: str | Path) -> list[Path]:
        """Write the table as Markdown, LaTeX, CSV and JSON, and the value of every image as Parquet; the files.

        The last two say how they were made: JSON under ``models``, Parquet in its schema, under ``suffice``.
        """
        summary, long = list[dict[str, Any]](), list[dict[str, Any]]()
        for row in self.rows:
            own = {"model": row.model, "method": row.method}
            line = {**own, "protocol": self.protocol, "images": self.images}
            for metric in self.metrics:
                line |= {metric: row[metric].mean, f"{metric}_standard_error": row[metric].standard_error}
            facts = {fact: row.facts.get(fact, "") for fact in self.facts}
            summary.append({**line, **facts, "seconds_per_image": row.seconds})
            values = {metric: row.values[metric].tolist() for metric in self.metrics}
            targets = [None] * self.images if row.targets is None else row.targets.tolist()
            for image, position in enumerate(self.index or range(self.images)):
                which = {
                    "image": row.names[image] if row.names else None,
                    "image_id": row.ids[image] if row.ids else None,
                    "index": position,
                    "target": targets[image],
                }
                long.append({**own, **which, **{metric: values[metric][image] for metric in self.metrics}})
        about = {"models": self.about, "skipped": [asdict(skip) for skip in self.skipped]}
        texts = {"md": self.to_markdown(), "tex": self.to_latex()}
        return write_tables(folder, "scores", texts, summary, long, about)


def _short(fact: float) -> str:
    """Four digits, or more where they stand before the point: never 1e+04."""
    return f"{fact:.0f}" if abs(fact) >= 1000 else f"{fact:.4g}"


def _check_alike(scores: Sequence[Scores], columns: Sequence[str]) -> None:
    """Raise an error unless scores are of as many images, and made by the same choices."""
    counts = sorted({len(one) for one in scores})
    if len(counts) > 1:
        raise OptionError(f"A table is about the same images; these scores have {', '.join(map(str, counts))}.")
    seen: dict[str, Sequence[str]] = {}
    for one in scores:
        model = one.protocols[one.metrics[0]]["model"]
        if one.ids and list(seen.setdefault(model, one.ids)) != list(one.ids):
            raise OptionError(f"Methods are compared image by image; the scores of {model} are of different images.")
    for column in columns:
        every = [one[column].protocol for one in scores]
        for choice in [choice for choice in ("protocol", *every[0]) if choice not in _OF_ONE_ROW]:
            # As JSON, in which they were written down where scores come from a file.
            found = list(dict.fromkeys(json.dumps(choices.get(choice), default=repr) for choices in every))
            if len(found) > 1:
                raise OptionError(f"A table has one protocol; for {column} these have {choice}={' and '.join(found)}.")


# What rows of one table may differ in.
_OF_ONE_ROW = ("changed", "target_class", "seed", "precision", "model", "size", "geometry", "maps")
