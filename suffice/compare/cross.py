"""Cross-testing: is what one model finds important enough for another?

Maps of every model are scored on every model, by insertion and deletion: a model whose maps raise another's confidence
early looks at what the other looks at (Jiang, Khorram, Li, CVPR 2024, section 3.4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch

from suffice.attribution import Attribution, attribute, find_method
from suffice.attribution.api import check_fit
from suffice.compare.cross_result import CrossTest
from suffice.compare.pairwise import Numbers
from suffice.errors import OptionError
from suffice.metrics import Scores, find_metric, find_protocol
from suffice.metrics.choices import choices_of, questions_together
from suffice.metrics.curves import CurveChoices
from suffice.metrics.map_batch import checked
from suffice.metrics.together import Maps, measure_together
from suffice.options import Count, check_options
from suffice.perturb.runner import AnyPrecision, Runner
from suffice.progress import plan, reports
from suffice.vision import Classifier, Images, Model, as_classifier, open_images
from suffice.vision.classifier import Targets
from suffice.vision.provenance import provenance

ClassOf = Literal["generating", "evaluated", "label"]


@reports("Cross-testing")
def cross_test(
    nets: Sequence[Model],
    images: Any,
    method: str = "igos++",
    metric: str | Sequence[str] = ("insertion", "deletion"),
    protocol: str = "jiang",
    *,
    target_class: ClassOf = "generating",
    maps: Sequence[Attribution] | None = None,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    batch_size: Count | Literal["auto"] = "auto",
    precision: AnyPrecision = "fp32",
    compile: bool = False,
    progress: bool = False,
    **choices: Any,
) -> CrossTest:
    """Score the maps of every model on every model.

    Each model sees images as it was made to, so models whose preprocessing crops differently see slightly different
    parts of a photograph; maps are laid over what each of them sees.

    Args:
        nets: Two or more classifiers, or modules of timm.
        images: Anything that :func:`suffice.open_images` takes.
        method: By which maps are made.
        metric: One metric with curves, or several.
        protocol: Every choice that is not made here; the papers' is ``"jiang"``.
        target_class: The class asked about: the one that the map explains (``"generating"``; the one that its model
            predicts, unless ``maps`` say otherwise), the one that the ``"evaluated"`` model predicts, or the
            ``"label"`` of the image.
        maps: Maps of each model that were made before, of the same images; ``method`` is not used then.
        options: Of the method.
        seed: Seed of everything random.
        batch_size: Inputs per forward.
        precision: Of the models.
        compile: Compile them.
        progress: Show how many questions were put to the models, how fast, and the time left.
        **choices: Of the metrics, such as ``baseline="black"``.

    Returns:
        Raw scores of each image, normalized matrices, the landscape, and the matrix of families.

    Example:
        >>> from suffice.testing import AnyOf
        >>> oracles = [AnyOf([(7, 8)], grid=3), AnyOf([(8,)], grid=3), AnyOf([(4,)], grid=3)]
        >>> nets = [oracle.classifier(24) for oracle in oracles]
        >>> for net, net.name in zip(nets, "abc"):
        ...     pass
        >>> found = cross_test(nets, oracles[0].image(24), "occlusion", "insertion", options={"window": 8, "stride": 8},
        ...                    baseline="black", units=3, masks="nearest", steps=9)
        >>> found.scores().round(1).tolist()  # two cells are enough for one who needs one of them, not the reverse
        [[0.8, 0.8, 0.3], [0.1, 0.9, 0.4], [0.1, 0.1, 0.9]]
    """
    check_options({"target_class": target_class}, cross_test)
    given = [as_classifier(net) for net in nets]
    if len(given) < 2 or len({net.name for net in given}) < len(given):
        raise OptionError("Expected two or more classifiers with different names; Classifier(…, name=…) names them.")
    if maps is not None and (len(maps) != len(given) or not all(isinstance(own, Attribution) for own in maps)):
        raise OptionError(
            f"{len(maps)} sets of maps were given for {len(given)} classifiers; give an Attribution each."
        )
    names = list(dict.fromkeys([metric] if isinstance(metric, str) else metric))
    check_curves(names)
    wanted = _whole_metrics(names)
    chosen = choices_of(wanted, find_protocol(protocol), choices)  # what cannot be is said before any work
    if target_class == "generating":
        _check_classes(given)
    opened = open_images(images)
    runners = [Runner(net, batch_size=batch_size, precision=precision, compile=compile) for net in given]
    labels = [_labels(net, opened) if target_class == "label" else None for net in given]
    made, every = list(maps or ()), len(given) * len(opened)
    if maps is None:
        by, own_options = find_method(method), dict(options or {})
        by.check(own_options)
        for net in given:
            check_fit(by, net, own_options)
        plan(by.name, every, by.questions_of(given[0], own_options))
    plan(", ".join(wanted), every, questions_together(given[0], wanted, chosen, len(given)))
    if maps is None:
        for net, runner, own in zip(given, runners, labels, strict=True):
            made.append(attribute(net, opened, method, own, seed=seed, runner=runner, **dict(options or {})))
    shape = (len(given), len(given), len(opened))
    raw = {name: np.empty(shape) for name in names}
    hidden = {name: np.empty(shape[1:]) for name in names}
    whole, classes = np.empty(shape[1:]), np.empty(shape, dtype=np.int64)
    for column, (net, runner) in enumerate(zip(given, runners, strict=True)):
        asked = [own.targets if target_class == "generating" else labels[column] for own in made]
        shown = [own.maps for own in made]
        answers = shown_to(net, opened, shown, asked, names, protocol, seed=seed, runner=runner, **choices)
        for row, found in enumerate(answers):
            classes[row, column] = found.targets
            for name, values in found.values.items():
                raw[name][row, column] = values
                if row == column:
                    whole[column], hidden[name][column] = found.whole, found.hidden[name]
    settings = {"method": method, "options": dict(options or {}), "protocol": protocol, **choices}
    about = provenance(given[0], settings, precision=runners[0].precision)
    about |= {"models": [net.name for net in given], "target": target_class}
    families = tuple(net.family or "" for net in given)
    models = tuple(net.name for net in given)
    return CrossTest(models, families, raw, whole, hidden, classes, opened.names, opened.ids, about)


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model says of images that it sees through given maps.

    Attributes:
        values: Scores by metric, each [N].
        whole: Confidence on whole images, [N].
        hidden: Confidence on the baseline alone, by metric, each [N].
        targets: The class asked about, [N].
        about: All that has to be known to find the same again.
    """

    values: Mapping[str, Numbers]
    whole: Numbers
    hidden: Mapping[str, Numbers]
    targets: np.ndarray
    about: Mapping[str, Any]


def shown_to(
    net: Classifier,
    images: Images,
    maps: Sequence[torch.Tensor],
    targets: Sequence[Targets],
    metrics: Sequence[str],
    protocol: str,
    *,
    seed: int,
    runner: Runner,
    **choices: Any,
) -> list[Answers]:
    """Show a model what maps of any models find important.

    Maps alone are given: what they explain need not be what is asked about.

    Args:
        net: The tested classifier.
        images: N images.
        maps: Of each model, [N, h, w].
        targets: The classes asked about with the maps of each; None: those that the tested model predicts.
        metrics: Names of metrics with curves, or of parts of them.
        protocol: Every choice that is not made here.
        seed: Of everything random.
        runner: Of the classifier.
        **choices: Of the metrics.
    """
    given = [
        Maps(checked(one, len(images)), asked, "predicted" if asked is None else "given")
        for one, asked in zip(maps, targets, strict=True)
    ]
    wanted, chosen = _whole_metrics(metrics), find_protocol(protocol)
    found = measure_together(net, images, given, wanted, chosen, choices, seed=seed, runner=runner)
    return [_answers(scores, metrics) for scores in found]


def _answers(found: Scores, metrics: Sequence[str]) -> Answers:
    """What scores say of metrics and of parts of them."""
    parts = {name: part for own, one in found.outcomes.items() for name, part in one.with_parts(own).items()}
    if missing := [name for name in metrics if name not in parts]:
        raise OptionError(f"There is no {missing[0]!r}: the parts under this protocol are {', '.join(parts)}.")
    curves = {name: curves for name in metrics if (curves := parts[name].curves) is not None}
    assert found.targets is not None, "metrics with curves ask the model"
    return Answers(
        {name: _numbers(parts[name].values) for name in metrics},
        _numbers(curves[metrics[0]].whole),
        {name: _numbers(one.hidden) for name, one in curves.items()},
        found.targets.cpu().numpy(),
        found.about,
    )


def check_curves(metrics: Sequence[str]) -> None:
    """Metrics that have no curve say nothing about what is enough for a model."""
    for name in _whole_metrics(metrics):
        if find_metric(name).choices is not CurveChoices:
            raise OptionError(f"Cross-testing is for metrics with curves, such as insertion; {name} has none.")


def _whole_metrics(names: Sequence[str]) -> list[str]:
    """The metrics that names mean or name a part of, such as insertion for ``"insertion/gray"``."""
    return list(dict.fromkeys(name.partition("/")[0] for name in names))


def _numbers(values: torch.Tensor) -> Numbers:
    return np.asarray(values.double().cpu().numpy())


def _check_classes(nets: Sequence[Classifier]) -> None:
    """Raise an error where models are known to have different classes: an index means something else to each then."""
    for one, other in pairwise(net for net in nets if net.labels):
        counts = [len(net.labels or ()) for net in (one, other)]
        if counts[0] != counts[1] or (one.synsets and other.synsets and one.synsets != other.synsets):
            raise OptionError(
                f"{one.name} and {other.name} have different classes, {counts[0]} and {counts[1]} of them, so that a "
                "class of one cannot be asked of the other. Write target_class='evaluated' or 'label'."
            )


def _labels(net: Classifier, images: Images) -> list[int]:
    """The classes that the labels of images mean to a model, [N]."""
    if None in images.labels:
        raise OptionError("target_class='label', but an image has no label; see open_images(…, labels=…).")
    return [net.class_index(label) for label in images.labels if label is not None]
