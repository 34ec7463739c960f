"""Images explained by several methods, as a study: predictions, maps and scores are measurements of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from suffice.attribution import Method
from suffice.errors import OptionError
from suffice.metrics import Scores
from suffice.metrics.outcome import Outcome
from suffice.report.explain_images import MEASURED, Explanations, settings_of
from suffice.study.plan import Plan
from suffice.study.reading import finished_shards, read_about, read_maps_of, read_shard, read_skipped
from suffice.study.store import Store
from suffice.vision import Classifier, Images, Predictions

LIKELIEST = 10  # classes of each image that are kept, or more where more are to be shown


def explaining(
    methods: Sequence[Method],
    targets: Sequence[str],
    options: Mapping[str, Mapping[str, Any]],
    score: bool,
    top: int,
) -> dict[str, dict[str, Any]]:
    """The measurements of a study that makes what :func:`suffice.report.explain_images` makes.

    Example:
        >>> from suffice.attribution import find_method
        >>> made = explaining([find_method("rise")], ["tabby", "@2"], {}, score=False, top=3)
        >>> [(one["label"], one["target"]) for one in made["maps"]["methods"]]
        [('rise-tabby', 'tabby'), ('rise-top2', '@2')]
    """
    made = [
        {"name": method.name, "label": _label(method, target), **_class(target), **options.get(method.name, {})}
        for target in targets or [""]
        for method in methods
    ]
    measure: dict[str, dict[str, Any]] = {
        "predictions": {"kind": "predictions", "top": max(LIKELIEST, top)},
        "maps": {"kind": "attribution", "methods": made},
    }
    if score:
        measure["scores"] = {"kind": "metrics", "maps": "maps", "metrics": list(MEASURED)}
    return measure


def check_targets(net: Classifier, images: Images, targets: Sequence[str]) -> None:
    """Raise an error where images cannot be explained by these targets."""
    for target in targets:
        if target == "@label":
            if lacking := images.labels.count(None):
                raise OptionError(f"Target @label: {lacking} of {len(images)} images have no label.")
        elif not target.startswith("@"):
            net.class_index(target)
        elif not re.fullmatch("@[1-9][0-9]*", target) or int(target[1:]) > len(net.labels or ()) > 0:
            raise OptionError(f"Target {target}: expected @label, or @1 to @{len(net.labels or ()) or 'n'}.")


def explanations_of(
    plan: Plan,
    store: Store,
    net: Classifier,
    images: Images,
    model: str,
    methods: Sequence[Method],
    targets: Sequence[str],
    options: Mapping[str, Mapping[str, Any]],
) -> Explanations:
    """What a study of :func:`explaining` found.

    Args:
        plan: Of the study.
        store: Where it lies.
        net: The model, for its preprocessing.
        images: All images of the study.
        model: Its label.
        methods: The methods.
        targets: As asked for.
        options: Of methods, by name.
    """
    skipped = read_skipped(plan, store, "predictions", model)
    broken = {skip.index for skip in skipped}
    readable = [index for index in range(len(images)) if index not in broken]
    maps = {
        target: {method.name: read_maps_of(plan, store, f"maps/{_label(method, target)}", model) for method in methods}
        for target in targets or [""]
    }
    scored = "scores" in plan.asked.tables
    scores = {
        target: {method.name: _scores(plan, store, f"scores/{_label(method, target)}", model) for method in methods}
        for target in (targets or [""] if scored else [])
    }
    settings = settings_of(methods, options, targets, scored, plan.asked.run.seed)
    about = {**read_about(plan, store, "predictions", model), "settings": settings}
    said = _predictions(plan, store, net, model)
    return Explanations(net, images[readable], said, maps, scores, skipped, about=about)


def _label(method: Method, target: str) -> str:
    """What the study calls the maps of a method for a target."""
    asked = re.sub(r"[^\w.+-]+", "-", re.sub(r"^@(?=\d)", "top", target)).strip("-")
    return f"{method.name}-{asked}" if asked else method.name


def _class(target: str) -> dict[str, str]:
    """The class that a target means, as options of a measurement."""
    if target in ("", "@1"):
        return {}
    return {"target_class": "label"} if target == "@label" else {"target": target}


def _predictions(plan: Plan, store: Store, net: Classifier, model: str) -> Predictions:
    rows = _rows(plan, store, "predictions", model)
    count = len(net.labels) if net.labels else 1 + max(max(row["classes"]) for row in rows)
    scores = torch.full((len(rows), count), -torch.inf)
    for row, own in zip(rows, scores, strict=True):
        own[row["classes"]] = torch.tensor(row["confidences"])
    index = torch.tensor([row["index"] for row in rows])
    return Predictions(scores, index, [row["image"] for row in rows], net.labels)


def _scores(plan: Plan, store: Store, measurement: str, model: str) -> Scores:
    rows = _rows(plan, store, measurement, model)
    outcomes = {metric: Outcome(torch.tensor([row[metric] for row in rows])) for metric in MEASURED}
    about = read_about(plan, store, measurement, model)
    return Scores(outcomes, about["settings"]["metrics"], about=about)


def _rows(plan: Plan, store: Store, measurement: str, model: str) -> list[dict[str, Any]]:
    """The rows of a measurement that have no error, in order of the images."""
    shards = finished_shards(plan, store, measurement, model)
    return [row for shard in shards for row in read_shard(store, shard).to_pylist() if row["error"] is None]
