"""What a sanity check found: similarities at every step, a verdict for each method, tables and files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from suffice.draw.files import Format
from suffice.metrics.sanity.similarity import SIMILARITIES
from suffice.metrics.tables import markdown_table, write_tables
from suffice.vision.stream import Skip

Check = Literal["cascading", "independent", "data"]

LIMIT = 0.5
JUDGED = ("spearman", "absolute")
RULE = (
    "Rule: a method depends on what was randomized if the rank correlation with its maps of the trained model is below "
    f"{LIMIT} by two standard errors, of the values and of their magnitudes; it does not if either is above it by two."
)
HEADINGS = ("method", "Spearman", "of magnitudes", "SSIM", "Spearman, other images", "verdict")
SUBJECT = {"cascading": "the weights", "independent": "every layer", "data": "the labels"}


@dataclass(frozen=True)
class Verdict:
    """Whether the maps of a method depend on what was randomized, None if that is unclear; and the same in words."""

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
        values = self.values[similarity]
        draws, steps, images = values.shape
        if draws == images == 1:
            return values.new_full((steps,), math.nan)
        over_images = values.mean(dim=0).var(dim=1) / images if images > 1 else 0
        over_draws = values.mean(dim=2).var(dim=0) / draws if draws > 1 else 0
        return torch.as_tensor(over_images + over_draws).sqrt()


def verdict_of(row: SanityRow, check: Check, steps: Sequence[str]) -> Verdict:
    """Whether the maps of a method depend on what was randomized; see :meth:`SanityReport.verdict`."""
    means = torch.stack([row.means(kind) for kind in JUDGED])
    twice = 2 * torch.stack([row.standard_errors(kind) for kind in JUDGED]).nan_to_num(0.0)
    first = 1 if check == "independent" else len(steps) - 1
    below = ((means + twice).amax(dim=0) < LIMIT)[first:]
    above = ((means - twice).amax(dim=0) > LIMIT)[first:]
    if below.all():
        return Verdict(True, f"depends on {SUBJECT[check]}")
    if not above.any():
        return Verdict(None, "unclear")
    if check == "independent":
        kept = [step for step, kept in zip(steps[1:], above.tolist(), strict=True) if kept]
        return Verdict(False, f"hardly depends on {', '.join(kept)}")
    return Verdict(False, f"does not depend on {SUBJECT[check]}")


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
        names: Name of each image.
        ids: Identity of each image.
        skipped: Images that could not be read.
        about: All that has to be known to find the same again; see :func:`suffice.vision.provenance.provenance`.
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
    names: Sequence[str] = ()
    ids: Sequence[str] = ()
    skipped: Sequence[Skip] = ()
    about: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        verdicts = "; ".join(f"{row.method} {self.verdict(row.method)}" for row in self.rows)
        return f"SanityReport({self.check!r}, {self.model!r}, {self.images} images: {verdicts})"

    def row(self, method: str) -> SanityRow:
        """What was found about one method."""
        return next(row for row in self.rows if row.method == method)

    def verdict(self, method: str) -> Verdict:
        """Whether the maps of a method depend on what was randomized.

        Two numbers are judged after complete randomization (for ``"independent"``, for each layer): Spearman's rank
        correlation of the values and of their magnitudes, since maps whose signs alone change have kept their
        structure. The method depends on the weights if both are below 0.5 by two standard errors, and does not (of a
        single layer: hardly does) if one is above it by two. Below 0.5 maps share less than a quarter of the variance
        of their ranks. The rule is a convention: look at the curves too, and at what maps of different images have in
        common.
        """
        return verdict_of(self.row(method), self.check, self.steps)

    def cells(self) -> Iterator[list[str]]:
        """Rows as text, under ``HEADINGS``: after complete randomization, or of the layer alone that matters least."""
        for row in self.rows:
            cells = [row.method]
            for similarity in SIMILARITIES:
                means, errors = row.means(similarity), row.standard_errors(similarity)
                step = 1 + int(means[1:].argmax()) if self.check == "independent" else -1
                error = "" if errors[step].isnan() else f" ± {errors[step]:.2f}"
                cells.append(f"{means[step]:.2f}{error}")
            others = "–" if self.images == 1 else f"{row.others['spearman'].mean():.2f}"
            yield [*cells, others, str(self.verdict(row.method))]

    def notes(self) -> list[str]:
        """What to know beside the table."""
        said = ["One image and draw have no standard error: verdicts are those of the values."] * self._is_single
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
        lines += markdown_table(HEADINGS, self.cells(), right=range(1, 5))
        return "\n".join([*lines, "", RULE, *("\n" + note for note in self.notes())]) + "\n"

    def to_json(self) -> dict[str, Any]:
        """Everything but the maps and the values of single images, for JSON."""
        rows = []
        for row in self.rows:
            verdict = self.verdict(row.method)
            own = {"method": row.method, "depends": verdict.depends, "verdict": verdict.text}
            similar = {
                s: {"mean": _plain(row.means(s)), "standard_error": _plain(row.standard_errors(s))} for s in row.values
            }
            others = {s: _plain(values.mean()) for s, values in row.others.items()}
            rows.append({**own, **similar, "other_images": others, "constant": _plain(row.constant)})
        same = {name: getattr(self, name) for name in ("check", "how", "model", "images", "draws", "seed")}
        return {**same, "steps": list(self.steps), "rows": rows, "notes": self.notes(), **self._origin}

    @property
    def _is_single(self) -> bool:
        """Whether there is nothing to compute standard errors from."""
        return self.images == self.draws == 1

    @property
    def _origin(self) -> dict[str, Any]:
        """What files say about how they were made, and on which images not."""
        return {"about": self.about, "skipped": [asdict(skip) for skip in self.skipped]}

    def write(self, folder: str | Path) -> Sequence[Path]:
        """Write the table as Markdown, means and errors of every step as CSV and JSON, of every image as Parquet."""
        summary, long = list[dict[str, Any]](), list[dict[str, Any]]()
        unknown: list[str | None] = [None] * self.images
        names, ids = ([*given] or unknown for given in (self.names, self.ids))
        which = [
            {"image": name, "image_id": image_id, "index": index, "target": target}
            for index, (name, image_id, target) in enumerate(zip(names, ids, self.targets.tolist(), strict=True))
        ]
        for row in self.rows:
            own = {"model": self.model, "check": self.check, "how": self.how, "method": row.method}
            numbers = dict[str, list[float]]()
            for s in SIMILARITIES:
                numbers |= {s: row.means(s).tolist(), f"{s}_standard_error": row.standard_errors(s).tolist()}
            for step, layer in enumerate(self.steps):
                means = {name: values[step] for name, values in numbers.items()}
                summary.append({**own, "step": step, "layer": layer, "images": self.images, **means})
            single = [row.values[s].flatten().tolist() for s in SIMILARITIES]
            for (draw, step, image), *values in zip(np.ndindex(*row.values["spearman"].shape), *single, strict=True):
                place = {"method": row.method, "draw": draw, "step": step, "layer": self.steps[step], **which[image]}
                long.append({**place, **dict(zip(SIMILARITIES, values, strict=True))})
        return write_tables(folder, "sanity", {"md": self.to_markdown()}, summary, long, self._origin)

    def draw(self, folder: str | Path, format: Format = "png") -> Sequence[Path]:
        """Draw the similarities, and the maps of the first image step by step; needs matplotlib."""
        from suffice.metrics.sanity.figures import box_figure, curve_figure, strip_figure

        out = Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        similarity = box_figure(self) if self.check == "data" else curve_figure(self)
        figures = {out / f"similarity.{format}": similarity, out / f"maps.{format}": strip_figure(self)}
        for file, figure in figures.items():
            figure.savefig(file, dpi=160)
        return list(figures)


def _plain(values: Tensor) -> Any:
    """Numbers as JSON can say them: what is not a number is null."""
    if values.dim():
        return [_plain(value) for value in values]
    return None if values.isnan() else float(values)
