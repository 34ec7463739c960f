"""Sanity checks: do maps depend on what a model has learned?

A method whose maps stay the same when the weights are random shows the image or the architecture, not the model
(Adebayo et al., Sanity Checks for Saliency Maps, NeurIPS 2018).

* :func:`sanity_check`: randomize a model layer by layer and compare its maps.
* :func:`data_randomization`: compare with a model that was trained on permuted labels.
* :class:`SanityReport`, :class:`SanityRow`, :class:`Verdict`: what they return.
* :class:`Randomizer`, :func:`layers_of`, :class:`Layer`: random weights, layer by layer, in a copy of a module.
* :func:`spearman`, :func:`absolute_spearman`, :func:`ssim`: how similar maps are.
* :func:`curve_figure`, :func:`box_figure`, :func:`strip_figure`: drawings, with matplotlib.
"""

from suffice.metrics.sanity.checks import data_randomization, sanity_check
from suffice.metrics.sanity.figures import box_figure, curve_figure, strip_figure
from suffice.metrics.sanity.randomize import Layer, Randomizer, layers_of
from suffice.metrics.sanity.report import SanityReport, SanityRow, Verdict
from suffice.metrics.sanity.similarity import absolute_spearman, spearman, ssim

__all__ = [
    "Layer",
    "Randomizer",
    "SanityReport",
    "SanityRow",
    "Verdict",
    "absolute_spearman",
    "box_figure",
    "curve_figure",
    "data_randomization",
    "layers_of",
    "sanity_check",
    "spearman",
    "ssim",
    "strip_figure",
]
