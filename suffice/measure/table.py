"""Methods × models × metrics over many images: the main table of a paper, with errors and significance."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from suffice.attribute import Method, attribute, find_method
from suffice.errors import OptionError
from suffice.measure.call import score
from suffice.measure.metric import find_metric
from suffice.measure.protocols import find_protocol
from suffice.vision import Classifier, Images, open_images

# So many images are explained and measured before their maps are let go of.
BLOCK = 256
LATEX = {"_": "\\_", "%": "\\%", "±": "$\\pm$", "↑": "$\\uparrow$", "↓": "$\\downarrow$"}


@dataclass(frozen=True, eq=False)
class TableRow:
    """One model and method.

    Attributes:
        model: Name of the model.
        method: Name of the method.
        values: By metric, one value an image, [N]; NaN where the metric leaves an image out.
        seconds: For one image, making its map.
    """

    model: str
    method: str
    values: dict[str, Tensor]
    seconds: float

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
        metrics: Names of the columns.
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
        sign = 1 if find_metric(metric).higher_is_better else -1
        rows.sort(key=lambda row: -sign * row.mean(metric))
        if len(rows) == 1:
            return Standing(rows[0].method, None, float("nan"))
        difference = (rows[0].values[metric] - rows[1].values[metric]).double().numpy()
        difference = difference[~np.isnan(difference)]
        p = float(stats.wilcoxon(difference).pvalue) if difference.any() else 1.0
        return Standing(rows[0].method, rows[1].method, p)

    def cells(self, mark: Callable[[str, int], str] = lambda text, place: text) -> Iterator[list[str]]:
        """Rows as text: model, method, one cell a metric, seconds an image.

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
            yield [*cells, f"{row.seconds:.3g}"]

    @property
    def headings(self) -> list[str]:
        """Above the columns; an arrow says which way is better."""
        arrows = [f"{m} {'↑' if find_metric(m).higher_is_better else '↓'}" for m in self.metrics]
        return ["model", "method", *arrows, "s / image"]

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

    def to_markdown(self) -> str:
        """The table in Markdown: best bold, second best in italics, then who is clearly better."""
        marks: Mapping[int, str] = {0: "{}", 1: "**{}**", 2: "*{}*"}
        lines = [f"| {' | '.join(self.headings)} |", "|" + "---|" * len(self.headings)]
        lines += [f"| {' | '.join(row)} |" for row in self.cells(lambda text, place: marks[place].format(text))]
        caption = (
            f"Mean ± standard error over {self.images} images; protocol `{self.protocol}`; best bold, second italic."
        )
        return "\n".join([*lines, "", caption, "", *(f"- {note}" for note in self.notes())]) + "\n"

    def to_latex(self) -> str:
        """The table in LaTeX, for the package booktabs: best bold, second best underlined."""
        marks: Mapping[int, str] = {0: "{}", 1: "\\textbf{{{}}}", 2: "\\underline{{{}}}"}

        def written(text: str) -> str:
            for sign, latex in (
                ("_", "\\_"),
                ("±", "$\\pm$"),
                ("↑", "$\\uparrow$"),
                ("↓", "$\\downarrow$"),
                ("%", "\\%"),
            ):
                text = text.replace(sign, latex)
            return text

        lines = [f"\\begin{{tabular}}{{ll{'r' * (len(self.metrics) + 1)}}}", "\\toprule"]
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
            writer.writerow(["model", "method", "protocol", "images", *numbers, "seconds_per_image"])
            for row in self.rows:
                means = [n for metric in self.metrics for n in (row.mean(metric), row.error(metric))]
                writer.writerow([row.model, row.method, self.protocol, self.images, *means, row.seconds])
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
    methods: Sequence[str | Method],
    metrics: Sequence[str],
    protocol: str = "default",
    *,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
    on_row: Callable[[TableRow], None] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> ScoreTable:
    """Explain images by every method on every model, and measure the maps.

    Args:
        nets: The models.
        images: Anything that :func:`suffice.open_images` takes; with labels or boxes where metrics need them.
        methods: The methods; one that does not fit a model is left out for it.
        metrics: Names of the metrics.
        protocol: Every choice behind them.
        options: Of methods, by name.
        seed: Seed of everything random.
        batch_size: Inputs per forward.
        on_row: Called with each row when it is done.
        on_progress: Called with (maps made and measured, in all).

    Returns:
        The table.
    """
    for metric in metrics:
        find_protocol(protocol).options(metric)  # what the protocol does not know is said before any work
    opened = open_images(images)
    chosen = [m if isinstance(m, Method) else find_method(m) for m in methods]
    pairs = [(net, method) for net in nets for method in chosen if method.misfit(net) is None]
    if not pairs:
        names = ", ".join(net.name for net in nets)
        raise OptionError(f"None of {', '.join(m.name for m in chosen)} fits {names}; suffice.methods() lists others.")
    rows = []
    for number, (net, method) in enumerate(pairs):

        def report(done: int, before: int = number * len(opened)) -> None:
            if on_progress is not None:
                on_progress(before + done, len(pairs) * len(opened))

        own = (options or {}).get(method.name, {})
        rows.append(_row(net, opened, method, own, metrics, protocol, seed, batch_size, report))
        if on_row is not None:
            on_row(rows[-1])
    return ScoreTable(tuple(rows), tuple(metrics), protocol, len(opened))


def _row(
    net: Classifier,
    images: Images,
    method: Method,
    options: Mapping[str, Any],
    metrics: Sequence[str],
    protocol: str,
    seed: int,
    batch_size: int | Literal["auto"],
    report: Callable[[int], None],
) -> TableRow:
    """One row, block by block, so that memory does not grow with the number of images."""
    values: dict[str, list[Tensor]] = {metric: [] for metric in metrics}
    seconds = 0.0
    for start in range(0, len(images), BLOCK):
        some = images[start : start + BLOCK]
        begun = time.perf_counter()
        maps = attribute(net, some, method, seed=seed, batch_size=batch_size, **options)
        seconds += time.perf_counter() - begun
        found = score(net, some, maps, list(metrics), protocol, seed=seed, batch_size=batch_size)
        for metric in metrics:
            values[metric].append(found[metric].values.cpu())
        report(start + len(some))
    together = {metric: torch.cat(parts) for metric, parts in values.items()}
    return TableRow(net.name, method.name, together, seconds / len(images))
