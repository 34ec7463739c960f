"""Cross-testing: is what one model finds important enough for another?

Maps of every model are scored on every model, by insertion and deletion: a model whose maps raise another's confidence
early looks at what the other looks at (Jiang, Khorram, Li, CVPR 2024, section 3.4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from suffice.attribution import Attribution, attribute
from suffice.compare.families import FamilyMatrix, family_matrix
from suffice.compare.landscapes import Landscape, landscape
from suffice.compare.pairwise import Numbers
from suffice.errors import OptionError
from suffice.metrics import measure
from suffice.metrics.outcome import Outcome
from suffice.options import Count, check_options
from suffice.perturb.runner import Precision, Runner
from suffice.progress import reports
from suffice.vision import Classifier, Images, Model, as_classifier, open_images
from suffice.vision.provenance import provenance

if TYPE_CHECKING:
    import pyarrow

ClassOf = Literal["generating", "evaluated", "label"]


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
        return np.asarray(np.nanmean(self.raw[self._metric(metric)], axis=2))

    def normalized(self, metric: str | None = None) -> Numbers:
        """Scores as (s - b) / (t - b), with t and b the tested model's mean confidence on whole images and baselines.

        So models that are more or less sure of themselves can be compared.
        """
        return self._normalizer(self._metric(metric))(np.arange(self.whole.shape[1]))

    def landscape(self, metric: str | None = None, **options: Any) -> Landscape:
        """Where models lie by their normalized scores; options are those of :func:`suffice.compare.landscape`."""
        scores = self._normalizer(self._metric(metric))
        return landscape(self._positions, self.models, normalize=lambda some: scores(some[0, 0].astype(int)), **options)

    def by_family(self, metric: str | None = None, **options: Any) -> FamilyMatrix:
        """Normalized scores by family; options are those of :func:`suffice.compare.family_matrix`."""
        scores = self._normalizer(self._metric(metric))
        return family_matrix(
            self._positions, self.families, normalize=lambda some: scores(some[0, 0].astype(int)), **options
        )

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
            **{name: values.ravel() for name, values in self.raw.items()},
        }
        return pa.table(table)

    def __repr__(self) -> str:
        return f"CrossTest({len(self.models)} models, {', '.join(self.raw)}, n={self.whole.shape[1]})"

    @property
    def _positions(self) -> Numbers:
        """Positions of images in the shape of scores, so that a bootstrap draws images and means are taken here."""
        models, images = len(self.models), self.whole.shape[1]
        return np.broadcast_to(np.arange(images, dtype=float), (models, models, images))

    def _normalizer(self, metric: str) -> Callable[[np.ndarray], Numbers]:
        def of_images(index: np.ndarray) -> Numbers:
            high = np.nanmean(self.whole[:, index], axis=1)
            low = np.nanmean(self.hidden[metric][:, index], axis=1)
            return np.asarray((np.nanmean(self.raw[metric][:, :, index], axis=2) - low) / (high - low))

        return of_images

    def _metric(self, metric: str | None) -> str:
        if metric is None:
            return self.metrics[0]
        if metric not in self.raw:
            raise OptionError(f"These are scores of {', '.join(self.raw)}, not of {metric!r}.")
        return metric


@reports("Cross-testing")
def cross_test(
    nets: Sequence[Model],
    images: Any,
    method: str = "igos++",
    metric: str | Sequence[str] = ("insertion", "deletion"),
    protocol: str = "jiang",
    *,
    target_class: ClassOf = "generating",
    maps: Sequence[Attribution] | None = None,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    batch_size: Count | Literal["auto"] = "auto",
    precision: Precision = "fp32",
    compile: bool = False,
    progress: bool = False,
    **choices: Any,
) -> CrossTest:
    """Score the maps of every model on every model.

    Each model sees images as it was made to, so models whose preprocessing crops differently see slightly different
    parts of a photograph; maps are laid over what each of them sees.

    Args:
        nets: Two or more classifiers, or modules of timm.
        images: Anything that :func:`suffice.open_images` takes.
        method: By which maps are made.
        metric: One metric with curves, or several.
        protocol: Every choice that is not made here; the papers' is ``"jiang"``.
        target_class: The class asked about: the one that the ``"generating"`` model predicts, the one that the
            ``"evaluated"`` model predicts, or the ``"label"`` of the image.
        maps: Maps of each model that were made before, of the same images; ``method`` is not used then.
        options: Of the method.
        seed: Seed of everything random.
        batch_size: Inputs per forward.
        precision: Of the models.
        compile: Compile them.
        progress: Show how many questions were put to the models, how fast, and the time left.
        **choices: Of the metrics, such as ``baseline="black"``.

    Returns:
        Raw scores of each image, normalized matrices, the landscape, and the matrix of families.

    Example:
        >>> from suffice.testing import AnyOf
        >>> oracles = [AnyOf([(7, 8)], grid=3), AnyOf([(8,)], grid=3), AnyOf([(4,)], grid=3)]
        >>> nets = [oracle.classifier(24) for oracle in oracles]
        >>> for net, net.name in zip(nets, "abc"):
        ...     pass
        >>> found = cross_test(nets, oracles[0].image(24), "occlusion", "insertion", options={"window": 8, "stride": 8},
        ...                    baseline="black", units=3, masks="nearest", steps=9)
        >>> found.scores().round(1).tolist()  # two cells are enough for one who needs one of them, not the reverse
        [[0.8, 0.8, 0.3], [0.1, 0.9, 0.4], [0.1, 0.1, 0.9]]
    """
    check_options({"target_class": target_class}, cross_test)
    given = [as_classifier(net) for net in nets]
    if len(given) < 2 or len({net.name for net in given}) < len(given):
        raise OptionError("Expected two or more classifiers with different names; Classifier(…, name=…) names them.")
    if maps is not None and len(maps) != len(given):
        raise OptionError(f"{len(maps)} sets of maps were given for {len(given)} classifiers; give one for each.")
    opened = open_images(images)
    runners = [Runner(net, batch_size=batch_size, precision=precision, compile=compile) for net in given]
    predicted = [net.predict(opened).targets.cpu() for net in given]
    chosen = _chosen(target_class, given, opened, predicted)
    made: list[Attribution] = list(maps or ())
    for number, (net, runner) in enumerate(zip(given, runners, strict=True)):
        if maps is None:
            targets = chosen(number, number)
            made.append(attribute(net, opened, method, targets, seed=seed, runner=runner, **dict(options or {})))
    names = [metric] if isinstance(metric, str) else list(metric)
    shape = (len(given), len(given), len(opened))
    raw = {name: np.empty(shape) for name in names}
    hidden = {name: np.empty(shape[1:]) for name in names}
    whole, classes = np.empty(shape[1:]), np.empty(shape, dtype=np.int64)
    for column, (net, runner) in enumerate(zip(given, runners, strict=True)):
        for row, attribution in enumerate(made):
            # The map alone is given: what it explains need not be what is asked about.
            plain, asked = attribution.maps, chosen(row, column)
            found = measure(net, opened, plain, names, protocol, targets=asked, seed=seed, runner=runner, **choices)
            classes[row, column] = asked.numpy()
            for name, outcome in found.outcomes.items():
                raw[name][row, column] = outcome.values.double().cpu().numpy()
                if row == column:
                    whole[column], hidden[name][column] = _ends(outcome, name)
    about = provenance(given[0], {"method": method, "options": dict(options or {}), "protocol": protocol, **choices})
    about |= {"models": [net.name for net in given], "target": target_class}
    families = tuple(net.family or "" for net in given)
    models = tuple(net.name for net in given)
    return CrossTest(models, families, raw, whole, hidden, classes, opened.names, opened.ids, about)


def _ends(outcome: Outcome, name: str) -> tuple[Numbers, Numbers]:
    """Confidence on whole images and on baselines, both [N]."""
    if outcome.curves is None:
        raise OptionError(f"Cross-testing is for metrics with curves, such as insertion; {name} has none.")
    return outcome.curves.whole.double().cpu().numpy(), outcome.curves.hidden.double().cpu().numpy()


def _chosen(
    rule: ClassOf, nets: Sequence[Classifier], images: Images, predicted: Sequence[torch.Tensor]
) -> Callable[[int, int], torch.Tensor]:
    """From the generating and the evaluated model to the classes asked about, [N]."""
    if rule == "label":
        if None in images.labels:
            raise OptionError("target_class='label', but an image has no label; see open_images(…, labels=…).")
        of_each = [
            torch.tensor([net.class_index(label) for label in images.labels if label is not None]) for net in nets
        ]
        return lambda row, column: of_each[column]
    return lambda row, column: predicted[row if rule == "generating" else column]
