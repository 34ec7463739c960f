"""How true maps are, by metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from suffice.errors import OptionError, UnreadableImage
from suffice.metrics import find_metric, find_protocol, measure
from suffice.metrics.api import choices_of, questions_of
from suffice.study.measurement import Found, Measurement, Work
from suffice.vision import Classifier


@dataclass(frozen=True)
class Metrics(Measurement):
    """Scores of the maps of another measurement; further options are those of the metrics.

    Attributes:
        maps: The measurement that makes the maps.
        metrics: Names of metrics.
        protocol: Every choice that is not made here.
        options: Of the metrics; each goes to those that have it.
    """

    kind: ClassVar[str] = "metrics"
    maps: str
    metrics: Sequence[str] = ("insertion", "deletion")
    protocol: str = "default"
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Metrics:
        """From the names of maps and metrics, with the options of the metrics beside them."""
        if not isinstance(options.get("maps"), str):
            raise OptionError("metrics needs 'maps', the name of the measurement that makes them.")
        own = {name: options[name] for name in ("maps", "metrics", "protocol") if name in options}
        if isinstance(own.get("metrics"), str):
            own["metrics"] = (own["metrics"],)
        further = {name: value for name, value in options.items() if name not in own}
        made = cls(**own, options=further)
        for name in made.metrics:
            find_metric(name)
        choices_of(made.metrics, find_protocol(made.protocol), further)
        return made

    @property
    def reads(self) -> tuple[str, ...]:
        """The measurement whose maps it reads."""
        return (self.maps,)

    def questions(self, net: Classifier) -> float | None:
        """Inputs that an image puts through the model."""
        choices = choices_of(self.metrics, find_protocol(self.protocol), self.options)
        return questions_of(net, self.metrics, choices)

    def measure(self, work: Work) -> Found:
        """Score the maps."""
        import pyarrow as pa

        maps = work.maps(self.maps)
        skipped = {skip.index for skip in maps.skipped}
        index = [i for i in range(len(work.images)) if i not in skipped]
        if not index:
            raise UnreadableImage("None of the images could be read.")
        found = measure(
            work.net, work.images[index], maps, list(self.metrics), self.protocol, seed=work.seed, runner=work.runner,
            **self.options,
        )  # fmt: skip
        table = found.to_arrow().replace_schema_metadata()
        table = table.set_column(table.schema.get_field_index("index"), "index", pa.array(index, pa.int64()))
        targets = table["target"].to_pylist()
        labels = [None if t is None else work.net.labels[t] if work.net.labels else str(t) for t in targets]
        return Found(table.append_column("label", pa.array(labels, pa.string())), found.about, maps.skipped)
