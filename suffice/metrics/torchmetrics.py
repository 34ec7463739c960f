"""Metrics as torchmetrics knows them: ``update``, ``compute``, ``reset``, over many batches and processes.

Importing this module needs the package torchmetrics; nothing else here does.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from suffice.attribution import Attribution
from suffice.errors import MissingExtra, OptionError
from suffice.metrics.api import measure
from suffice.metrics.metric import find_metric
from suffice.metrics.outcome import Outcome
from suffice.metrics.protocols import Protocol, find_protocol
from suffice.vision import Model, as_classifier
from suffice.vision.classifier import Targets

try:
    from torchmetrics import Metric
    from torchmetrics.utilities import dim_zero_cat
except ImportError as error:
    raise MissingExtra("suffice.metrics.torchmetrics needs torchmetrics: pip install torchmetrics.") from error


class MapMetric(Metric):
    """A metric of maps, or several that share what they ask of the model, as one of torchmetrics.

    The value of every image is kept, and joined over processes, so means and standard errors are those of all images,
    whatever the batches were. The classifier is not part of the metric: ``.to(device)`` leaves it where it is, and
    ``state_dict`` does not have its weights, and copies share it.

    Args:
        metric: Name of a metric, or several; see :func:`suffice.list_metrics`.
        net: The classifier that the maps explain.
        protocol: Every choice that is not made here; see :func:`suffice.list_protocols`.
        standard_error: Whether :meth:`compute` also gives the standard error of the mean.
        metric_options: Options of the metrics and of :func:`suffice.measure`, such as ``{"baseline": "black"}``.
        **options: Of :class:`torchmetrics.Metric`, such as ``sync_on_compute=False``.

    Raises:
        OptionError: There is no such metric, or it cannot be used so.

    Example:
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(5,)], grid=4)
        >>> maps = torch.zeros(1, 4, 4)
        >>> maps[0, 1, 1] = 1.0
        >>> choices = {"baseline": "black", "units": "cells", "steps": 16}
        >>> insertion = MapMetric("insertion", oracle.classifier(32), metric_options=choices)
        >>> insertion.update(oracle.image(32), maps, targets=1)
        >>> round(float(insertion.compute()), 2)
        0.95
    """

    is_differentiable = False
    full_state_update = False

    def __init__(
        self,
        metric: str | Sequence[str],
        net: Model,
        protocol: str | Protocol = "default",
        *,
        standard_error: bool = False,
        metric_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.names = (metric,) if isinstance(metric, str) else tuple(metric)
        self.single = isinstance(metric, str)
        self.net, self.standard_error = as_classifier(net), standard_error
        self.protocol = find_protocol(protocol)
        self.metric_options = dict(metric_options or {})
        if self.metric_options.get("normalize") == "set":
            raise OptionError('normalize="set" needs all images at once, and batches come one by one; use "image".')
        for name in self.names:
            find_metric(name)  # a wrong name is said at once
            self.add_state(_state(name), default=[], dist_reduce_fx="cat")

    def __deepcopy__(self, memo: dict[int, Any]) -> MapMetric:
        memo[id(self.net)] = self.net  # trackers copy a metric every epoch; the model is not theirs to copy
        made = memo[id(self)] = type(self).__new__(type(self))
        made.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return made

    @property
    def higher_is_better(self) -> bool | None:  # type: ignore[override]
        """Whether better maps have higher values; None for several metrics."""
        return find_metric(self.names[0]).higher_is_better if self.single else None

    def update(self, images: Any, maps: Attribution | Tensor, targets: Targets = None) -> None:
        """Measure the maps, [B, h, w], of some images; arguments as for :func:`suffice.measure`."""
        own = self.metric_options
        found = measure(self.net, images, maps, list(self.names), self.protocol, targets=targets, **own)
        for name in self.names:
            getattr(self, _state(name)).append(found[name].values.to(self.device))

    def compute(self) -> Any:
        """The mean over all images, a tensor; for several metrics a dict by name.

        With ``standard_error`` each is a dict of ``"mean"`` and ``"standard_error"``. Images that a metric leaves out
        do not count; NaN if there is no other.
        """
        found = {}
        for name in self.names:
            whole = Outcome(dim_zero_cat(getattr(self, _state(name))))
            numbers = {"mean": whole.mean, "standard_error": whole.standard_error}
            summary = {key: torch.tensor(number, device=whole.values.device) for key, number in numbers.items()}
            found[name] = summary if self.standard_error else summary["mean"]
        return found[self.names[0]] if self.single else found


def _state(name: str) -> str:
    return f"values_{name.replace('-', '_').replace('+', 'p')}"
