"""Putting inputs through a model, and hiding pixels: the runner, grids and regions, baselines, masks, and the probe.

Everything that asks a model anything goes through :class:`Runner`, and everything that hides pixels and looks at the
scores through :class:`Probe`, the one place where masked images are scored.

* :class:`Runner`, :class:`Counters`: precision, layout, compilation, batch size, and the loop that survives running out
  of memory.
* :class:`Batch`: some images, their model and its runner; what methods and metrics work on.
* :class:`Grid`: an image cut into cells, and sets of cells (regions) as bits in int64 words.
* :func:`make_baseline`, :func:`list_baselines`, :func:`register_baseline`, :class:`BaselineInput`: what shows where
  pixels are hidden.
* :class:`RegionMasks`, :class:`FloatMasks`, :class:`RankMasks`, :func:`enlarge`: masks, made batch by batch.
* :class:`Probe`, :class:`Response`: asking the model about masked images.
* :func:`keep_freed_memory`: what makes a process that works on CPUs faster.
"""

from suffice.host_memory import keep_freed_memory
from suffice.perturb.baselines import BaselineInput, list_baselines, make_baseline, register_baseline
from suffice.perturb.batch import Batch
from suffice.perturb.masks import FloatMasks, Masks, RankMasks, RegionMasks, enlarge
from suffice.perturb.probe import Probe, Response
from suffice.perturb.regions import Grid
from suffice.perturb.runner import Counters, Runner

__all__ = [
    "BaselineInput",
    "Batch",
    "Counters",
    "FloatMasks",
    "Grid",
    "Masks",
    "Probe",
    "RankMasks",
    "RegionMasks",
    "Response",
    "Runner",
    "enlarge",
    "keep_freed_memory",
    "list_baselines",
    "make_baseline",
    "register_baseline",
]
