"""Measuring: whether maps are true to a model, by metrics that say how they were made.

Each metric is one file in the folder ``metrics``
and one function from a :class:`Trial` to an :class:`Outcome`; every choice that it leaves open has a name, and a set of
such choices is a protocol. Metrics asked for together share what they ask of the model.

* :func:`measure`: scores of maps by any metrics; :class:`Scores`, :class:`Outcome`, :class:`Curves`: what it returns.
* :func:`score_table`, :class:`ScoreTable`: methods × models × metrics, with errors and significance; :class:`Entry`: a
  method with options of its own in such a table.
* :func:`sanity_check`, :func:`data_randomization`: do maps depend on what a model has learned? See
  :mod:`suffice.metrics.sanity`.
* :mod:`suffice.metrics.torchmetrics`: metrics with ``update``, ``compute`` and ``reset``, for training loops.
* :func:`suffice.list_metrics`, :class:`Metric`: what there is, which direction is better, and what it needs.
* :func:`suffice.list_protocols`, :class:`Protocol`: named sets of choices, from the papers and ours.
* :func:`metric`, :class:`Trial`: how a metric is declared, and what it gets to work on.
* :class:`CurveChoices`, :func:`trace`: curves of inserting and removing, for metrics built on them.
"""

from suffice.metrics.call import measure
from suffice.metrics.curves import CurveChoices, trace
from suffice.metrics.metric import Metric, all_metrics, find_metric, forget_metric, list_metrics, metric
from suffice.metrics.outcome import Curves, Outcome
from suffice.metrics.protocols import Protocol, all_protocols, find_protocol, list_protocols
from suffice.metrics.sanity import SanityReport, data_randomization, sanity_check
from suffice.metrics.scores import Scores
from suffice.metrics.table import ScoreTable
from suffice.metrics.tabulate import Entry, score_table
from suffice.metrics.trial import Trial

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
    "all_metrics",
    "all_protocols",
    "data_randomization",
    "find_metric",
    "find_protocol",
    "forget_metric",
    "list_metrics",
    "list_protocols",
    "measure",
    "metric",
    "sanity_check",
    "score_table",
    "trace",
]
