"""Curves of inserting and removing what a map finds important, and what the model is shown on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from suffice.attribution import Attribution, attribute
from suffice.draw.theme import Looks
from suffice.errors import OptionError, StudyError
from suffice.metrics import Curves, measure
from suffice.perturb import Probe, make_baseline
from suffice.report.figures.charts import Marked, altair, data_of, sentence, specification
from suffice.report.figures.drawing import Drawing, named
from suffice.report.figures.papers import CVPR, PREPRINT
from suffice.report.figures.reading import families_of, origin, tables_of
from suffice.report.figures.registry import figure
from suffice.report.figures.sheets import RowOf, grid_sheet, map_tile, photo_tile, short_name
from suffice.study import Study
from suffice.study.kinds.metrics import Metrics
from suffice.vision import Classifier, Images, open_images

if TYPE_CHECKING:
    import pyarrow

SHARES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75)
CURVES = ("insertion", "deletion")


def curve_table(curves: dict[str, Curves]) -> pyarrow.Table:
    """Mean curves over images: ``method``, ``share``, ``mean``, ``low``, ``high`` (one standard error), ``images``."""
    import pyarrow as pa

    rows = []
    for name, one in curves.items():
        errors = one.standard_error.nan_to_num(0.0).tolist()
        for share, mean, error in zip(one.x.tolist(), one.mean.tolist(), errors, strict=True):
            same = {"method": name, "share": share, "images": len(one.y)}
            rows.append({**same, "mean": mean, "low": mean - error, "high": mean + error})
    return pa.Table.from_pylist(rows)


def curve_chart(table: pyarrow.Table, across: str, up: str, looks: Looks | None = None) -> dict[str, Any]:
    """A line with a band of one standard error for each method, or whatever the column ``method`` names."""
    alt = altair()
    marked = Marked("method", looks or Looks.of_series(table["method"].to_pylist()))
    x = alt.X("share:Q", axis=alt.Axis(title=across, format=".0%", grid=False), scale=alt.Scale(domain=[0, 1]))
    y = alt.Y("mean:Q", axis=alt.Axis(title=up, format="~g"))
    base = alt.Chart(data_of(table)).encode(x=x, color=marked.color(lines=True))
    tips = ["method:N", *(alt.Tooltip(f"{n}:Q", format=".3~f") for n in ("share", "mean", "low", "high")), "images:Q"]
    band = base.mark_area().encode(y="low:Q", y2="high:Q", opacity=marked.opacity(0.16))
    line = base.mark_line().encode(y=y, strokeDash=marked.dash(), opacity=marked.opacity(), tooltip=tips)
    return specification(alt.layer(band, line).add_params(marked.chosen), height=300)


@figure(
    "curves",
    "Insertion and deletion curves",
    needs=("attribution", "metrics"),
    papers=(f"{PREPRINT}, Figure 2",),
    order=51,
    asks=True,
)
def curves(
    study: Study,
    *,
    model: str | None = None,
    measurement: str | None = None,
    count: int = 16,
    device: str | None = None,
) -> list[Drawing]:
    """Mean curves of all methods of a model, measured once more on the first images: studies keep areas only."""
    plan = study.plan
    label = model or next(iter(families_of(study)))
    if label not in families_of(study):
        raise OptionError(f"The study has no model {label!r}; there are {', '.join(families_of(study))}.")
    planned = plan.model(label)
    net = planned.load(plan.asked.base, device)
    made = []
    for table in tables_of(study, "metrics", measurement):
        found: dict[str, dict[str, Curves]] = {}
        protocol = ""
        for name in plan.asked.named(table):
            one = plan.measurements[name]
            assert isinstance(one, Metrics)
            wanted = [metric for metric in one.measured if metric in CURVES]
            if not wanted or not plan.measured(name, planned):
                continue
            maps, images = _first(study, one.maps, label, count)
            scores = measure(
                net, images, maps, wanted, one.protocol, target_class=one.target_class, seed=plan.asked.run.seed,
                **dict(one.options),
            )  # fmt: skip
            protocol = one.protocol
            for metric in wanted:
                drawn = scores[metric].curves
                if drawn is not None:
                    found.setdefault(metric, {})[one.label] = drawn
        for metric, of_methods in found.items():
            made.append(_curves_drawing(study, table, label, metric, protocol, of_methods))
    if not made:
        raise StudyError(f"The study has no insertion or deletion scores of {label}.")
    return made


def _curves_drawing(
    study: Study, table: str, label: str, metric: str, protocol: str, of_methods: dict[str, Curves]
) -> Drawing:
    rows = curve_table(of_methods)
    areas = {name: float(one.areas(one.y).double().nanmean()) for name, one in of_methods.items()}
    words = sentence((f"{name} {area:.3f}" for name, area in areas.items()), 20)
    better = "rises" if metric == "insertion" else "falls"
    done = "inserted" if metric == "insertion" else "removed"
    images = len(next(iter(of_methods.values())).y)
    return Drawing(
        name=named(f"curves-{metric}-{label}"),
        title=f"{metric.capitalize()} curves of {label}",
        reading=f"What each map finds most important is {done} first; the earlier the curve {better}, the truer the "
        "map. Bands are one standard error.",
        alt=f"{metric.capitalize()}, mean area under the curve over {images} images: {words}.",
        spec=curve_chart(rows, f"share {done}", "confidence in the class"),
        table=rows,
        source=origin(study, [table], f"Measured once more on {images} images: suffice.measure, protocol {protocol}."),
    )


@figure(
    "insertion-steps",
    "What a model is shown while pixels are inserted and removed",
    needs="model",
    papers=(f"{CVPR}, Figure 3", f"{PREPRINT}, Figure 2"),
    order=66,
    images=1,
    maker=True,
)
def insertion_steps(
    nets: Sequence[Classifier], images: Any, *, method: str = "grad-cam", baseline: str = "blur"
) -> list[Drawing]:
    """Maps of the first model: an image partly shown by them, with the confidence of every model below."""
    import pyarrow as pa

    opened = open_images(images)[:1]
    maker = nets[0]
    maps = attribute(maker, opened, method)
    label = maps.labels[0] if maps.labels else f"class {int(maps.targets[0])}"
    order = maps.resized(maker.size)[0].flatten().argsort(descending=True)
    rank = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device)).view(maker.size)
    inserted = torch.stack([(rank < share * len(order)).float() for share in SHARES])
    pixels = maker.prepare(opened)
    behind = make_baseline(baseline, pixels)[0]
    rows, numbers = [], []
    for what, masks in (("inserted", inserted), ("removed", 1 - inserted)):
        shown = [(m * pixels[0] + (1 - m) * behind).clamp(0, 1) for m in masks.to(pixels.device)]
        answers = {}
        for net in nets:
            probe = Probe(net, opened, targets=[net.class_index(label)], baseline=baseline)
            answers[net.name] = probe.ask(0, torch.nn.functional.interpolate(masks[:, None], net.size)[:, 0]).tolist()
            numbers += [
                {"model": net.name, "what": what, "share": share, "confidence": value}
                for share, value in zip(SHARES, answers[net.name], strict=True)
            ]
        first = photo_tile(pixels[0]) if what == "inserted" else map_tile(maps.maps[0], pixels[0], method)
        tiles = [first, *(photo_tile(p, f"{v:.0%}") for p, v in zip(shown, answers[maker.name], strict=True))]
        rows.append(RowOf(what, tiles, "first what matters most"))
    table = pa.Table.from_pylist(numbers)
    looks = Looks.of_models({net.name: net.family or "" for net in nets})
    name = short_name(opened[0].name)
    own_numbers = [row for row in numbers if row["model"] == maker.name]
    columns = ["image and map", *(f"{share:.0%}" for share in SHARES)]
    sheet = Drawing(
        name="insertion-steps",
        title=f"What {maker.name} is shown: {name}, maps by {method}",
        reading=f"So much of the image is inserted into the {baseline} baseline, or removed to it, most important "
        f"first; below is the confidence of {maker.name} in {label}.",
        alt=f"Confidence of {maker.name} in {label}: "
        + sentence((f"{r['what']} {r['share']:.0%}: {r['confidence']:.0%}" for r in own_numbers), 12)
        + ".",
        svg=grid_sheet(columns, rows, title=f"Insertion and deletion of {name}"),
        table=table,
        source=f"suffice.attribute({maker.name!r}, …, {method!r}); suffice.Probe(…, baseline={baseline!r}).ask",
    )
    charts = []
    for what in ("inserted", "removed"):
        own = [
            {"method": r["model"], "share": r["share"], "mean": r["confidence"], "low": r["confidence"],
             "high": r["confidence"], "images": 1}
            for r in numbers
            if r["what"] == what
        ]  # fmt: skip
        tables = pa.Table.from_pylist(own)
        last = (f"{r['method']} {r['mean']:.0%}" for r in own if r["share"] == 0.2)
        charts.append(
            Drawing(
                name=f"insertion-steps-{what}",
                title=f"{name}, {what} by the map of {maker.name}: what every model says",
                reading=f"Confidence in {label} of each model on the same partly shown images.",
                alt=f"Confidence in {label} with 20 % {what}: {sentence(last, 20)}.",
                spec=curve_chart(tables, f"share {what}", f"confidence in {label}", looks),
                table=tables,
                source=sheet.source,
            )
        )
    return [sheet, *charts]


def _first(study: Study, measurement: str, model: str, count: int) -> tuple[Attribution, Images]:
    """Maps of the first images that have one, and these images."""
    maps = study.maps(measurement, model)
    skipped = {skip.index for skip in maps.skipped}
    index = [i for i in range(len(study.plan.names)) if i not in skipped][: min(count, len(maps))]
    return maps[: len(index)], study.plan.images[index]
