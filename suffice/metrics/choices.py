"""Which options several metrics have under a protocol, and how many questions that makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from suffice.errors import OptionError
from suffice.metrics.metric import find_metric
from suffice.metrics.protocols import Protocol
from suffice.vision import Classifier


def choices_of(wanted: Sequence[str], protocol: Protocol, options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Every choice for each metric; an option that none of them has is an error."""
    if not wanted or len(set(wanted)) < len(wanted):
        raise OptionError(f"metric={list(wanted)!r}; expected one or more different names.")
    found = {name: find_metric(name) for name in wanted}
    for option in options:
        if not any(option in m.options for m in found.values()):
            known = sorted({o for m in found.values() for o in m.options})
            raise OptionError(f"{', '.join(found)} has no option {option!r}; there are {', '.join(known) or 'none'}.")
    return {n: protocol.options(n, {o: v for o, v in options.items() if o in m.options}) for n, m in found.items()}


def questions_of(net: Classifier, metrics: Sequence[str], choices: Mapping[str, Mapping[str, Any]]) -> float | None:
    """How many inputs an image puts through the model for some metrics, with the choices of each; None if unknown."""
    counts = [find_metric(name).questions_of(net, choices[name]) for name in metrics]
    return None if None in counts else 1 + sum(count for count in counts if count is not None)


def questions_together(
    net: Classifier, metrics: Sequence[str], choices: Mapping[str, Mapping[str, Any]], sets: int
) -> float | None:
    """The same for so many sets of maps of one image, which is asked about whole but once."""
    questions = questions_of(net, metrics, choices)
    return None if questions is None else 1 + (questions - 1) * sets
