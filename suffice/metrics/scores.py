"""Scores: what was measured, and how it was made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from suffice.draw import show
from suffice.draw.files import is_picture, save_picture
from suffice.errors import OptionError
from suffice.metrics.metric import all_metrics, find_metric
from suffice.metrics.outcome import By, Curves, Outcome
from suffice.results import Rows, load_tensors, save_tensors, selected, text_column, to_pandas
from suffice.vision.provenance import as_json, with_about
from suffice.vision.stream import Skip

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True, eq=False)
class Scores:
    """What one metric or several say of the maps of images, and every choice behind it.

    ``scores["insertion"]`` are the scores of one metric, ``scores["insertion/gray"]`` those of a part of it;
    ``scores[0]`` and ``scores[2:5]`` are the scores of some images. What belongs to one metric (``values``, ``curves``,
    ``mean``, …) can be read where there is only one.

    Attributes:
        outcomes: By metric: values, curves and parts.
        protocols: By metric, every choice: metric, protocol, all options, the class asked about, the score, the model.
        targets: The class asked about in each image; None if the model was not asked.
        names: Name of each image.
        ids: Identity of each image.
        skipped: Images that could not be read.
        about: All that has to be known to measure the same again: hash of the weights, preprocessing, settings,
            precision, versions; see :func:`suffice.vision.provenance.provenance`.
    """

    outcomes: Mapping[str, Outcome]
    protocols: Mapping[str, dict[str, Any]]
    targets: Tensor | None = None
    names: Sequence[str] = ()
    ids: Sequence[str] = ()
    skipped: Sequence[Skip] = field(default=(), repr=False)
    about: dict[str, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(next(iter(self.outcomes.values())))

    def __getitem__(self, key: str | Rows) -> Scores:
        """Scores of a metric or a part of one, by name; or of some images, by position, slice, list or mask."""
        if isinstance(key, str):
            outcome = self._outcome(key)
            return replace(self, outcomes={key: outcome}, protocols={key: self.protocols[self._metric_of(key)]})
        index = selected(key, len(self))
        return replace(
            self,
            outcomes={name: outcome.take(index) for name, outcome in self.outcomes.items()},
            targets=None if self.targets is None else self.targets[index.to(self.targets.device)],
            names=[self.names[i] for i in index.tolist()] if self.names else (),
            ids=[self.ids[i] for i in index.tolist()] if self.ids else (),
        )

    def __iter__(self) -> Iterator[Scores]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        lines = [
            f"{name!r}, protocol={self.protocols[name].get('protocol')!r}, mean={o}"
            for name, o in self.outcomes.items()
        ]
        return f"Scores({'; '.join(lines)}, n={len(self)})"

    def _repr_html_(self) -> str:
        cells = [(escape(with_arrow(name)), o, int(o.judged.sum())) for name, o in self.outcomes.items()]
        rows = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in cells)
        protocol = escape(str(next(iter(self.protocols.values())).get("protocol")))
        return (
            "<table><thead><tr><th>metric</th><th>mean ± standard error</th><th>images</th></tr></thead>"
            f"<tbody>{rows}</tbody></table><p>Protocol <code>{protocol}</code></p>"
        )

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics."""
        return tuple(self.outcomes)

    @property
    def metric(self) -> str:
        """Name of the only metric."""
        if len(self.outcomes) > 1:
            names = ", ".join(self.outcomes)
            raise OptionError(f"These are scores of {names}; choose one, such as scores[{self.metrics[0]!r}].")
        return self.metrics[0]

    @property
    def higher_is_better(self) -> bool | None:
        """Whether a better map has a higher value."""
        return higher_is_better(self.metric)

    @property
    def protocol(self) -> dict[str, Any]:
        """Every choice behind the only metric."""
        return self.protocols[self.metric]

    @property
    def values(self) -> Tensor:
        """One number an image, [N]; NaN for images that the metric's own rules leave out."""
        return self._only.values

    @property
    def curves(self) -> Curves | None:
        """What the numbers were computed from, where that is a curve."""
        return self._only.curves

    @property
    def parts(self) -> Mapping[str, Outcome]:
        """Results that the numbers are composed of, by name: one for each baseline, or insertion and deletion."""
        return self._only.parts

    @property
    def judged(self) -> Tensor:
        """Whether each image was judged, bool [N]."""
        return self._only.judged

    @property
    def mean(self) -> float:
        """Mean over the judged images; NaN if there is none."""
        return self._only.mean

    @property
    def standard_error(self) -> float:
        """Standard error of the mean; NaN for fewer than two judged images."""
        return self._only.standard_error

    @property
    def reported(self) -> float:
        """The number that the protocol reports for all images: the mean, or the area under the median curve."""
        curves = self.curves
        if self.protocol.get("aggregate") == "median" and curves is not None:
            return float(curves.areas(curves.median))
        return self.mean

    def normalized(self, by: By = "set") -> Scores:
        """Scores as (s - b) / (t - b); see :meth:`suffice.metrics.Outcome.normalized`."""
        for name, outcome in self.outcomes.items():
            if outcome.curves is None and not outcome.parts:
                raise OptionError(f"normalize= is for metrics with curves; {name} has none. Measure it on its own.")
        return replace(
            self,
            outcomes={name: outcome.normalized(by) for name, outcome in self.outcomes.items()},
            protocols={name: {**protocol, "normalize": by} for name, protocol in self.protocols.items()},
        )

    def show(self, *, ax: Any = None) -> None:
        """Show the mean curves with their standard errors, or else the numbers; on ``ax``, axes of matplotlib."""
        from suffice.metrics.curve_figure import draw_on_axes

        drawn = self._drawn()
        if ax is not None:
            draw_on_axes(drawn, ax, **self._axis_words(drawn))
        elif drawn:
            show(self.to_svg())
        else:
            show(self._repr_html_(), "html")

    def to_svg(self) -> str:
        """Draw the mean curves with their standard errors, as a standalone SVG; an error where there are none."""
        from suffice.metrics.curve_figure import curve_figure

        drawn = self._drawn()
        if not drawn:
            raise OptionError(f"{', '.join(self.metrics)} has no curves to draw.")
        return curve_figure(drawn, **self._axis_words(drawn))

    def _drawn(self) -> dict[str, Outcome]:
        """What has curves; a difference of curves is shown as these two."""
        drawn: dict[str, Outcome] = {}
        for name, outcome in self.outcomes.items():
            parts = {f"{name}/{part}": inner for part, inner in outcome.parts.items()}
            drawn |= parts if outcome.curves is None else {name: outcome}
        return drawn

    def _axis_words(self, drawn: Mapping[str, Outcome]) -> dict[str, str]:
        """What positions and heights of curves are."""
        choices = [self.protocols[self._metric_of(name)] for name in drawn]
        across = "information" if all("shares" in one for one in choices) else "pixels or cells that were moved"
        kinds = sorted({f"{one.get('value', 'score')} of the class" for one in choices}, reverse=True)
        normalized = ", normalized" if any(one["normalize"] for one in choices) else ""
        return {"across": f"share of the {across}", "up": " or ".join(kinds) + normalized}

    def to_arrow(self) -> pyarrow.Table:
        """One row an image: ``image``, ``image_id``, ``index``, ``target``, one column a metric and a part of one."""
        import pyarrow as pa

        columns: dict[str, Any] = {
            "image": text_column(self.names, len(self)),
            "image_id": text_column(self.ids, len(self)),
            "index": pa.array(range(len(self)), pa.int64()),
            "target": pa.array([None] * len(self) if self.targets is None else self.targets.tolist(), pa.int64()),
        }
        columns |= {name: pa.array(o.values.double().cpu().numpy()) for name, o in self._all_outcomes().items()}
        return with_about(pa.table(columns), self.about, protocols=as_json(self.protocols))

    def to_pandas(self) -> Any:
        """The table of :meth:`to_arrow` as a data frame; needs pandas."""
        return to_pandas(self.to_arrow())

    def save(self, path: str | Path) -> Path:
        """Write everything to one safetensors file; what is not a tensor is JSON in its metadata.

        With the ending ``.svg``, ``.png`` or ``.pdf``, write the picture of :meth:`to_svg` instead.
        """
        if is_picture(path):
            return save_picture(self.to_svg(), path)
        tensors = {} if self.targets is None else {"targets": self.targets}
        shapes = {}
        for name, outcome in self._all_outcomes().items():
            tensors[f"{name}|values"] = outcome.values
            constant = None if outcome.curves is None else outcome.curves.constant
            parts = list(outcome.parts)
            shapes[name] = {"combination": outcome.combination, "constant": constant, "parts": parts}
            for own in _CURVE_TENSORS if outcome.curves is not None else ():
                tensors[f"{name}|{own}"] = getattr(outcome.curves, own)
        about = {
            "protocols": self.protocols,
            "names": list(self.names),
            "ids": list(self.ids),
            "skipped": [asdict(skip) for skip in self.skipped],
            "outcomes": shapes,
            "about": self.about,
        }
        return save_tensors(path, tensors, about)

    @classmethod
    def load(cls, path: str | Path) -> Scores:
        """Read what :meth:`save` wrote."""
        tensors, about = load_tensors(path, "scores", "outcomes")
        shapes = about.pop("outcomes")
        skipped = [Skip(**skip) for skip in about.pop("skipped")]

        def restored(name: str) -> Outcome:
            curve = {part: tensors[f"{name}|{part}"] for part in _CURVE_TENSORS if f"{name}|{part}" in tensors}
            return Outcome(
                tensors[f"{name}|values"],
                Curves(**curve, constant=shapes[name]["constant"]) if curve else None,
                {part: restored(f"{name}/{part}") for part in shapes[name]["parts"]},
                shapes[name]["combination"],
            )

        whole = {name: restored(name) for name in about["protocols"]}
        return cls(whole, targets=tensors.get("targets"), skipped=skipped, **about)

    @property
    def _only(self) -> Outcome:
        return self.outcomes[self.metric]

    def _metric_of(self, column: str) -> str:
        """The metric that the name of a column begins with."""
        return next(metric for metric in self.outcomes if f"{column}/".startswith(f"{metric}/"))

    def _outcome(self, column: str) -> Outcome:
        """The outcome that a name stands for: of a metric, or of a part of it, or of a part of that."""
        every = self._all_outcomes()
        if column in every:
            return every[column]
        above = [name for name in every if f"{column}/".startswith(f"{name}/")]
        if not above:
            raise OptionError(f"There are no scores of {column!r}; there are {', '.join(self.outcomes)}.")
        known = ", ".join(every[above[-1]].parts) or "none"
        raise OptionError(f"There is no {column!r}: the parts of {above[-1]} under this protocol are {known}.")

    def _all_outcomes(self) -> dict[str, Outcome]:
        """Outcomes of metrics and of all their parts, by name."""
        return {n: o for name, outcome in self.outcomes.items() for n, o in outcome.with_parts(name).items()}


_CURVE_TENSORS = ("x", "y", "whole", "hidden", "weights")


def higher_is_better(column: str) -> bool | None:
    """Which way is better, None for neither; the deletion that is a part of something is better when it is lower."""
    known = all_metrics()
    names = [name for name in column.split("/") if name in known]
    return find_metric(names[-1] if names else column).higher_is_better


def with_arrow(column: str) -> str:
    """The name of a column, and which way is better; not for metrics that are not known here."""
    if not any(name in all_metrics() for name in column.split("/")):
        return column
    return column + {True: " ↑", False: " ↓", None: ""}[higher_is_better(column)]
