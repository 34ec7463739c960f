"""Figures over tables: functions from a table to a chart, and from a study to a drawing with its numbers and source.

* :func:`figures_of`: all figures that a study has the data for.
* :func:`list_figures`, :func:`find_figure`, :class:`Figure`: what there is, and which figure of which paper it is.
* :class:`Drawing`: a figure, to be shown, saved, and put on a page.
* :func:`figure`: how a figure is declared, here and in other packages.
* :mod:`queries`: SQL that gives the numbers of figures and tables, as DuckDB runs it.
"""

from suffice.report.figures.drawing import Drawing
from suffice.report.figures.registry import FIGURES, Figure, figure, figures_of, find_figure, list_figures

__all__ = ["FIGURES", "Drawing", "Figure", "figure", "figures_of", "find_figure", "list_figures"]
