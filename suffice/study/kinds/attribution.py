"""Maps by a method, kept for other measurements to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from suffice.attribution import Attribution, attribute, find_method
from suffice.errors import OptionError, UnreadableImage
from suffice.study.kinds.classes import Classes, targets_of_images
from suffice.study.measurement import Found, Measurement, Work
from suffice.vision import Classifier


@dataclass(frozen=True)
class Maps(Measurement):
    """Attribution maps; further options are those of the method.

    Attributes:
        method: Its name.
        target_class: The class explained.
        options: Of the method.
    """

    kind: ClassVar[str] = "attribution"
    makes_maps: ClassVar[bool] = True
    method: str
    target_class: Classes = "predicted"
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Maps:
        """From the name of the method and its options beside each other."""
        if not isinstance(options.get("method"), str):
            raise OptionError("attribution needs 'method', the name of one.")
        own = {name: options[name] for name in ("method", "target_class") if name in options}
        further = {name: value for name, value in options.items() if name not in own}
        find_method(own["method"]).check(further)
        return cls(**own, options=further)

    def misfit(self, net: Classifier) -> str | None:
        """Why the method cannot be used with a model; None where it can."""
        return find_method(self.method).incompatibility(net)

    def questions(self, net: Classifier) -> float | None:
        """Inputs that an image puts through the model."""
        return find_method(self.method).questions_of(net, dict(self.options))

    def measure(self, work: Work) -> Found:
        """Make maps."""
        import pyarrow as pa

        found = self._maps(work)
        skipped = {skip.index for skip in found.skipped}
        flat = found.maps.flatten(1)
        columns = {
            "index": pa.array([i for i in range(len(work.images)) if i not in skipped], pa.int64()),
            "target": pa.array(found.targets.tolist(), pa.int64()),
            "label": pa.array(list(found.labels), pa.string()),
            "confidence": pa.array(found.confidences.tolist(), pa.float64()),
            "lowest": pa.array(flat.amin(dim=1).tolist(), pa.float64()),
            "highest": pa.array(flat.amax(dim=1).tolist(), pa.float64()),
            "mean": pa.array(flat.double().mean(dim=1).tolist(), pa.float64()),
        }
        return Found(pa.table(columns), found.about, found.skipped, found)

    def _maps(self, work: Work) -> Attribution:
        """Maps of the images that can be read, of none if none can: whoever reads the maps is to know which."""
        targets = targets_of_images(work, self.target_class)
        how: dict[str, Any] = {"seed": work.seed, "runner": work.runner, "on_error": "skip"}
        try:
            return attribute(work.net, work.images, self.method, targets, **how, **self.options)
        except UnreadableImage:
            none = torch.zeros(0)
            settings = {"method": self.method}
            return Attribution(none.view(0, 1, 1), none.long(), none, settings, skipped=work.unreadable())
