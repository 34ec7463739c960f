"""Whether maps depend on what a model has learned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

from suffice.attribution import find_method
from suffice.errors import CheckpointError, OptionError
from suffice.metrics.sanity import SanityReport, data_randomization, sanity_check
from suffice.metrics.sanity.randomize import How, layers_of
from suffice.options import Count
from suffice.study.files import files_of, with_paths
from suffice.study.kinds.layers import no_such_layer
from suffice.study.measurement import Found, Measurement, Options, Work
from suffice.study.paths import expanded
from suffice.vision import Classifier
from suffice.vision.anatomy.copies import working_copy
from suffice.vision.checkpoints import load_checkpoint


@dataclass(frozen=True)
class Sanity(Measurement):
    """How similar the maps of a method stay while weights are randomized; a row for each step.

    Further options are those of the method.

    Attributes:
        method: Its name.
        label: What tables call it; default: its name.
        check: Randomize layers ``"cascading"`` from the top, or each one ``"independent"`` of the others; or compare
            with a model that has learned other ``"data"``.
        how: Random weights as before training (``"reinitialize"``), or those of each layer shuffled (``"permute"``).
        draws: How many times random weights are drawn.
        permuted: With ``check = "data"``: the file of weights that were trained on permuted labels.
        permuted_options: Options of the method for these alone.
        options: Of the method.
    """

    kind: ClassVar[str] = "sanity"
    method: str
    label: str = ""
    check: Literal["cascading", "independent", "data"] = "cascading"
    how: How = "reinitialize"
    draws: Count = 1
    permuted: str | None = None
    permuted_options: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.check == "data") != (self.permuted is not None):
            raise OptionError("check = \"data\" needs 'permuted', a file of weights, and no other check takes it.")
        if self.check == "data" and (self.draws > 1 or self.how != "reinitialize"):
            raise OptionError("check = \"data\" draws no random weights, so it takes neither 'draws' nor 'how'.")
        if self.check != "data" and self.permuted_options:
            raise OptionError("'permuted_options' are for check = \"data\".")

    @classmethod
    def of(cls, options: Options) -> Sanity:
        """From the name of the method and its options beside each other."""
        if not isinstance(options.get("method"), str):
            raise OptionError("sanity needs 'method', the name of one.")
        names = ("method", "label", "check", "how", "draws", "permuted", "permuted_options")
        own = {name: options[name] for name in names if name in options}
        further = {name: value for name, value in options.items() if name not in own}
        made = cls(**own, options=further)
        for given in (further, made.permuted_options):
            find_method(made.method).check(given)
        return made

    @property
    def facts(self) -> dict[str, str]:
        """The method, in all rows."""
        return {"method": self.label or self.method}

    @property
    def files(self) -> tuple[str, ...]:
        """The weights trained on permuted labels, and those among the options of the method."""
        permuted = () if self.permuted is None else (expanded(self.permuted),)
        method = find_method(self.method)
        return (*permuted, *files_of(method, self.options), *files_of(method, self.permuted_options))

    @cached_property
    def _options(self) -> dict[str, Any]:
        return with_paths(find_method(self.method), self.options)

    @cached_property
    def _permuted_options(self) -> dict[str, Any]:
        return with_paths(find_method(self.method), self.permuted_options)

    def misfit(self, net: Classifier) -> str | None:
        """Why the method cannot be used with a model; None where it can."""
        try:
            if self.permuted is not None:
                self._other(net, self.permuted)
        except CheckpointError as error:
            return str(error).splitlines()[0].removesuffix(".")
        method = find_method(self.method)
        reason = method.incompatibility(net, self._options)
        both = self._options | self._permuted_options
        reason = reason or method.incompatibility(net, both)
        return reason or no_such_layer(net, method, self._options) or no_such_layer(net, method, both)

    def questions(self, net: Classifier) -> float | None:
        """Inputs that an image puts through the model and its versions."""
        each = find_method(self.method).questions_of(net, self._options)
        steps = 2 if self.check == "data" else 1 + len(layers_of(net.module))
        return None if each is None else each * (1 + self.draws * steps)

    def measure(self, work: Work) -> Found:
        """Randomize the model and compare its maps."""
        import pyarrow as pa

        found = self._checked(work)
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

    def _checked(self, work: Work) -> SanityReport:
        options = {self.method: self._options}
        how: dict[str, Any] = {"options": options, "seed": work.seed, "runner": work.runner, "on_error": "skip"}
        if self.check != "data":
            how |= {"check": self.check, "how": self.how, "draws": self.draws}
            return sanity_check(work.net, work.images, self.method, **how)
        assert self.permuted is not None
        own = {self.method: self._permuted_options}
        other = self._other(work.net, self.permuted)
        return data_randomization(work.net, other, work.images, self.method, permuted_options=own, **how)

    def _other(self, net: Classifier, weights: str) -> Classifier:
        """The same model with other weights."""
        module = working_copy(net.module)
        load_checkpoint(module, expanded(weights))
        return net.with_module(module)
