"""Sanity checks: do maps depend on what a model has learnt?

A method whose maps stay the same when the weights are random shows the image or the architecture, not the model
(Adebayo et al., Sanity Checks for Saliency Maps, NeurIPS 2018).

* :func:`sanity_check`: randomise a model layer by layer and compare its maps.
* :func:`data_randomisation`: compare with a model that was trained on permuted labels.
* :class:`SanityReport`, :class:`SanityRow`, :class:`Verdict`: what they return.
* :class:`Randomiser`, :func:`layers_of`, :class:`Layer`: random weights, layer by layer, in a copy of a module.
* :func:`spearman`, :func:`absolute_spearman`, :func:`ssim`: how similar maps are.
* :func:`curve_figure`, :func:`box_figure`, :func:`strip_figure`: drawings, with matplotlib.
"""

from suffice.measure.sanity.checks import data_randomisation, sanity_check
from suffice.measure.sanity.figures import box_figure, curve_figure, strip_figure
from suffice.measure.sanity.layers import Layer, layers_of
from suffice.measure.sanity.randomise import Randomiser
from suffice.measure.sanity.report import SanityReport, SanityRow, Verdict
from suffice.measure.sanity.similarity import absolute_spearman, spearman, ssim

__all__ = [
    "Layer",
    "Randomiser",
    "SanityReport",
    "SanityRow",
    "Verdict",
    "absolute_spearman",
    "box_figure",
    "curve_figure",
    "data_randomisation",
    "layers_of",
    "sanity_check",
    "spearman",
    "ssim",
    "strip_figure",
]
