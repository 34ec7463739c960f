"""Hiding pixels: grids and regions, baselines, masks, and the probe.

Everything that hides pixels and looks at the confidence goes through :class:`Probe`, the one place where masked images
are scored.

* :class:`Grid`: an image cut into cells, and sets of cells (regions) as bits in int64 words.
* :func:`make_baseline`, :func:`list_baselines`, :func:`register_baseline`, :class:`Scene`: what shows where pixels are
  hidden.
* :class:`RegionMasks`, :class:`FloatMasks`, :class:`RankMasks`, :func:`enlarge`: masks, made batch by batch.
* :class:`Probe`, :class:`Counters`, :class:`Forwarder`: asking the model.
"""

from suffice.perturb.baselines import Scene, list_baselines, make_baseline, register_baseline
from suffice.perturb.forwarder import Forwarder
from suffice.perturb.masks import FloatMasks, Masks, RankMasks, RegionMasks, enlarge
from suffice.perturb.probe import Counters, Probe
from suffice.perturb.regions import Grid

__all__ = [
    "Counters",
    "FloatMasks",
    "Forwarder",
    "Grid",
    "Masks",
    "Probe",
    "RankMasks",
    "RegionMasks",
    "Scene",
    "enlarge",
    "list_baselines",
    "make_baseline",
    "register_baseline",
]
