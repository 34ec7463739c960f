"""Cross-tests to look at: images of which models see just what one of them finds important."""

from __future__ import annotations

from typing import Any

from suffice.report.figures.charts import sentence
from suffice.report.figures.drawing import Drawing
from suffice.report.figures.papers import CVPR, PREPRINT
from suffice.report.figures.reading import origin, tables_of
from suffice.report.figures.registry import figure
from suffice.report.figures.sheets import short_name
from suffice.study import Study


@figure(
    "cross-test-looks",
    "What one model finds important, seen by others",
    needs="cross-test",
    papers=(f"{CVPR}, Figure 7", f"{PREPRINT}, Figures 6 and 9"),
    order=61,
    asks=True,
)
def cross_test_looks(
    study: Study,
    *,
    measurement: str | None = None,
    models: str | None = None,
    count: int = 3,
    share: float = 0.15,
    device: str | None = None,
) -> list[Drawing]:
    """The images about which families disagree the most, through the eyes of a model of each."""
    import pyarrow as pa

    from suffice.compare import disputed_images

    made = []
    wanted = [] if models is None else [one.strip() for one in models.split(",")]
    for name in tables_of(study, "cross-test", measurement):
        found = disputed_images(study, count, models=wanted, measurement=name, share=share, device=device)
        rows: list[dict[str, Any]] = [
            {"image": one.image, "maps_of": one.maps_of, "label": one.label, "model": model,
             "confidence": one.confidences[model], "whole": one.whole[model]}
            for one in found
            for model in found.models
        ]  # fmt: skip
        own = (
            f"{short_name(r['image'])}, {r['label']}: {r['model']} {r['confidence']:.0%} with its own cells"
            for r in rows
            if r["model"] == r["maps_of"]
        )
        made.append(
            Drawing(
                name="cross-test-looks",
                title="What one model finds important, seen by others",
                reading=f"Each picture shows the {found.share:.0%} of an image that the model above it finds most "
                "important; the numbers are every model's confidence in the class, in brackets on the whole image. The "
                "images are those about which families disagree the most, chosen by the cross-test.",
                alt=f"Confidences on partly shown images. {sentence(own, 12)}.",
                svg=found.to_svg(),
                table=pa.Table.from_pylist(rows),
                source=origin(study, [name], f"suffice.compare.disputed_images(study, {count}, share={share})"),
            )
        )
    return made
