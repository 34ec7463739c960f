"""Maps in grids: methods × images, models × images, methods × models, and maps of several classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from suffice.attribution import Attribution
from suffice.draw.overlays import levels
from suffice.draw.sheets import Tile
from suffice.errors import OptionError, StudyError
from suffice.report.explain_images import explain_images
from suffice.report.figures.charts import sentence
from suffice.report.figures.choosing import chosen_image, chosen_images, some_models
from suffice.report.figures.drawing import Drawing, named
from suffice.report.figures.papers import EEA, TIS, VIT_CX
from suffice.report.figures.reading import families_of, origin, tables_of
from suffice.report.figures.registry import figure
from suffice.report.figures.sheets import RowOf, grid_sheet, map_tile, photo_tile, short_name
from suffice.study import Study
from suffice.vision import Classifier

ABREAST = 7  # models beside each other, unless they are named
OWN_SCALE = "each map on its own scale"


def measured_maps(study: Study, measurement: str | None = None) -> dict[str, str]:
    """The measurements of a study that make maps, by the label of their method; those of one table, where it is named.

    Where several have the same label (as for several classes), the name of the table, or of the measurement, is added.
    """
    plan = study.plan
    names = [one for table in tables_of(study, "attribution", measurement) for one in plan.asked.named(table)]
    labels = [plan.measurements[name].facts["method"] for name in names]
    longer = [f"{label} ({name.partition('/')[0]})" for name, label in zip(names, labels, strict=True)]
    found = {}
    for name, label, long in zip(names, labels, longer, strict=True):
        short = label if labels.count(label) == 1 else long if longer.count(long) == 1 else f"{label} ({name})"
        found[short] = name
    return found


def map_of(study: Study, measurement: str, model: str, index: int) -> Attribution | None:
    """The map of one image; None where there is none."""
    from suffice.study import map_files
    from suffice.study.reading import finished_shards

    assert study.store is not None
    plan, store = study.plan, study.store
    for shard in finished_shards(plan, store, measurement, model):
        if index in plan.rows(shard) and store.exists(shard.maps):
            found = map_files.from_bytes(store.read(shard.maps))
            own, skipped = index - plan.rows(shard).start, {skip.index for skip in found.skipped}
            return None if own in skipped else found[own - sum(skip < own for skip in skipped)]
    return None


@figure(
    "maps",
    "Maps of many methods",
    needs="attribution",
    papers=(f"{VIT_CX}, Figure 1", f"{TIS}, Figures 2 and 3", f"{EEA}, Figures 1 and 11–16"),
    order=62,
)
def maps(
    study: Study,
    *,
    model: str | None = None,
    measurement: str | None = None,
    images: str | int | None = None,
    count: int = 6,
) -> list[Drawing]:
    """One row an image, one column a method, for a model; default: the first of those with the most methods."""
    of_all = measured_maps(study, measurement)
    label = _model(study, of_all) if model is None else _named(model, list(families_of(study)))[0]
    of_methods = _with_maps(study, of_all, label)
    chosen = chosen_images(study, images, count)
    rows, signed, said = [], False, []
    for index in chosen:
        found = {method: map_of(study, name, label, index) for method, name in of_methods.items()}
        some = next((one for one in found.values() if one is not None), None)
        if some is None:
            continue
        tiles = [_photo(some), *(_tile(one) for one in found.values())]
        signed = signed or any(one is not None and bool((levels(one.maps[0]) < 0).any()) for one in found.values())
        said.append(f"{short_name(study.plan.names[index])} ({_class(some)})")
        rows.append(RowOf(short_name(study.plan.names[index]), tiles, _class(some)))
    if not rows:
        raise StudyError(f"There are no maps of {label} yet.")
    name = named(f"maps-{label}")
    return [
        Drawing(
            name=name,
            title=f"Maps of {len(of_methods)} methods: {label}",
            reading="Bright is important for the class that is named; a map with two sides has blue for what speaks "
            "against it. Each map has its own scale, so that brightness cannot be compared between methods.",
            alt=f"Maps of {len(rows)} images by {', '.join(of_methods)} for {label}: {sentence(said, 12)}.",
            svg=grid_sheet(["image", *of_methods], rows, title=f"Maps: {label}", colors=OWN_SCALE, signed=signed),
            source=origin(study, [], f"study.maps(measurement, {label!r}) of {', '.join(of_methods.values())}"),
        )
    ]


@figure(
    "maps-of-models",
    "Maps of many models",
    needs="attribution",
    papers=(f"{EEA}, Figure 9",),
    order=63,
)
def maps_of_models(
    study: Study,
    *,
    method: str | None = None,
    measurement: str | None = None,
    images: str | int | None = None,
    models: str | None = None,
) -> list[Drawing]:
    """One row an image, one column a model, for a method; default: the one that the most models have."""
    of_methods = measured_maps(study, measurement)
    families = families_of(study)
    if len(families) < 2:
        raise OptionError("Maps of many models need two models or more.")
    plan = study.plan

    def having(name: str) -> list[str]:
        return [one.label for one in plan.models if plan.measured(name, one)]

    label = method or max(of_methods, key=lambda one: len(having(of_methods[one])))
    if label not in of_methods:
        raise OptionError(f"The study has no maps by {label!r}; there are {', '.join(of_methods)}.")
    there = having(of_methods[label])
    shown = some_models({one: families[one] for one in there}, ABREAST) if models is None else _named(models, there)
    rows = []
    for index in chosen_images(study, images, 6):
        found = [map_of(study, of_methods[label], model, index) for model in shown]
        some = next((one for one in found if one is not None), None)
        if some is not None:
            tiles = [_photo(some), *(_tile(one, _class(one)) for one in found)]
            rows.append(RowOf(short_name(plan.names[index]), tiles))
    if not rows:
        raise StudyError(f"There are no maps by {label} yet.")
    return [
        Drawing(
            name=named(f"maps-of-models-{label}"),
            title=f"Maps of {len(shown)} models by {label}",
            reading="Below each map is the class that is explained. Each map has its own scale."
            + (f" {len(there) - len(shown)} more models have such maps and are not shown." * (shown != there)),
            alt=f"Maps of {len(rows)} images by {label} for {', '.join(shown)}.",
            svg=grid_sheet(["image", *shown], rows, title=f"Maps by {label}", families=families, colors=OWN_SCALE),
            source=origin(study, [], f"study.maps({of_methods[label]!r}, model)"),
        )
    ]


@figure(
    "mixed-maps",
    "One image: methods × models",
    needs="attribution",
    papers=(f"{EEA}, Figure 9",),
    order=64,
)
def mixed_maps(
    study: Study, *, image: str | int = 0, measurement: str | None = None, models: str | None = None
) -> list[Drawing]:
    """One row a model, one column a method, for an image."""
    of_methods = measured_maps(study, measurement)
    families = families_of(study)
    index = chosen_image(study, image)
    wanted = _explained(study, of_methods) if models is None else _named(models, list(families))
    rows, photo = [], None
    for model in wanted:
        found = [map_of(study, name, model, index) for name in of_methods.values()]
        some = next((one for one in found if one is not None), None)
        if some is not None:
            photo = _photo(some)
            rows.append(RowOf(model, [photo, *(_tile(one) for one in found)], _class(some), families.get(model)))
    if not rows:
        raise StudyError(f"There are no maps of image {index} yet.")
    title = short_name(study.plan.names[index])
    return [
        Drawing(
            name=f"mixed-maps-{index}",
            title=f"Methods × models: {title}",
            reading="One row a model, with the class it explains; one column a method. Each map has its own scale.",
            alt=f"Maps of {title} by {', '.join(of_methods)} for {len(rows)} models.",
            svg=grid_sheet(["image", *of_methods], rows, title=f"Maps of {title}", colors=OWN_SCALE),
            source=origin(study, [], f"study.maps(measurement, model), image {index}"),
        )
    ]


@figure(
    "classes",
    "Maps of several classes of one image",
    needs="model",
    papers=(f"{TIS}, Figure 1", f"{EEA}, Figure 10"),
    order=65,
)
def classes(
    nets: Sequence[Classifier], images: Any, *, method: str = "grad-cam", targets: str = "@1,@2", top: int = 3
) -> list[Drawing]:
    """The target against the runner-up, or any other classes, by one method or several; a drawing for each image."""
    made = []
    wanted = [part.strip() for part in targets.split(",")]
    methods = [part.strip() for part in method.split(",")]
    for net in nets:
        found = explain_images(net, images, methods, wanted)
        for number, picture in enumerate(found.images):
            rows = [row for row in found.rows() if row["index"] == number]
            said = dict.fromkeys(f"{row['label']} {row['confidence']:.1%}" for row in rows)
            made.append(
                Drawing(
                    name=named(f"classes-{net.name}-{number}"),
                    title=f"What speaks for each class: {short_name(picture.name)}, {net.name}",
                    reading="One row a class. A method whose rows are the same explains the image, not the class.",
                    alt=f"Maps of {short_name(picture.name)} by {', '.join(found.methods)} for {sentence(said)}.",
                    svg=found.figure(number, top),
                    source=f"suffice.report.explain_images({net.name!r}, …, {methods}, {wanted})",
                )
            )
    return made


def _named(models: str, there: Sequence[str]) -> list[str]:
    wanted = [one.strip() for one in models.split(",") if one.strip()]
    for one in wanted:
        if one not in there:
            raise OptionError(f"There are no maps of a model {one!r}; there are {', '.join(there)}.")
    return wanted


def _model(study: Study, of_methods: dict[str, str]) -> str:
    """The first of the models that the most methods made maps of."""
    plan = study.plan
    return max(plan.models, key=lambda one: sum(plan.measured(name, one) for name in of_methods.values())).label


def _explained(study: Study, of_methods: dict[str, str]) -> list[str]:
    """Some of the models with at least half as many methods as the one with the most."""
    plan = study.plan
    counts = {one.label: sum(plan.measured(name, one) for name in of_methods.values()) for one in plan.models}
    enough = {model: of for model, of in families_of(study).items() if 2 * counts[model] >= max(counts.values())}
    return some_models(enough, ABREAST)


def _with_maps(study: Study, of_methods: dict[str, str], model: str) -> dict[str, str]:
    plan = study.plan
    found = {label: name for label, name in of_methods.items() if plan.measured(name, plan.model(model))}
    if not found:
        raise StudyError(f"There are no maps of {model}.")
    return found


def _photo(found: Attribution) -> Tile:
    return Tile(None, note="not kept") if found.pictures is None else photo_tile(found.pictures[0])


def _tile(found: Attribution | None, line: str = "") -> Tile:
    if found is None:
        return Tile(None, note="no map")
    return map_tile(found.maps[0], None if found.pictures is None else found.pictures[0], line)


def _class(found: Attribution | None) -> str:
    return "" if found is None else (found.labels[0] if found.labels else f"class {int(found.targets[0])}")
