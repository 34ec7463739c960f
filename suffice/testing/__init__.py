"""The testing room: how correctness is shown, also for methods and metrics written outside this package.

Oracles are classifiers whose decision is a known formula; the truth about them is listed by brute force; the
conformance checks are the promises that every attribution method and metric keeps.

Public names:
    * oracles: :class:`Oracle`, :class:`AnyOf`, :class:`AtLeast`, :class:`WeightedSum`, :class:`ExactlyOdd`,
      :class:`Unless`, :class:`Formula`, :func:`random_formula`
    * truth: :func:`ratios`, :func:`sufficient_sets`, :func:`minimal_sufficient_sets`
    * conformance: :func:`check_all`, :data:`CHECKS`
"""

from __future__ import annotations

from suffice.testing.conformance import CHECKS, check_all
from suffice.testing.oracle import Oracle
from suffice.testing.oracles import AnyOf, AtLeast, ExactlyOdd, Formula, Unless, WeightedSum, random_formula
from suffice.testing.truth import minimal_sufficient_sets, ratios, sufficient_sets

__all__ = [
    "CHECKS",
    "AnyOf",
    "AtLeast",
    "ExactlyOdd",
    "Formula",
    "Oracle",
    "Unless",
    "WeightedSum",
    "check_all",
    "minimal_sufficient_sets",
    "random_formula",
    "ratios",
    "sufficient_sets",
]
