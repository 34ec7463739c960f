"""Results as pictures and pages.

* :func:`make_report`, :class:`Report`: a study as one HTML file; see :mod:`suffice.report.page`.
* :func:`explanation_figure`: one image, one row a class, one overlay a method, as a standalone SVG.
* :func:`explain_images`, :class:`Explanations`: images explained by several methods, measured and drawn.
* :func:`draw_evidence`: the structured attention graph of an image and its explanations, as files.
"""

from suffice.report.explain_images import Explanations, explain_images
from suffice.report.explanation import ClassRow, draw_evidence, explanation_figure
from suffice.report.page import Report, make_report

__all__ = [
    "ClassRow",
    "Explanations",
    "Report",
    "draw_evidence",
    "explain_images",
    "explanation_figure",
    "make_report",
]
