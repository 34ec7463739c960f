"""The strongest activation of each channel, in a study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from suffice.compare.channels import activations
from suffice.errors import SufficeError
from suffice.study.measurement import Found, Measurement, Work
from suffice.vision import Classifier
from suffice.vision.provenance import provenance


@dataclass(frozen=True)
class ChannelMaxima(Measurement):
    """The largest activation of each channel of a layer, over all places; a row an image, ``layer`` and ``maxima``.

    Nothing is asked about a class, so that ``target`` and ``label`` are empty.

    Attributes:
        layer: Name of the layer, the same in all models that it is made with; default: the last with spatial detail.
    """

    kind: ClassVar[str] = "activations"
    layer: str | None = None

    def misfit(self, net: Classifier) -> str | None:
        """Why a model cannot be looked into; None where it can."""
        try:
            layer = self.layer or net.anatomy.target_layer
        except SufficeError as error:
            return str(error).removesuffix(".")
        there = layer in dict(net.module.named_modules())
        return None if there else f"there is no layer {layer!r}"

    def questions(self, net: Classifier) -> float:
        """Inputs that an image puts through the model."""
        return 1

    def measure(self, work: Work) -> Found:
        """Look inside."""
        import pyarrow as pa

        found = activations(work.net, work.images, self.layer, runner=work.runner, on_error="skip")
        count = len(found.index)
        columns = {
            "index": pa.array(found.index, pa.int64()),
            "target": pa.nulls(count, pa.int64()),
            "label": pa.nulls(count, pa.string()),
            "layer": pa.array([found.layer] * count, pa.string()),
            "maxima": pa.array(found.maxima.tolist(), pa.list_(pa.float32())),
        }
        about = provenance(work.net, {"layer": found.layer}, precision=work.runner.precision)
        return Found(pa.table(columns), about, found.skipped)
