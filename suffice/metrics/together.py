"""Several sets of maps of the same images, scored together: images are decoded, and asked about whole, once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from suffice.attribution import Attribution
from suffice.errors import OptionError
from suffice.metrics.boxes import boxes_of
from suffice.metrics.choices import choices_of, questions_together
from suffice.metrics.map_batch import MapBatch
from suffice.metrics.metric import Metric, find_metric
from suffice.metrics.outcome import Outcome, joined
from suffice.metrics.protocols import Protocol
from suffice.metrics.scores import Scores
from suffice.perturb import Batch, Runner
from suffice.progress import counted
from suffice.vision import Classifier, Images
from suffice.vision.classifier import Targets, targets_of
from suffice.vision.provenance import provenance
from suffice.vision.stream import PixelBatch, stream


@dataclass(frozen=True, eq=False)
class Maps:
    """Maps of images, and the classes that the model is asked about.

    Attributes:
        maps: [N, h, w] float32, finite.
        targets: A class for all, or one for each image; None: those that the model predicts.
        rule: How the classes were chosen, in a word.
        source: Where the maps come from, if that is known.
    """

    maps: Tensor
    targets: Targets
    rule: str
    source: Attribution | None = None


def measure_together(
    net: Classifier,
    images: Images,
    several: Sequence[Maps],
    metrics: Sequence[str],
    protocol: Protocol,
    options: Mapping[str, Any],
    *,
    seed: int,
    runner: Runner,
    boxes: Any = None,
    device: torch.device | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Scores]:
    """Score one or more sets of maps of the same images; each gets the scores that it would get alone.

    Args:
        net: The classifier.
        images: N of them.
        several: The sets, each with N maps.
        metrics: Names of metrics.
        protocol: Every choice that is not made here.
        options: Of the metrics; each goes to those that have it.
        seed: Of everything random.
        runner: Of the classifier.
        boxes: See :func:`suffice.measure`.
        device: Where scores are put; default: the CPU.
        on_progress: Called with (images done, images in all).
    """
    choices = choices_of(metrics, protocol, options)
    for one in several:
        targets_of(one.targets, (), len(images))  # a wrong number of them is said at once
    needs = {need for name in metrics for need in find_metric(name).needs}
    objects = boxes_of(net, images, boxes) if "boxes" in needs else None
    alike = _alike(several)
    # As many maps as fit a batch: any number of steps then fills whole batches.
    each = max(1, runner.batch_size // max(map(len, alike)))
    outcomes: list[dict[str, list[Outcome]]] = [{name: [] for name in metrics} for _ in several]
    asked: list[list[Tensor]] = [[] for _ in several]
    questions = questions_together(net, metrics, choices, len(several))
    batches = stream(images, net.geometry, batch_size=each)
    for decoded in counted(batches, ", ".join(metrics), len(images), questions):
        pixels = decoded.on(net.device)
        whole = runner.scores(pixels) if {"model", "method"} & needs else None
        for group in alike:
            given = _rows(net, images, [several[i] for i in group], decoded, pixels, whole, objects, seed, runner)
            with torch.no_grad():
                found = {name: _measured(find_metric(name), given, choices[name]) for name in metrics}
            for place, number in enumerate(group):
                own = torch.arange(place * len(pixels), (place + 1) * len(pixels))
                for name, outcome in found.items():
                    outcomes[number][name].append(outcome if len(group) == 1 else outcome.take(own))
                asked[number].append(given.batch.targets[own.to(net.device)])
        if on_progress is not None:
            on_progress(int(decoded.index[-1]) + 1, len(images))

    where = device or torch.device("cpu")
    scores = []
    for one, own_outcomes, own_targets in zip(several, outcomes, asked, strict=True):
        protocols = _protocols(net, one, protocol, choices, options, seed, runner)
        made = Scores(
            outcomes={name: joined(parts, where) for name, parts in own_outcomes.items()},
            protocols=protocols,
            targets=torch.cat(own_targets).to(where) if {"model", "method"} & needs else None,
            names=images.names,
            ids=images.ids,
            skipped=one.source.skipped if one.source is not None else (),
            about=provenance(net, {"metrics": protocols}, one.targets, precision=runner.precision),
        )
        scores.append(made)
    return scores


def _alike(several: Sequence[Maps]) -> list[list[int]]:
    """Positions of the sets whose maps have the same size, which can be rows of one batch."""
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for number, one in enumerate(several):
        groups[tuple(one.maps.shape[1:])].append(number)
    return list(groups.values())


def _rows(
    net: Classifier,
    images: Images,
    several: Sequence[Maps],
    decoded: PixelBatch,
    pixels: Tensor,
    whole: Tensor | None,
    objects: Sequence[Tensor] | None,
    seed: int,
    runner: Runner,
) -> MapBatch:
    """Some images as often as there are sets of maps, one set after the other, each with its maps and classes."""
    index, times = decoded.index.tolist(), len(several)
    known = torch.full((times * len(index),), -1, device=net.device)
    if whole is not None:
        known = torch.cat([net.targets(targets_of(one.targets, index, len(images)), whole) for one in several])
    maps = [one.maps[decoded.index.to(one.maps.device)].to(net.device) for one in several]
    ids = [images[i].id for i in index] * times
    repeated = pixels.repeat(times, 1, 1, 1) if times > 1 else pixels
    batch = Batch(net, repeated, known, ids, seed, runner, decoded.index.repeat(times), len(images))
    sources = [one.source for one in several if one.source is not None]
    return MapBatch(
        batch,
        torch.cat(maps),
        None if whole is None else whole.repeat(times, 1),
        None if objects is None else [objects[i] for i in index] * times,
        sources[0][decoded.index] if times == len(sources) == 1 else None,
    )


def _measured(metric: Metric, given: MapBatch, options: Mapping[str, Any]) -> Outcome:
    outcome = metric.function(given, **options)
    if outcome.values.shape != (len(given),):
        raise OptionError(f"{metric.name} returned {list(outcome.values.shape)}; expected values [{len(given)}].")
    return replace(outcome, values=outcome.values.float())


def _protocols(
    net: Classifier,
    one: Maps,
    protocol: Protocol,
    choices: Mapping[str, Mapping[str, Any]],
    options: Iterable[str],
    seed: int,
    runner: Runner,
) -> dict[str, dict[str, Any]]:
    """Every choice behind the scores of some maps, by metric."""
    settings = {} if one.source is None else {"settings": one.source.settings}
    common = {
        "target_class": one.rule,
        "normalize": None,
        "score": net.score,
        "seed": seed,
        "precision": runner.precision,
        "model": net.name,
        "size": list(net.size),
        "geometry": repr(net.geometry),
        "maps": {"size": list(one.maps.shape[1:]), **settings},
    }
    return {
        name: {"metric": name, "protocol": protocol.name, "changed": sorted(set(options) & own.keys()), **own, **common}
        for name, own in choices.items()
    }
