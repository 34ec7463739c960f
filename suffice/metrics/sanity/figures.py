"""Sanity checks as drawings: how similarity falls, layer by layer, and the maps themselves."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

from suffice.draw import overlay
from suffice.draw.palettes import FAINT, HAIRLINE, INK
from suffice.errors import MissingExtra
from suffice.metrics.curve_figure import COLORS
from suffice.metrics.sanity.report import LIMIT, SanityReport
from suffice.perturb import enlarge

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKERS = "osD^vPX*"  # tell lines apart in gray
TITLES = {
    "spearman": "Spearman's rank correlation",
    "absolute": "Rank correlation of magnitudes",
    "ssim": "Structural similarity (SSIM)",
}
AXIS = {"cascading": "randomized from the output down to …", "independent": "only this layer randomized"}
SHARPNESS = 224  # pixels of a side of a map in the strip


def curve_figure(report: SanityReport) -> Figure:
    """Similarity to the trained model's maps against the layers that are randomized, one line a method.

    Bands are one standard error wide to either side. The dashed line is the limit of the verdicts.
    """
    # Magnitudes have a panel of their own where some method has signs.
    signed = any(not row.values["spearman"].equal(row.values["absolute"]) for row in report.rows)
    panels = ["spearman", *(["absolute"] if signed else []), "ssim"]
    wide = max(3.6, 0.42 * len(report.steps) + 1.0)
    figure = _new_figure(wide * len(panels) + 1.9, 4.4)
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    places = list(range(len(report.steps)))
    lowest = 0.0
    for panel, similarity in zip(axes, panels, strict=True):
        for number, row in enumerate(report.rows):
            mean, error = row.means(similarity), row.standard_errors(similarity).nan_to_num(0.0)
            color, marker = COLORS[number % len(COLORS)], MARKERS[number % len(MARKERS)]
            # A ninth method has the color of the first and another line.
            line = ("-", "--", ":")[number // len(COLORS) % 3]
            panel.fill_between(places, mean - error, mean + error, color=color, alpha=0.18, linewidth=0)
            panel.plot(places, mean, line, color=color, marker=marker, markersize=4.5, linewidth=1.6, label=row.method)
            lowest = min(lowest, float((mean - error).min()))
        panel.set_xticks(places, report.steps, rotation=50, ha="right", rotation_mode="anchor", fontsize=8)
        panel.set_title(TITLES[similarity], fontsize=10.5, color=INK, loc="left")
        panel.set_xlabel(AXIS.get(report.check, ""), fontsize=9, color=FAINT)
        _plain(panel, with_limit=similarity != "ssim")
    axes[0].set_ylim(lowest - 0.06, 1.06)
    axes[0].set_ylabel("similarity to the map of the trained model", fontsize=9, color=FAINT)
    axes[-1].legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0, frameon=False, fontsize=9)
    _title(figure, report)
    return figure


def box_figure(report: SanityReport) -> Figure:
    """The similarity of each image's two maps at the last step, one box a method."""
    figure = _new_figure(max(4.0, 1.1 * len(report.rows) + 1.5), 4.2)
    axes = figure.subplots()
    for number, row in enumerate(report.rows):
        values = row.values["spearman"].mean(dim=0)[-1].numpy()
        color = COLORS[number % len(COLORS)]
        box: Any = axes.boxplot(
            [values], positions=[number], widths=0.5, patch_artist=True, medianprops={"color": INK},
            flierprops={"marker": ".", "markersize": 4, "markeredgecolor": color},
        )  # fmt: skip
        box["boxes"][0].set(facecolor=color, alpha=0.45, edgecolor=color)
    axes.set_xticks(range(len(report.rows)), [row.method for row in report.rows], rotation=30, ha="right", fontsize=9)
    axes.set_ylim(-1.05, 1.05)
    axes.set_ylabel(TITLES["spearman"], fontsize=9, color=FAINT)
    _plain(axes)
    _title(figure, report)
    return figure


def strip_figure(report: SanityReport) -> Figure:
    """The maps of the first image at every step, over the image: one row a method."""
    across, down = len(report.steps), len(report.rows)
    width = 1.25 * (across + 1) + 0.3
    figure = _new_figure(width, 1.4 * down + 0.8)
    figure.set_layout_engine("constrained", w_pad=0.02, h_pad=0.04, wspace=0.0, hspace=0.0)
    grid = figure.subplots(down, across + 1, squeeze=False)
    image = report.pixels.permute(1, 2, 0).clamp(0, 1).numpy()
    for axes, row in zip(grid, report.rows, strict=True):
        axes[0].imshow(image, interpolation="nearest")
        axes[0].set_ylabel(row.method, fontsize=8.5, color=INK)
        drawn = enlarge(row.example.float(), (SHARPNESS, SHARPNESS))
        for place, values, number in zip(axes[1:], drawn, row.values["spearman"][0, :, 0].tolist(), strict=True):
            place.imshow(overlay(values, report.pixels))
            place.set_xlabel(f"{number:.2f}", fontsize=7.5, color=FAINT, labelpad=2)
    for column, name in enumerate(("image", *report.steps)):
        grid[0][column].set_title(name, fontsize=7.5, color=INK)
    for axes in grid.flat:
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set_color(HAIRLINE)
    text = f"{report.model}, {report.check}: maps of one image; below each, its rank correlation with the first"
    # About 13 letters an inch in this size.
    figure.suptitle("\n".join(wrap(text, int(13 * width))), fontsize=9.5, color=INK, x=0.01, ha="left")
    return figure


def _new_figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("Figures need matplotlib: pip install 'suffice[plots]'.") from error
    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def _plain(axes: Any, with_limit: bool = True) -> None:
    """Axes without a frame, with lines at zero and at the limit of the verdicts."""
    axes.axhline(0, color=HAIRLINE, linewidth=1, zorder=0)
    if with_limit:
        axes.axhline(LIMIT, color=FAINT, linewidth=1, linestyle=(0, (4, 3)), zorder=0)
    axes.tick_params(labelsize=8, colors=FAINT, labelcolor=INK, length=3)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(FAINT)


def _title(figure: Figure, report: SanityReport) -> None:
    what = {"data": "permuted labels"}.get(report.check, f"{report.check} randomization ({report.how})")
    draws = f", {report.draws} draws" if report.draws > 1 else ""
    text = f"{report.model}: {what}, {report.images} images{draws}"
    figure.suptitle(text, fontsize=11.5, color=INK, x=0.01, ha="left", fontweight="bold")
