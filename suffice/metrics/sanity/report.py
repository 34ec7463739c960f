"""What a sanity check found: similarities at every step, a verdict for each method, tables and files."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from suffice.metrics.sanity.similarity import SIMILARITIES

Check = Literal["cascading", "independent", "data"]

LIMIT = 0.5
RULE = (
    "Rule: a method depends on what was randomized if the rank correlation with its maps of the trained model is below "
    f"{LIMIT} by two standard errors, of the values and of their magnitudes; it does not if either is above it by two."
)
HEADINGS = ("method", "Spearman", "of magnitudes", "SSIM", "Spearman, other images", "verdict")
SUBJECT = {"cascading": "the weights", "independent": "every layer", "data": "the labels"}


@dataclass(frozen=True)
class Verdict:
    """What the rule says of one method.

    Attributes:
        depends: Whether its maps depend on what was randomized; None if that is unclear.
        text: The same in words.
    """

    depends: bool | None
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, eq=False)
class SanityRow:
    """How the maps of one method change.

    Attributes:
        method: Its name.
        values: By similarity: how similar the maps of each image are to those of the trained model,
            [draws, steps, N] float64. The first step is the trained model again: 1 unless the method gives another map
            each time.
        others: By similarity: of the trained model's maps of two different images, [N]; what maps have in common
            anyway, such as a preference for the center. NaN for a single image.
        constant: Share of the maps that are the same everywhere, and so have no order, [steps].
        example: Maps of the first image, in the first draw, [steps, h, w].
    """

    method: str
    values: Mapping[str, Tensor]
    others: Mapping[str, Tensor]
    constant: Tensor
    example: Tensor

    def means(self, similarity: str = "spearman") -> Tensor:
        """Mean over draws and images at each step, [steps]."""
        return self.values[similarity].mean(dim=(0, 2))

    def standard_errors(self, similarity: str = "spearman") -> Tensor:
        """Standard error of the mean at each step, [steps].

        Over images, and, for several draws of random weights, over these too. With one draw it says nothing about
        other random weights. NaN for a single image and draw.
        """
        draws, _, images = self.values[similarity].shape
        parts = []
        if images > 1:
            parts.append(self.values[similarity].mean(dim=0).var(dim=1) / images)
        if draws > 1:
            parts.append(self.values[similarity].mean(dim=2).var(dim=0) / draws)
        if not parts:
            return torch.full_like(self.means(similarity), math.nan)
        return torch.stack(parts).sum(dim=0).sqrt()


@dataclass(frozen=True, eq=False)
class SanityReport:
    """What a sanity check found.

    Attributes:
        check: ``"cascading"``, ``"independent"`` or ``"data"``.
        how: How weights were randomized.
        steps: What was done at each step: ``"trained"``, then the layer that was randomized (for ``"cascading"``, with
            all those before it in this list), or ``"permuted labels"``.
        rows: One for each method.
        model: Name of the model.
        images: How many images.
        draws: How many times random weights were drawn.
        seed: Seed of everything random.
        targets: The class explained in each image, at every step, [N].
        pixels: The first image as the model saw it, [3, H, W] in [0, 1].
    """

    check: Check
    how: str
    steps: tuple[str, ...]
    rows: tuple[SanityRow, ...]
    model: str
    images: int
    draws: int
    seed: int
    targets: Tensor
    pixels: Tensor

    def __repr__(self) -> str:
        verdicts = "; ".join(f"{row.method} {self.verdict(row.method)}" for row in self.rows)
        return f"SanityReport({self.check!r}, {self.model!r}, {self.images} images: {verdicts})"

    def row(self, method: str) -> SanityRow:
        """What was found about one method."""
        return next(row for row in self.rows if row.method == method)

    def verdict(self, method: str) -> Verdict:
        """Whether the maps of a method depend on what was randomized.

        After complete randomization (for ``"independent"``, for each layer) two numbers are judged, Spearman's rank
        correlation of the values and of their magnitudes: maps whose signs alone change have kept their structure. The
        method depends on the weights if both are below 0.5 by two standard errors, and does not if one of them is above
        it by two; a single layer it then "hardly" depends on. Below 0.5 the maps share less than a quarter of the
        variance of their ranks. The rule is a convention: look at the curves too, and at what maps of different images
        have in common.
        """
        row = self.row(method)
        low, high = self._interval(row)
        judged = slice(1, None) if self.check == "independent" else slice(-1, None)
        subject = SUBJECT[self.check]
        if bool((high[judged] < LIMIT).all()):
            return Verdict(True, f"depends on {subject}")
        if bool((low[judged] > LIMIT).any()):
            if self.check == "independent":
                kept = [step for step, kept in zip(self.steps[1:], (low[1:] > LIMIT).tolist(), strict=True) if kept]
                return Verdict(False, f"hardly depends on {', '.join(kept)}")
            return Verdict(False, f"does not depend on {subject}")
        return Verdict(None, "unclear")

    def cells(self) -> Iterator[list[str]]:
        """Rows as text, under ``HEADINGS``: after complete randomization, or of the layer alone that matters least."""
        for row in self.rows:
            cells = [row.method]
            for similarity in SIMILARITIES:
                step = self._judged_step(row, similarity)
                cells.append(
                    f"{float(row.means(similarity)[step]):.2f} ± {float(row.standard_errors(similarity)[step]):.2f}"
                )
            yield [*cells, f"{float(row.others['spearman'].mean()):.2f}", str(self.verdict(row.method))]

    def notes(self) -> list[str]:
        """What to know beside the table."""
        said = []
        for row in self.rows:
            again = float(row.means("spearman")[0])
            if again < 0.999:
                said.append(f"{row.method} is not deterministic: explained twice, the same model gives {again:.3f}.")
            share = float(row.constant[-1])
            if share > 0:
                said.append(f"{row.method}: {share:.0%} of the maps at the last step are the same everywhere.")
        return said

    def to_markdown(self) -> str:
        """The table in Markdown, what it means, and the rule of the verdicts."""
        what = {
            "cascading": f"all {len(self.steps) - 1} layers randomized ({self.how})",
            "independent": f"one layer randomized ({self.how}); of {len(self.steps) - 1}, the one that matters least",
            "data": "beside the same network trained on permuted labels",
        }[self.check]
        draws = f", {self.draws} draws" if self.draws > 1 else ""
        lines = [f"{self.model}, {self.images} images{draws}: similarity of maps, {what}.", ""]
        lines += [f"| {' | '.join(HEADINGS)} |", "|---|" + "---:|" * 4 + "---|"]
        lines += [f"| {' | '.join(cells)} |" for cells in self.cells()]
        return "\n".join([*lines, "", RULE, *("\n" + note for note in self.notes())]) + "\n"

    def to_json(self) -> dict[str, Any]:
        """Everything but the maps and the values of single images, for JSON."""
        rows = []
        for row in self.rows:
            verdict = self.verdict(row.method)
            similar = {
                s: {"mean": _plain(row.means(s)), "standard_error": _plain(row.standard_errors(s))} for s in row.values
            }
            others = {s: _plain(values.mean()) for s, values in row.others.items()}
            rows.append(
                {
                    "method": row.method, "depends": verdict.depends, "verdict": verdict.text, **similar,
                    "other_images": others, "constant": _plain(row.constant),
                }
            )  # fmt: skip
        same = {name: getattr(self, name) for name in ("check", "how", "model", "images", "draws", "seed")}
        return {**same, "steps": list(self.steps), "rows": rows, "notes": self.notes()}

    def write(self, folder: str | Path) -> Sequence[Path]:
        """Write the table as Markdown, means and errors of every step as CSV, values of every image as Parquet.

        Returns:
            The files.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        out = Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        files = [out / f"sanity.{kind}" for kind in ("md", "csv", "parquet")]
        files[0].write_text(self.to_markdown(), encoding="utf-8")
        common = [self.model, self.check, self.how]
        with files[1].open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            numbers = [name for similarity in SIMILARITIES for name in (similarity, f"{similarity}_standard_error")]
            writer.writerow(["model", "check", "how", "method", "step", "layer", "images", *numbers])
            for row in self.rows:
                columns = [column.tolist() for s in SIMILARITIES for column in (row.means(s), row.standard_errors(s))]
                for step, (layer, *values) in enumerate(zip(self.steps, *columns, strict=True)):
                    writer.writerow([*common, row.method, step, layer, self.images, *values])
        long: dict[str, list[Any]] = {key: [] for key in ("method", "draw", "step", "layer", "image", *SIMILARITIES)}
        for row in self.rows:
            draws, steps, images = row.values["spearman"].shape
            places = [(d, s, i) for d in range(draws) for s in range(steps) for i in range(images)]
            long["method"] += [row.method] * len(places)
            long["layer"] += [self.steps[step] for _, step, _ in places]
            for number, name in enumerate(("draw", "step", "image")):
                long[name] += [place[number] for place in places]
            for similarity in SIMILARITIES:
                long[similarity] += row.values[similarity].flatten().tolist()
        pq.write_table(pa.table(long), files[2])
        return files

    def draw(self, folder: str | Path) -> Sequence[Path]:
        """Draw the similarities, and the maps of the first image step by step, as PNG; needs matplotlib.

        Returns:
            The files.
        """
        from suffice.metrics.sanity.figures import box_figure, curve_figure, strip_figure

        out = Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        figures = {
            "similarity.png": box_figure(self) if self.check == "data" else curve_figure(self),
            "maps.png": strip_figure(self),
        }
        for name, figure in figures.items():
            figure.savefig(out / name, dpi=160)
        return [out / name for name in figures]

    def _interval(self, row: SanityRow) -> tuple[Tensor, Tensor]:
        """Two standard errors below and above the larger of the two rank correlations, [steps]."""
        kinds = ("spearman", "absolute")
        means = torch.stack([row.means(kind) for kind in kinds])
        errors = torch.stack([row.standard_errors(kind).nan_to_num(0.0) for kind in kinds])
        return (means - 2 * errors).amax(dim=0), (means + 2 * errors).amax(dim=0)

    def _judged_step(self, row: SanityRow, similarity: str) -> int:
        if self.check != "independent":
            return len(self.steps) - 1
        return 1 + int(row.means(similarity)[1:].argmax())


def _plain(values: Tensor) -> Any:
    """Numbers as JSON can say them: what is not a number is null."""
    listed = values.tolist()
    if isinstance(listed, float):
        return None if math.isnan(listed) else listed
    return [None if math.isnan(value) else value for value in listed]
