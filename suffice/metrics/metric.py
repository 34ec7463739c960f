"""What a metric is: a function over a batch of images and their maps, with the facts about it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from suffice.metrics.map_batch import MapBatch
from suffice.metrics.outcome import Outcome
from suffice.options import check_options
from suffice.plugins import Registry, keyword_options, matching

if TYPE_CHECKING:
    from suffice.vision import Classifier

Need = Literal["maps", "model", "boxes", "method"]
Questions = Callable[["Classifier", Mapping[str, Any]], "float | None"]
Function = TypeVar("Function", bound=Callable[..., Outcome])

_registry: Registry[Metric] = Registry("metric", "suffice.metrics.builtin", "suffice.metrics")


@dataclass(frozen=True)
class Metric:
    """A metric and what is known about it.

    Attributes:
        name: By which users call it.
        about: What it measures, in one line.
        reference: Where it was published.
        higher_is_better: Whether a better map has a higher value; None where the value says nothing about better.
        bounds: Lowest and highest value, before the option ``scale`` where there is one; infinite where unbounded.
        needs: What it looks at: ``"maps"``, the ``"model"``, the ``"boxes"`` of objects, or the ``"method"`` that made
            the maps.
        options: Its options with their defaults.
        function: ``function(given, **options)``, from a :class:`MapBatch` to an :class:`Outcome`.
        choices: The dataclass whose fields the options are, where there is one.
        questions: From the classifier and the options to how many inputs an image puts through the model; None where
            that shows only on the way.
    """

    name: str
    about: str
    reference: str
    higher_is_better: bool | None
    bounds: tuple[float, float]
    needs: tuple[Need, ...]
    options: Mapping[str, Any]
    function: Callable[..., Outcome]
    choices: type | None = None
    questions: Questions | None = None

    def __str__(self) -> str:
        return self.name

    def check(self, options: Mapping[str, Any]) -> None:
        """Raise an error if an option is unknown, or has a value that it cannot have."""
        check_options(options, self.choices or self.function, self.name)

    def questions_of(self, net: Classifier, options: Mapping[str, Any]) -> float | None:
        """How many inputs an image puts through the model with these options, where that is known beforehand."""
        if not {"model", "method"} & set(self.needs):
            return 0
        return None if self.questions is None else self.questions(net, {**self.options, **options})


def metric(
    name: str,
    *,
    higher_is_better: bool | None,
    bounds: tuple[float, float],
    needs: tuple[Need, ...],
    reference: str,
    choices: Any = None,
    questions: Questions | None = None,
) -> Callable[[Function], Function]:
    """Declare a metric; that is all it takes for it to appear in :func:`list_metrics` and in the tests of all metrics.

    The first line of the function's docstring says what it measures; its keyword-only parameters are its options.
    Metrics that share many options take them as one frozen dataclass instead, ``function(given, choices)``; its fields
    are the options then, and ``choices`` is an instance with their defaults. The other arguments are the facts of
    :class:`Metric`. The function itself stays as it was.

    Example:
        >>> @metric("highest", higher_is_better=True, bounds=(0, 1), needs=("maps",), reference="nowhere")
        ... def highest(given, *, power: float = 1.0):
        ...     \"\"\"The highest value of the map.\"\"\"
        ...     return Outcome(given.maps.flatten(1).amax(dim=1) ** power)
        >>> find_metric("highest").options["power"]
        1.0
        >>> forget_metric("highest")
    """

    def declare(function: Function) -> Function:
        called: Callable[..., Outcome] = function
        if choices is None:
            options, kind = keyword_options(function, name), None
        else:
            options, kind = {f.name: getattr(choices, f.name) for f in fields(choices)}, type(choices)

            def called(given: MapBatch, **changes: Any) -> Outcome:
                return function(given, replace(choices, **changes))

            called.__module__ = function.__module__
        about = (inspect.getdoc(function) or "").partition("\n")[0]
        known = MappingProxyType(options)
        _registry.add(Metric(name, about, reference, higher_is_better, bounds, needs, known, called, kind, questions))
        return function

    return declare


def forget_metric(name: str) -> None:
    """Take a metric off the list."""
    _registry.forget(name)


def all_metrics() -> dict[str, Metric]:
    """All metrics by name: of this package, of others by entry points in the group ``suffice.metrics``, and yours.

    Example:
        >>> all_metrics()["deletion"].higher_is_better
        False
    """
    return _registry.all()


def list_metrics(pattern: str = "*") -> list[str]:
    """List the names of metrics that match a shell-style pattern.

    Example:
        >>> list_metrics("*pointing-game")
        ['energy-pointing-game', 'pointing-game']
    """
    return matching(all_metrics(), pattern)


def find_metric(name: str | Metric) -> Metric:
    """A metric by its name; an unknown name is an error that suggests close ones."""
    return _registry.find(name)
