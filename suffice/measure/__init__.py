"""Measuring: whether maps are true to a model, by metrics that say how they were made.

``suffice.measure(net, images, maps, metric)`` calls this room itself. Each metric is one file in the folder ``metrics``
and one function from a :class:`Trial` to an :class:`Outcome`; every choice that it leaves open has a name, and a set of
such choices is a protocol. Metrics asked for together share what they ask of the model.

* :func:`score`: scores of maps by any metrics; :class:`Scores`, :class:`Outcome`, :class:`Curves`: what it returns.
* :func:`score_table`, :class:`ScoreTable`: methods × models × metrics, with errors and significance; :class:`Entry`: a
  method with options of its own in such a table.
* :func:`sanity_check`, :func:`data_randomisation`: do maps depend on what a model has learnt? See
  :mod:`suffice.measure.sanity`.
* :mod:`suffice.measure.torchmetrics`: metrics with ``update``, ``compute`` and ``reset``, for training loops.
* :func:`suffice.metrics`, :class:`Metric`: what there is, which direction is better, and what it needs.
* :func:`suffice.protocols`, :class:`Protocol`: named sets of choices, from the papers and ours.
* :func:`metric`, :class:`Trial`: how a metric is declared, and what it gets to work on.
* :class:`CurveChoices`, :func:`trace`: curves of inserting and removing, for metrics built on them.
"""

import sys
from types import ModuleType
from typing import Any

from suffice.measure.call import score
from suffice.measure.curves import CurveChoices, trace
from suffice.measure.metric import Metric, find_metric, forget_metric, metric
from suffice.measure.outcome import Curves, Outcome
from suffice.measure.protocols import Protocol, find_protocol
from suffice.measure.sanity import SanityReport, data_randomisation, sanity_check
from suffice.measure.scores import Scores
from suffice.measure.table import ScoreTable
from suffice.measure.tabulate import Entry, score_table
from suffice.measure.trial import Trial

__all__ = [
    "CurveChoices",
    "Curves",
    "Entry",
    "Metric",
    "Outcome",
    "Protocol",
    "SanityReport",
    "ScoreTable",
    "Scores",
    "Trial",
    "data_randomisation",
    "find_metric",
    "find_protocol",
    "forget_metric",
    "metric",
    "sanity_check",
    "score",
    "score_table",
    "trace",
]


class _Room(ModuleType):
    """A room that can be called: ``suffice.measure`` is the room and its main function at once."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        return score(*args, **options)


sys.modules[__name__].__class__ = _Room
