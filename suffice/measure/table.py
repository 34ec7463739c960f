"""Methods × models × metrics over many images: the main table of a paper, with errors and significance."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from suffice.attribute import Attribution, Method, attribute, find_method
from suffice.attribute.call import Forwarders
from suffice.errors import OptionError
from suffice.measure.call import score
from suffice.measure.metric import find_metric
from suffice.measure.metric import metrics as metrics_by_name
from suffice.measure.outcome import Outcome
from suffice.measure.protocols import Protocol, TargetClass, find_protocol
from suffice.perturb.forwarder import Precision
from suffice.vision import Classifier, Images, open_images

# So many images are explained and measured before their maps are let go of.
BLOCK = 256
LATEX = {"_": "\\_", "%": "\\%", "±": "$\\pm$", "↑": "$\\uparrow$", "↓": "$\\downarrow$"}


@dataclass(frozen=True)
class Entry:
    """A method with options of its own, as one line of a table.

    Attributes:
        method: The method.
        options: Its options.
        label: What the table calls it; default: the name of the method, and the options.
    """

    method: str | Method
    options: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    @property
    def found(self) -> Method:
        """The method itself."""
        return self.method if isinstance(self.method, Method) else find_method(self.method)

    @property
    def name(self) -> str:
        """What the table calls it."""
        return self.label or " ".join([self.found.name, *(f"{key}={value}" for key, value in self.options.items())])


@dataclass(frozen=True, eq=False)
class TableRow:
    """One model and method.

    Attributes:
        model: Name of the model.
        method: Name of the method, or label of the entry.
        values: By metric, one value an image, [N]; NaN where the metric leaves an image out.
        seconds: For one image, making its map.
        facts: What else is known about the row, such as the number of masks, by name of a column.
    """

    model: str
    method: str
    values: dict[str, Tensor]
    seconds: float
    facts: Mapping[str, float] = field(default_factory=dict)

    def mean(self, metric: str) -> float:
        """Mean over images."""
        return float(self.values[metric].nanmean())

    def error(self, metric: str) -> float:
        """Standard error of the mean."""
        known = self.values[metric][~self.values[metric].isnan()]
        return float(known.std() / len(known) ** 0.5) if len(known) > 1 else float("nan")


@dataclass(frozen=True)
class Standing:
    """Who is best in one column of one model.

    Attributes:
        best: Name of the method.
        second: Name of the next; None where there is only one.
        p: Of Wilcoxon's signed-rank test of the best against the second, image by image, two-sided.
    """

    best: str
    second: str | None
    p: float


@dataclass(frozen=True)
class ScoreTable:
    """Scores of methods on models.

    Attributes:
        rows: One for each model and method.
        metrics: Names of the columns: metrics, or parts of them such as ``"insertion/grey"``.
        protocol: By which they were measured.
        images: How many images.
    """

    rows: tuple[TableRow, ...]
    metrics: tuple[str, ...]
    protocol: str
    images: int

    def standing(self, model: str, metric: str) -> Standing:
        """Who is best, who is second, and whether the difference could be chance."""
        rows = [r for r in self.rows if r.model == model and not np.isnan(r.mean(metric))]
        if not rows:
            return Standing("", None, float("nan"))
        sign = 1 if _higher_is_better(metric) else -1
        rows.sort(key=lambda row: -sign * row.mean(metric))
        if len(rows) == 1:
            return Standing(rows[0].method, None, float("nan"))
        difference = (rows[0].values[metric] - rows[1].values[metric]).double().numpy()
        difference = difference[~np.isnan(difference)]
        p = float(stats.wilcoxon(difference).pvalue) if difference.any() else 1.0
        return Standing(rows[0].method, rows[1].method, p)

    def ordered(self, metric: str) -> ScoreTable:
        """The same table, for each model the best by one metric first; rows without a value come last."""
        sign = -1 if _higher_is_better(metric) else 1
        models = list(dict.fromkeys(row.model for row in self.rows))

        def place(row: TableRow) -> tuple[int, float]:
            mean = row.mean(metric)
            return models.index(row.model), float("inf") if np.isnan(mean) else sign * mean

        return replace(self, rows=tuple(sorted(self.rows, key=place)))

    def cells(self, mark: Callable[[str, int], str] = lambda text, place: text) -> Iterator[list[str]]:
        """Rows as text: model, method, one cell a metric, one a fact, seconds an image.

        Args:
            mark: Gets the text of a cell and its place, 1 for the best of its model and 2 for the second, else 0.

        Yields:
            Cells of one row.
        """
        standings = {(m, c): self.standing(m, c) for m in {r.model for r in self.rows} for c in self.metrics}
        for row in self.rows:
            cells = [row.model, row.method]
            for column in self.metrics:
                standing = standings[row.model, column]
                place = {standing.best: 1, standing.second: 2}.get(row.method, 0)
                cells.append(mark(f"{row.mean(column):.3f} ± {row.error(column):.3f}", place))
            cells += [f"{row.facts[fact]:.4g}" if fact in row.facts else "" for fact in self.facts]
            yield [*cells, f"{row.seconds:.3g}"]

    @property
    def facts(self) -> list[str]:
        """Names of the columns that are no metrics."""
        return list(dict.fromkeys(fact for row in self.rows for fact in row.facts))

    @property
    def headings(self) -> list[str]:
        """Above the columns; an arrow says which way is better."""
        arrows = [f"{m} {'↑' if _higher_is_better(m) else '↓'}" for m in self.metrics]
        return ["model", "method", *arrows, *self.facts, "s / image"]

    def notes(self) -> list[str]:
        """Best against second in every column, in words."""
        said = []
        for model in dict.fromkeys(r.model for r in self.rows):
            for metric in self.metrics:
                standing = self.standing(model, metric)
                if standing.second is not None:
                    verdict = "clearly better than" if standing.p < 0.05 else "not clearly better than"
                    said.append(
                        f"{model}, {metric}: {standing.best} is {verdict} {standing.second} (p = {standing.p:.2g})."
                    )
        return said

    def to_markdown(self, notes: bool = True) -> str:
        """The table in Markdown: best bold, second best in italics, then, as ``notes``, who is clearly better."""
        marks: Mapping[int, str] = {0: "{}", 1: "**{}**", 2: "*{}*"}
        lines = [f"| {' | '.join(self.headings)} |", "|" + "---|" * len(self.headings)]
        lines += [f"| {' | '.join(row)} |" for row in self.cells(lambda text, place: marks[place].format(text))]
        caption = (
            f"Mean ± standard error over {self.images} images; protocol `{self.protocol}`; best bold, second italic."
        )
        verdicts = ["", *(f"- {note}" for note in self.notes())] if notes else []
        return "\n".join([*lines, "", caption, *verdicts]) + "\n"

    def to_latex(self) -> str:
        """The table in LaTeX, for the package booktabs: best bold, second best underlined."""
        marks: Mapping[int, str] = {0: "{}", 1: "\\textbf{{{}}}", 2: "\\underline{{{}}}"}

        def written(text: str) -> str:
            for sign, latex in LATEX.items():
                text = text.replace(sign, latex)
            return text

        lines = [f"\\begin{{tabular}}{{ll{'r' * (len(self.headings) - 2)}}}", "\\toprule"]
        lines += [" & ".join(map(written, self.headings)) + " \\\\", "\\midrule"]
        for row in self.cells(lambda text, place: marks[place].format(text)):
            lines.append(" & ".join(map(written, row)) + " \\\\")
        return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"]) + "\n"

    def write(self, folder: str | Path) -> None:
        """Write the table as Markdown, LaTeX and CSV, and the value of every image as Parquet."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        out = Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        (out / "scores.md").write_text(self.to_markdown(), encoding="utf-8")
        (out / "scores.tex").write_text(self.to_latex(), encoding="utf-8")
        with (out / "scores.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            numbers = [f"{metric}{end}" for metric in self.metrics for end in ("", "_error")]
            writer.writerow(["model", "method", "protocol", "images", *numbers, *self.facts, "seconds_per_image"])
            for row in self.rows:
                means = [n for metric in self.metrics for n in (row.mean(metric), row.error(metric))]
                facts = [row.facts.get(fact, "") for fact in self.facts]
                writer.writerow([row.model, row.method, self.protocol, self.images, *means, *facts, row.seconds])
        long: dict[str, list[Any]] = {key: [] for key in ("model", "method", "image", *self.metrics)}
        for row in self.rows:
            long["model"] += [row.model] * self.images
            long["method"] += [row.method] * self.images
            long["image"] += range(self.images)
            for metric in self.metrics:
                long[metric] += row.values[metric].tolist()
        pq.write_table(pa.table(long), out / "scores.parquet")


def score_table(
    nets: Sequence[Classifier],
    images: Any,
    methods: Sequence[str | Method | Entry],
    metrics: Sequence[str],
    protocol: str | Protocol = "default",
    *,
    target_class: TargetClass | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
    precision: Precision = "fp32",
    compile: bool = False,
    on_row: Callable[[TableRow], None] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> ScoreTable:
    """Explain images by every method on every model, and measure the maps.

    Args:
        nets: The models.
        images: Anything that :func:`suffice.open_images` takes; with labels or boxes where metrics need them.
        methods: The methods; one that does not fit a model is left out for it. An :class:`Entry` has options of its
            own, so that a method can be there more than once.
        metrics: Names of the metrics; ``"insertion/grey"`` is the part of insertion over that baseline, where a
            protocol has several.
        protocol: Every choice behind them.
        target_class: The class that is explained and asked about: the ``"label"`` of the image, or the
            ``"predicted"`` one; None: as the protocol has it.
        options: Of methods, by name.
        seed: Seed of everything random.
        batch_size: Inputs per forward.
        precision: Of the model, for the metrics and for methods that need no gradients.
        compile: Compile the model, once, for the metrics and for methods that do not look inside it.
        on_row: Called with each row when it is done.
        on_progress: Called with (maps made and measured, in all).

    Returns:
        The table.

    Example:
        >>> from suffice.testing import WeightedSum
        >>> oracle = WeightedSum({5: 1.0, 6: 1.0}, threshold=1.0, grid=4, link="smooth")
        >>> entries = [Entry("rise", {"masks": count}) for count in (10, 200)]
        >>> table = score_table([oracle.classifier(32)], oracle.image(32), entries, ["insertion"])
        >>> [row.method for row in table.rows]
        ['rise masks=10', 'rise masks=200']
    """
    chosen = find_protocol(protocol) if isinstance(protocol, str) else protocol
    for metric in metrics:
        chosen.options(_metric_of(metric))  # what the protocol does not know is said before any work
    opened = open_images(images)
    explained = target_class or chosen.target_class
    if explained == "label" and None in opened.labels:
        raise OptionError(
            f"The protocol {chosen.name!r} asks about the label of each image, and {opened.labels.count(None)} of "
            f"{len(opened)} have none. Write target_class='predicted', or open_images(…, labels=…)."
        )
    entries = [_entry(method, options or {}) for method in methods]
    names = [entry.name for entry in entries]
    if len(set(names)) < len(names):
        twice = ", ".join(sorted({name for name in names if names.count(name) > 1}))
        raise OptionError(f"There is more than one {twice}; write Entry(method, options, label) with different labels.")
    for entry in entries:
        entry.found.check(entry.options)
    pairs = [(net, entry) for net in nets for entry in entries if entry.found.misfit(net) is None]
    if not pairs:
        models = ", ".join(net.name for net in nets)
        raise OptionError(f"None of {', '.join(names)} fits {models}; suffice.methods() lists others.")
    rows, forwarders = [], None
    for number, (net, entry) in enumerate(pairs):
        if forwarders is None or forwarders.net is not net:
            forwarders = Forwarders(net, batch_size, precision, compile)

        def report(done: int, before: int = number * len(opened)) -> None:
            if on_progress is not None:
                on_progress(before + done, len(pairs) * len(opened))

        method = entry.found
        explaining = partial(attribute, net, method=method, seed=seed, forwarder=forwarders.of(method), **entry.options)
        measuring = partial(score, net, protocol=chosen, target_class="explained", seed=seed, forwarder=forwarders.fast)
        values, seconds = _blockwise(opened, metrics, explained == "label", explaining, measuring, report)
        rows.append(TableRow(net.name, entry.name, values, seconds))
        if on_row is not None:
            on_row(rows[-1])
    return ScoreTable(tuple(rows), tuple(metrics), chosen.name, len(opened))


def _entry(given: str | Method | Entry, options: Mapping[str, Mapping[str, Any]]) -> Entry:
    if isinstance(given, Entry):
        return replace(given, options={**options.get(given.found.name, {}), **given.options}, label=given.name)
    method = given if isinstance(given, Method) else find_method(given)
    return Entry(method, options.get(method.name, {}), method.name)


def _blockwise(
    images: Images,
    columns: Sequence[str],
    of_labels: bool,
    explaining: Callable[..., Attribution],
    measuring: Callable[..., Any],
    report: Callable[[int], None],
) -> tuple[dict[str, Tensor], float]:
    """Values by column and seconds an image, block by block, so that memory does not grow with the number of images."""
    values: dict[str, list[Tensor]] = {column: [] for column in columns}
    wanted = list(dict.fromkeys(map(_metric_of, columns)))
    seconds = 0.0
    for start in range(0, len(images), BLOCK):
        some = images[start : start + BLOCK]
        targets = [label for label in some.labels if label is not None] if of_labels else None
        begun = time.perf_counter()
        maps = explaining(images=some, targets=targets)
        seconds += time.perf_counter() - begun
        found = measuring(images=some, maps=maps, metric=wanted)
        for column in columns:
            values[column].append(_part_of(found, column).values.cpu())
        report(start + len(some))
    return {column: torch.cat(parts) for column, parts in values.items()}, seconds / len(images)


def _metric_of(column: str) -> str:
    return column.partition("/")[0]


def _part_of(found: Mapping[str, Outcome], column: str) -> Outcome:
    """The outcome that a column names: of a metric, or of a part of it, or of a part of that."""
    outcome, *parts = column.split("/")
    part = found[outcome]
    for name in parts:
        if name not in part.parts:
            known = ", ".join(part.parts) or "none"
            raise OptionError(f"There is no {column!r}: the parts of {outcome} under this protocol are {known}.")
        part = part.parts[name]
    return part


def _higher_is_better(column: str) -> bool:
    """Which way is better; the deletion that is a part of something is better when it is lower."""
    names = [name for name in column.split("/") if name in metrics_by_name()]
    return find_metric(names[-1]).higher_is_better
