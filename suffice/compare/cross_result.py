"""What a cross-test found: scores of the maps of every model on every model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.compare.families import FamilyMatrix, family_matrix
from suffice.compare.landscapes import Landscape, landscape
from suffice.compare.pairwise import Numbers
from suffice.compare.resampling import means_over
from suffice.compare.tables import chosen_table, floats, sole_method
from suffice.errors import OptionError
from suffice.metrics import find_metric

if TYPE_CHECKING:
    import pyarrow

    from suffice.study import Study

NOTHING = 1e-6  # less than that between whole images and baselines is no difference

# Columns of the table of a study that are no metrics.
OTHERS = (
    "model", "image", "image_id", "index", "target", "label", "error", "family", "group", "seed", "method", "maps_of",
    "whole", "hidden",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class CrossTest:
    """Scores of the maps of every model on every model.

    Attributes:
        models: Names of the models, [M].
        families: Their families.
        raw: By metric, the score of the map of one model (row) on another (column), of each image, [M, M, N].
        whole: Confidence of each model on the whole images, in the class asked about with its own maps, [M, N].
        hidden: The same on the baseline alone, by metric, [M, N].
        targets: The class asked about, [M, M, N].
        names: Name of each image.
        ids: Identity of each image.
        about: How it was made.
    """

    models: tuple[str, ...]
    families: tuple[str, ...]
    raw: Mapping[str, Numbers]
    whole: Numbers
    hidden: Mapping[str, Numbers]
    targets: np.ndarray
    names: Sequence[str] = ()
    ids: Sequence[str] = ()
    about: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics."""
        return tuple(self.raw)

    def scores(self, metric: str | None = None) -> Numbers:
        """Mean score over images, [M, M]: maps of the row's model, tested on the column's."""
        return means_over(self.raw[self._metric(metric)], np.ones((1, self.whole.shape[1])))[0]

    def normalized(self, metric: str | None = None) -> Numbers:
        """Scores as (s - b) / (t - b), with t and b the tested model's mean confidence on whole images and baselines.

        So models that are more or less sure of themselves can be compared. NaN where t and b are the same: such a model
        does not see the difference.
        """
        return self._matrices(self._metric(metric), np.ones((1, self.whole.shape[1])))[0]

    def alike(self, metric: str | None = None, images: Sequence[int] | None = None) -> Numbers:
        """How much models find the same, [M, M]: normalized scores, or 1 less these where lower is better.

        Args:
            metric: Name of the metric; default: the first.
            images: Positions of the images to look at; default: all.
        """
        counted = np.ones((1, self.whole.shape[1]))
        if images is not None:
            counted[:] = 0
            counted[:, list(images)] = 1
        return self._alike(self._metric(metric), counted)[0]

    def landscape(self, metric: str | None = None, **options: Any) -> Landscape:
        """Where models lie by their normalized scores; options are those of :func:`suffice.compare.landscape`.

        They are made of :meth:`alike`: near each other is who finds the same.
        """
        name = self._metric(metric)
        return landscape(self.raw[name], self.models, normalize=partial(self._alike, name), **options)

    def by_family(self, metric: str | None = None, **options: Any) -> FamilyMatrix:
        """Normalized scores by family; options are those of :func:`suffice.compare.family_matrix`."""
        name = self._metric(metric)
        return family_matrix(
            self.raw[name],
            self.families,
            normalize=partial(self._matrices, name),
            higher_is_better=not self.lower_is_better(name),
            **options,
        )

    @classmethod
    def from_table(cls, table: pyarrow.Table, method: str | None = None) -> CrossTest:
        """The cross-test that a table holds, such as :meth:`to_arrow` or a study gives.

        Args:
            table: With ``maps_of``, ``model``, ``image``, ``index``, ``target``, ``whole``, ``hidden`` and one column a
                metric; rows with an ``error`` are left out. What is missing is NaN.
            method: By which the maps were made; may be left out where there is just one.
        """
        table = sole_method(table, method)
        wanted = ("maps_of", "model", "image", "image_id", "index", "target", "whole", "hidden")
        lacking = [name for name in wanted if name not in table.column_names] or ["row"] * (not table.num_rows)
        if lacking:
            raise OptionError(f"Expected the table of a cross-test; it has no {lacking[0]}.")
        rows = _Rows(table)
        metrics = [name for name in table.column_names if name not in OTHERS and not name.startswith("hidden_")]
        hidden = {name: f"hidden_{name}" if f"hidden_{name}" in table.column_names else "hidden" for name in metrics}
        targets = rows.cube("target")
        return cls(
            tuple(rows.models),
            tuple(rows.of_models("family")),
            {name: rows.cube(name) for name in metrics},
            rows.own("whole"),
            {name: rows.own(column) for name, column in hidden.items()},
            np.where(np.isfinite(targets), targets, -1).astype(np.int64),
            rows.of_images("image"),
            rows.of_images("image_id"),
            {} if method is None else {"method": method},
        )

    @classmethod
    def from_study(cls, study: Study, measurement: str | None = None, method: str | None = None) -> CrossTest:
        """The cross-test of a study.

        Args:
            study: One that was run.
            measurement: Of the kind ``"cross-test"``; may be left out where there is just one.
            method: By which the maps were made; may be left out where there is just one.
        """
        return cls.from_table(chosen_table(study, "cross-test", measurement), method)

    def to_arrow(self) -> pyarrow.Table:
        """One row for each map, tested model and image: ``maps_of``, ``model``, ``image``, …, one column a metric."""
        import pyarrow as pa

        models, images = len(self.models), self.whole.shape[1]
        rows, columns, index = (part.ravel() for part in np.indices((models, models, images)))
        table: dict[str, Any] = {
            "maps_of": [self.models[i] for i in rows],
            "model": [self.models[i] for i in columns],
            "image": [self.names[i] for i in index] if self.names else pa.nulls(len(index), pa.string()),
            "image_id": [self.ids[i] for i in index] if self.ids else pa.nulls(len(index), pa.string()),
            "index": index,
            "target": self.targets.ravel(),
            "family": [self.families[i] for i in columns],
            **{name: values.ravel() for name, values in self.raw.items()},
        }
        ends = {"whole": self.whole}
        ends |= {
            f"hidden_{name}" if number else "hidden": own for number, (name, own) in enumerate(self.hidden.items())
        }
        # They are kept for the class that a model is asked about with its own maps.
        table |= {name: np.where(rows == columns, own[columns, index], np.nan) for name, own in ends.items()}
        return pa.table(table)

    def __repr__(self) -> str:
        return f"CrossTest({len(self.models)} models, {', '.join(self.raw)}, n={self.whole.shape[1]})"

    def _matrices(self, metric: str, drawn: Numbers) -> Numbers:
        """Normalized scores when each image is drawn so often, [D, N] to [D, M, M]; see :meth:`normalized`."""
        scores, high, low = (means_over(one, drawn) for one in (self.raw[metric], self.whole, self.hidden[metric]))
        span = np.where(np.abs(high - low) < NOTHING, np.nan, high - low)
        return np.asarray((scores - low[:, None]) / span[:, None])

    def _alike(self, metric: str, drawn: Numbers) -> Numbers:
        """The same, high where models find the same."""
        found = self._matrices(metric, drawn)
        return 1 - found if self.lower_is_better(metric) else found

    def lower_is_better(self, metric: str) -> bool:
        """Whether models that find the same have low scores, as by deletion."""
        return find_metric(metric.partition("/")[0]).higher_is_better is False

    def _metric(self, metric: str | None) -> str:
        if metric is None:
            return self.metrics[0]
        if metric not in self.raw:
            raise OptionError(f"These are scores of {', '.join(self.raw)}, not of {metric!r}.")
        return metric


class _Rows:
    """Rows of a table, put where they belong: by the model of the map, the tested model, and the image."""

    def __init__(self, table: pyarrow.Table) -> None:
        self.table = table
        self.tested, makers = table["model"].to_pylist(), table["maps_of"].to_pylist()
        self.models = list(dict.fromkeys(self.tested))
        if other := set(makers) - set(self.models):
            raise OptionError(f"There are maps of {min(other)}, which was not tested itself; all must be.")
        self.index = table["index"].to_pylist()
        images, number = sorted(set(self.index)), {name: i for i, name in enumerate(self.models)}
        place = {image: i for i, image in enumerate(images)}
        self.shape = (len(number), len(number), len(place))
        self.at = (
            np.array([number[name] for name in makers]),
            np.array([number[name] for name in self.tested]),
            np.array([place[image] for image in self.index]),
        )

    def cube(self, column: str) -> Numbers:
        """A column, [M, M, N]."""
        values = np.full(self.shape, np.nan)
        values[self.at] = floats(self.table, column)
        return values

    def own(self, column: str) -> Numbers:
        """A column where models are tested with their own maps, [M, N]."""
        return self.cube(column)[np.arange(self.shape[0]), np.arange(self.shape[0])]

    def of_models(self, column: str) -> list[str]:
        """What a column says of each model, [M]."""
        given = self.table[column].to_pylist() if column in self.table.column_names else [""] * self.table.num_rows
        said = dict(zip(self.tested, given, strict=True))
        return [said[name] or "" for name in self.models]

    def of_images(self, column: str) -> list[str]:
        """What a column says of each image, [N]."""
        said = dict(zip(self.index, self.table[column].to_pylist(), strict=True))
        return [said[image] or "" for image in sorted(said)]
