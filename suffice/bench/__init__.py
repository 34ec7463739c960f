"""Speed: of everything beside the bare model, and of methods beside the same methods of other packages.

Efficiency is forwards per second inside the work / forwards per second of the bare model, at the same batch, precision,
folding and compile setting. Both are measured in one run, since machines are not the same from one minute to the next.

* :func:`bare_forwards_per_second`, :class:`BareModel`: what there is to reach.
* :func:`benchmark_probe`, :class:`ProbeTiming`: questions about masked images.
* :func:`benchmark_methods`, :class:`MethodTiming`: attribution methods, beside those of
  :mod:`suffice.bench.peers`.
* :func:`benchmark_metrics`, :class:`MetricTiming`: measuring maps.
* :func:`benchmark_evidence`, :class:`EvidenceTiming`: the search, beside one question at a time
  (:mod:`suffice.bench.one_at_a_time`).
"""

from suffice.bench.bare import BareModel, bare_forwards_per_second
from suffice.bench.end_to_end import EvidenceTiming, MetricTiming, benchmark_evidence, benchmark_metrics
from suffice.bench.methods import MethodTiming, benchmark_methods
from suffice.bench.probe import ProbeTiming, benchmark_probe

__all__ = [
    "BareModel",
    "EvidenceTiming",
    "MethodTiming",
    "MetricTiming",
    "ProbeTiming",
    "bare_forwards_per_second",
    "benchmark_evidence",
    "benchmark_methods",
    "benchmark_metrics",
    "benchmark_probe",
]
