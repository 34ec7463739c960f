"""Results as pictures and pages.

* :func:`explanation_figure`: one image, one row a class, one overlay a method, as a standalone SVG.
"""

from suffice.report.explanation import ClassRow, explanation_figure

__all__ = ["ClassRow", "explanation_figure"]
