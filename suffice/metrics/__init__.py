"""Metrics: whether maps are true to a model, by numbers that say how they were made.

Each metric is one function from a :class:`MapBatch` to an :class:`Outcome`, in the folder ``builtin``; every choice
that it leaves open has a name, and a set of such choices is a protocol. Metrics asked for together share what they ask
of the model.

* :func:`measure`: scores of maps by any metrics; :class:`Scores`, :class:`Outcome`, :class:`Curves`: what it returns.
* :func:`score_table`, :class:`ScoreTable`: methods × models × metrics, with errors and significance; :class:`Entry`: a
  method with options of its own in such a table. ``ScoreTable.of(scores)``: a table of scores that exist.
* :func:`sanity_check`, :func:`data_randomization`: do maps depend on what a model has learned? See
  :mod:`suffice.metrics.sanity`.
* :mod:`suffice.metrics.torchmetrics`: metrics with ``update``, ``compute`` and ``reset``, for training loops.
* :func:`list_metrics`, :func:`find_metric`, :class:`Metric`: what there is, which direction is better, what it needs.
* :func:`list_protocols`, :func:`find_protocol`, :class:`Protocol`: named sets of choices, from the papers and ours.
* :func:`metric`, :class:`MapBatch`: how a metric is declared, and what it gets to work on.
* :class:`CurveChoices`, :func:`trace`: curves of inserting and removing, for metrics built on them.
"""

from suffice.metrics.api import measure
from suffice.metrics.curves import CurveChoices, trace
from suffice.metrics.map_batch import MapBatch
from suffice.metrics.metric import Metric, all_metrics, find_metric, forget_metric, list_metrics, metric
from suffice.metrics.outcome import Curves, Outcome
from suffice.metrics.protocols import Protocol, all_protocols, find_protocol, list_protocols
from suffice.metrics.sanity import SanityReport, data_randomization, sanity_check
from suffice.metrics.score_methods import Entry, score_table
from suffice.metrics.score_table import ScoreTable
from suffice.metrics.scores import Scores

__all__ = [
    "CurveChoices",
    "Curves",
    "Entry",
    "MapBatch",
    "Metric",
    "Outcome",
    "Protocol",
    "SanityReport",
    "ScoreTable",
    "Scores",
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
