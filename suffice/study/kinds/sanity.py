"""Whether maps depend on what a model has learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from suffice.attribution import find_method
from suffice.metrics.sanity import sanity_check
from suffice.options import Count
from suffice.study.measurement import Found, Measurement, Work
from suffice.vision import Classifier


@dataclass(frozen=True)
class Sanity(Measurement):
    """How similar the maps of a method stay while weights are randomized, layer by layer; a row for each step.

    Attributes:
        method: Its name.
        check: Randomize layers ``"cascading"`` from the top, or each one ``"independent"`` of the others.
        draws: How many times random weights are drawn.
    """

    kind: ClassVar[str] = "sanity"
    method: str
    check: Literal["cascading", "independent"] = "cascading"
    draws: Count = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        find_method(self.method)

    @property
    def facts(self) -> dict[str, str]:
        """The method, in all rows."""
        return {"method": self.method}

    def misfit(self, net: Classifier) -> str | None:
        """Why the method cannot be used with a model; None where it can."""
        return find_method(self.method).incompatibility(net)

    def measure(self, work: Work) -> Found:
        """Randomize the model and compare its maps."""
        import pyarrow as pa

        found = sanity_check(
            work.net, work.images, self.method, check=self.check, draws=self.draws, seed=work.seed, on_error="skip",
            batch_size=work.runner.batch_size,
        )  # fmt: skip
        skipped = {skip.index for skip in found.skipped}
        index = [i for i in range(len(work.images)) if i not in skipped]
        similar = found.rows[0].values
        draws, steps, images = next(iter(similar.values())).shape
        place = [(d, s, i) for d in range(draws) for s in range(steps) for i in range(images)]
        targets = found.targets.tolist()
        labels = [work.net.labels[t] if work.net.labels else str(t) for t in targets]
        columns = {
            "index": pa.array([index[i] for _, _, i in place], pa.int64()),
            "target": pa.array([targets[i] for _, _, i in place], pa.int64()),
            "label": pa.array([labels[i] for _, _, i in place], pa.string()),
            "draw": pa.array([d for d, _, _ in place], pa.int64()),
            "step": pa.array([s for _, s, _ in place], pa.int64()),
            "layer": pa.array([found.steps[s] for _, s, _ in place], pa.string()),
        }
        columns |= {name: pa.array(values.flatten().tolist(), pa.float64()) for name, values in similar.items()}
        return Found(pa.table(columns), found.about, found.skipped)
