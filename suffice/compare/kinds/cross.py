"""Cross-testing in a study: a model is shown what others find important."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from suffice.attribution import Attribution
from suffice.compare.cross import Answers, ClassOf, check_curves, shown_to
from suffice.errors import UnreadableImage
from suffice.study.kinds.classes import targets_of_images
from suffice.study.kinds.metrics import ScoresOfMaps
from suffice.study.measurement import Found, Options, Work
from suffice.vision.classifier import Targets


@dataclass(frozen=True)
class CrossTesting(ScoresOfMaps):
    """Scores of the maps of every model on every model that it is made with.

    A row is one map of an image (``maps_of``), shown to one model (``model``); besides a column a metric there are
    ``whole`` and ``hidden``, the confidence in that class on the whole image and on the baseline alone. Metrics over
    another baseline than the first have a ``hidden_…`` of their own.

    Attributes:
        protocol: Every choice that is not made here; the papers' is ``"jiang"``.
        target_class: The class asked about: the one that the map explains (``"generating"``), the one that the tested
            model predicts (``"evaluated"``), or the ``"label"`` of the image.
    """

    kind: ClassVar[str] = "cross-test"
    crosses: ClassVar[bool] = True
    protocol: str = "jiang"
    target_class: ClassOf = "generating"

    @classmethod
    def of(cls, options: Options) -> CrossTesting:
        """From the names of maps and metrics, with the options of the metrics beside them."""
        made = super().of(options)
        check_curves(made.measured)
        return made

    def measure(self, work: Work) -> Found:
        """Score the maps of all models on one of them."""
        import pyarrow as pa

        own = work.maps(self.maps)
        if not len(own):
            raise UnreadableImage("None of the images could be read.")
        wanted: Targets = targets_of_images(work, "label") if self.target_class == "label" else None
        made = [work.maps(self.maps, maker) for maker in work.makers]
        parts: list[Mapping[str, np.ndarray]] = []
        for index, numbers in _alike([_with_maps(work, maps) for maps in made]):
            asked = [_asked(self.target_class, made[number], wanted, index) for number in numbers]
            answers = shown_to(
                work.net, work.images[index], [made[number].maps for number in numbers], asked, self.metrics,
                self.protocol, seed=work.seed, runner=work.runner, **self.options,
            )  # fmt: skip
            for number, found in zip(numbers, answers, strict=True):
                place = {"index": np.array(index), "maker": np.full(len(index), number)}
                parts.append(place | _columns(found, self._hidden()))
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        order = np.lexsort((columns["maker"], columns["index"]))  # an image after the other
        columns = {name: values[order] for name, values in columns.items()}
        makers = [work.makers[number] for number in columns.pop("maker")]
        table = pa.table({**columns, "maps_of": makers})
        labels = [work.net.labels[t] if work.net.labels else str(t) for t in columns["target"].tolist()]
        names = ["index", "target", "label", "maps_of", *(n for n in columns if n not in ("index", "target"))]
        about = {**found.about, "makers": list(work.makers), "target_class": self.target_class}
        return Found(table.append_column("label", pa.array(labels, pa.string())).select(names), about, own.skipped)

    def _hidden(self) -> dict[str, str]:
        """The columns of confidences on baselines, and the metric that each is of."""
        chosen = {name: self.choices()[name.partition("/")[0]]["baseline"] for name in self.metrics}
        first, *rest = self.metrics
        others = {f"hidden_{name}": name for name in rest if chosen[name] != chosen[first] or "/" in name}
        return {"hidden": first, **others}


def _with_maps(work: Work, maps: Attribution) -> list[int]:
    """Positions of the images that have maps."""
    skipped = {skip.index for skip in maps.skipped}
    return [i for i in range(len(work.images)) if i not in skipped]


def _alike(indices: list[list[int]]) -> Iterator[tuple[list[int], list[int]]]:
    """Images that have maps, and the makers who have maps of just these: all of them, unless files were broken."""
    for index in dict.fromkeys(map(tuple, indices)):
        if index:
            yield list(index), [number for number, own in enumerate(indices) if tuple(own) == index]


def _asked(rule: ClassOf, maps: Attribution, wanted: Targets, index: list[int]) -> Targets:
    """The classes that are asked about; None for those that the tested model predicts."""
    if rule == "generating":
        return maps.targets
    return None if not isinstance(wanted, list) else torch.tensor(wanted)[index]


def _columns(found: Answers, hidden: Mapping[str, str]) -> dict[str, Any]:
    """Columns of the table, each [N]."""
    ends = {column: found.hidden[name] for column, name in hidden.items()}
    return {"target": found.targets, **found.values, "whole": found.whole, **ends}
