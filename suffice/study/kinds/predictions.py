"""What a model says of whole images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from suffice.options import Count
from suffice.study.measurement import Found, Measurement, Work
from suffice.vision import Classifier
from suffice.vision.provenance import provenance
from suffice.vision.stream import stream


@dataclass(frozen=True)
class Predictions(Measurement):
    """The classes that a model names first, and whether the image's own label is the first of them.

    Attributes:
        top: How many classes.
    """

    kind: ClassVar[str] = "predictions"
    top: Count = 5

    def questions(self, net: Classifier) -> float:
        """Inputs that an image puts through the model."""
        return 1

    def measure(self, work: Work) -> Found:
        """Ask the model about whole images."""
        import pyarrow as pa

        net, rows = work.net, []
        batches = stream(work.images, net.geometry, batch_size=work.runner.batch_size, on_error="skip")
        for batch in batches:
            scores = work.runner.scores(batch.pixels.to(net.device))
            best = scores.topk(min(self.top, scores.shape[1]), dim=1)
            for index, values, classes in zip(
                batch.index.tolist(), best.values.tolist(), best.indices.tolist(), strict=True
            ):
                truth = _truth(net, work.images[index].label)
                rows.append(
                    {
                        "index": index,
                        "target": classes[0],
                        "label": net.labels[classes[0]] if net.labels else str(classes[0]),
                        "confidence": values[0],
                        "truth": truth,
                        "correct": None if truth is None else truth == classes[0],
                        "classes": classes,
                        "confidences": values,
                    }
                )
        schema = pa.schema(
            {
                "index": pa.int64(),
                "target": pa.int64(),
                "label": pa.string(),
                "confidence": pa.float64(),
                "truth": pa.int64(),
                "correct": pa.bool_(),
                "classes": pa.list_(pa.int64()),
                "confidences": pa.list_(pa.float64()),
            }
        )
        about = provenance(net, {"top": self.top}, precision=work.runner.precision)
        return Found(pa.Table.from_pylist(rows, schema), about, batches.skipped)


def _truth(net: Classifier, label: int | str | None) -> int | None:
    """The class of a label; None where there is none, or the model does not know it."""
    if label is None:
        return None
    try:
        return net.class_index(label)
    except (LookupError, ValueError):
        return None
