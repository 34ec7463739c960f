"""Structured attention graphs of one image, of many models side by side."""

from __future__ import annotations

from typing import Literal

from suffice.errors import StudyError
from suffice.evidence.result import Evidence
from suffice.report.figures import queries
from suffice.report.figures.charts import sentence
from suffice.report.figures.choosing import chosen_image, some_models
from suffice.report.figures.drawing import Drawing
from suffice.report.figures.papers import CVPR, PREPRINT
from suffice.report.figures.reading import families_of, good_rows, origin, tables_of
from suffice.report.figures.registry import figure
from suffice.report.figures.sheets import short_name, side_by_side
from suffice.study import Study
from suffice.study.plan import Plan
from suffice.study.reading import finished_shards, read_shard
from suffice.study.store import Store

MOST = 6  # models that are drawn unless more are asked for


@figure(
    "attention-graphs",
    "What each model needs to see in one image",
    needs="evidence",
    papers=(f"{CVPR}, Figures 2 and 4", f"{PREPRINT}, Figures 4 and 11–37"),
    order=60,
)
def attention_graphs(
    study: Study,
    *,
    measurement: str | None = None,
    image: str | int | None = None,
    models: str | None = None,
    layout: Literal["column", "page", "slide"] = "column",
) -> list[Drawing]:
    """The structured attention graph of an image for each model; default: the image where models differ most."""
    made = []
    for name in tables_of(study, "evidence", measurement):
        index = most_different(study, name) if image is None else chosen_image(study, image)
        families = families_of(study)
        wanted = list(families) if models is None else [one.strip() for one in models.split(",")]
        if unknown := [model for model in wanted if model not in families]:
            raise StudyError(f"The study has no model {unknown[0]!r}; there are {', '.join(families)}.")
        found = {model: evidence_of(study.plan, _store(study), name, model, index) for model in wanted}
        there = {model: one for model, one in found.items() if one is not None}
        few = some_models({model: families[model] for model in there}, MOST) if models is None else list(there)
        shown = {model: there[model] for model in few}
        if not shown:
            raise StudyError(f"No model has evidence in image {index} yet.")
        title = short_name(study.plan.names[index])
        words = (
            f"{model} says {one.label} ({one.confidence:.0%}) and has {len(one.mses)} MSEs"
            f"{f', the smallest of {min(map(len, one.mses))} cells' if one.mses else ''}"
            for model, one in shown.items()
        )
        drawings = [(model, families[model], one.graph().to_svg(layout=layout)) for model, one in shown.items()]
        rest = len(there) - len(shown)
        more = f" {rest} more models have evidence in it and are not shown." if rest else ""
        made.append(
            Drawing(
                name=f"attention-graphs-{index}",
                title=f"What each model needs to see in {title}",
                reading="Framed pictures are minimal sufficient explanations (MSEs): the cells shown are enough, and "
                f"none can go. Each step down takes a cell away; the number is the confidence that is left.{more}",
                alt=f"Structured attention graphs of {title}: {sentence(words, 20)}.",
                svg=side_by_side(drawings, title=f"Structured attention graphs of {title}", columns=_columns(layout)),
                source=origin(study, [name]),
                query=queries.select(
                    study,
                    name,
                    "model, label, confidence, mses, smallest, mse_cells, mse_ratios",
                    "ORDER BY model",
                    f'"index" = {index}',
                ),
            )
        )
    return made


def evidence_of(plan: Plan, store: Store, measurement: str, model: str, index: int) -> Evidence | None:
    """The evidence of a model in one image; None where there is none. Just the shard that it is in is read."""
    import json

    from suffice.evidence.files.storage import read_settings
    from suffice.evidence.files.table import evidence_of_table

    for shard in finished_shards(plan, store, measurement, model):
        if index in plan.rows(shard):
            rows = read_shard(store, shard)
            about = json.loads(rows.schema.metadata[b"suffice"])
            own = [place for place, i in enumerate(rows["index"].to_pylist()) if i == index]
            some = rows.take(own)
            if not own or "mses" not in some.column_names or some["error"][0].as_py() is not None:
                return None
            return evidence_of_table(some, read_settings(about))[0]
    return None


def most_different(study: Study, measurement: str) -> int:
    """The image in which models differ most in the number of their MSEs, of those in which the most have some."""
    rows = good_rows(study, measurement, ("index", "mses"))
    of_image: dict[int, list[int]] = {}
    for index, count in zip(rows["index"].to_pylist(), rows["mses"].to_pylist(), strict=True):
        of_image.setdefault(index, []).append(count)

    def telling(index: int) -> tuple[int, int, int]:
        counts = of_image[index]
        return sum(count > 0 for count in counts), max(counts) - min(counts), -index

    return max(of_image, key=telling)


def _columns(layout: str) -> int:
    return {"column": 3, "page": 1, "slide": 1}[layout]


def _store(study: Study) -> Store:
    assert study.store is not None
    return study.store
