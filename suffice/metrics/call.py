"""From a classifier, images, maps and the name of a metric to scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args, overload

import torch
from torch import Tensor

from suffice.attribution import Attribution
from suffice.errors import OptionError
from suffice.metrics.boxes import boxes_of_images, given_boxes
from suffice.metrics.maps import checked
from suffice.metrics.metric import Metric, find_metric
from suffice.metrics.outcome import By, Outcome, joined
from suffice.metrics.protocols import Protocol, TargetClass, find_protocol
from suffice.metrics.scores import Scores
from suffice.metrics.trial import Trial
from suffice.perturb.forwarder import Forwarder, Precision
from suffice.vision import Classifier, Images, open_images
from suffice.vision.classifier import Targets, targets_of
from suffice.vision.stream import stream


@overload
def measure(
    net: Classifier,
    images: Any,
    maps: Attribution | Tensor,
    metric: str = ...,
    protocol: str | Protocol = ...,
    **options: Any,
) -> Scores: ...


@overload
def measure(
    net: Classifier,
    images: Any,
    maps: Attribution | Tensor,
    metric: Sequence[str],
    protocol: str | Protocol = ...,
    **options: Any,
) -> dict[str, Scores]: ...


def measure(
    net: Classifier,
    images: Any,
    maps: Attribution | Tensor,
    metric: str | Sequence[str] = "insertion",
    protocol: str | Protocol = "default",
    *,
    targets: Targets = None,
    target_class: TargetClass | None = None,
    boxes: Any = None,
    normalize: By | None = None,
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
    precision: Precision = "fp32",
    compile: bool = False,
    forwarder: Forwarder | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Scores | dict[str, Scores]:
    """Measure how true maps are to a model.

    Args:
        net: The classifier.
        images: Anything that :func:`suffice.open_images` takes.
        maps: What :func:`suffice.attribute` returned, or maps [N, h, w] of any resolution, high = important.
        metric: Name of a metric, or several, which then share what they ask of the model; see
            :func:`suffice.list_metrics`.
        protocol: Every choice that is not made here; see :func:`suffice.list_protocols`.
        targets: The classes asked about: an index or label for all, or one per image; None: ``target_class`` says it.
        target_class: The class that was ``"explained"`` (the predicted one for maps that do not say), the
            ``"predicted"`` one, or the ``"label"`` of the image; None: as the protocol has it.
        boxes: For each image its objects as (x0, y0, x1, y1) in pixels of the model's input; default: those that the
            images come with.
        normalize: ``"set"`` or ``"image"`` to report curves as (s - b) / (t - b); see :meth:`Scores.normalized`.
        seed: Seed of everything random; each image's own randomness depends on it and on the image alone.
        batch_size: Inputs per forward, which bounds memory; halved when memory runs out.
        precision: Of the model: ``"fp32"``, ``"tf32"``, ``"bf16"`` or ``"fp16"``.
        compile: Compile the model; worth it for long work on a GPU.
        forwarder: A :class:`suffice.perturb.Forwarder` of this model instead of the three, so that it is compiled or
            converted once for many calls.
        on_progress: Called with (images done, images in all).
        **options: Options of the metrics; each goes to those that have it.

    Returns:
        Scores, or for several metrics a dict of them by name, on the device of ``images`` where they are a tensor, else
        on the CPU.

    Raises:
        OptionError: Something does not fit; the message says what does.

    Example:
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(5,)], grid=4)                                  # looks at cell 5 only
        >>> maps = torch.zeros(1, 4, 4)
        >>> maps[0, 1, 1] = 1.0                                             # and the map says so
        >>> found = score(oracle.classifier(32), oracle.image(32), maps, ["insertion", "deletion"], targets=1,
        ...               baseline="black", units="cells", steps=16)
        >>> round(found["insertion"].mean, 2), round(found["deletion"].mean, 2)
        (0.95, 0.05)
        >>> found["insertion"].protocol["integration"]
        'trapezoid'
    """
    wanted = [metric] if isinstance(metric, str) else list(metric)
    chosen = find_protocol(protocol) if isinstance(protocol, str) else protocol
    choices = _choices(wanted, chosen, options)
    if normalize not in (None, *get_args(By)):
        raise OptionError(f"normalize={normalize!r}; it can be 'set', 'image' or None.")
    opened = _without_skipped(open_images(images.detach() if isinstance(images, Tensor) else images), maps)
    given = checked(torch.as_tensor(maps.maps if isinstance(maps, Attribution) else maps), len(opened))
    rule, classes = _classes(opened, maps, targets, target_class or chosen.target_class)
    targets_of(classes, (), len(opened))  # a wrong number of them is said at once
    needs = {need for name in wanted for need in find_metric(name).needs}
    objects = _boxes(net, opened, boxes) if "boxes" in needs else None

    forwarder = forwarder or Forwarder(net, batch_size=batch_size, precision=precision, compile=compile)
    outcomes: dict[str, list[Outcome]] = {name: [] for name in wanted}
    asked: list[Tensor] = []
    # As many images as fit a batch: any number of steps then fills whole batches.
    for batch in stream(opened, net.geometry, batch_size=forwarder.batch_size):
        index = batch.index.tolist()
        trial = Trial(
            net=net,
            index=batch.index,
            total=len(opened),
            pixels=batch.pixels.to(net.device),
            maps=given[batch.index.to(given.device)].to(net.device),
            wanted=targets_of(classes, index, len(opened)),
            boxes=None if objects is None else [objects[i] for i in index],
            ids=[opened[i].id for i in index],
            seed=seed,
            forwarder=forwarder,
            attribution=_part(maps, batch.index),
        )
        with torch.no_grad():
            for name in wanted:
                outcome = _measured(find_metric(name), trial, choices[name])
                if normalize is not None and outcome.curves is None and not outcome.parts:
                    raise OptionError(f"normalize= is for metrics with curves; {name} has none. Measure it on its own.")
                outcomes[name].append(outcome)
        if trial.asked:
            asked.append(trial.targets)
        if on_progress is not None:
            on_progress(index[-1] + 1, len(opened))

    where = images.device if isinstance(images, Tensor) else torch.device("cpu")
    common = {
        "target_class": rule,
        "normalize": None,
        "score": net.score,
        "seed": seed,
        "precision": forwarder.precision,
        "model": net.name,
        "size": list(net.size),
        "geometry": repr(net.geometry),
        "maps": _origin(maps, given),
    }
    scores = {}
    for name in wanted:
        whole = joined(outcomes[name], where)
        found = Scores(
            values=whole.values,
            curves=whole.curves,
            parts=whole.parts,
            combination=whole.combination,
            metric=name,
            higher_is_better=find_metric(name).higher_is_better,
            protocol={
                "metric": name,
                "protocol": chosen.name,
                "changed": sorted(options.keys() & choices[name].keys()),
                **choices[name],
                **common,
            },
            targets=torch.cat(asked).to(where) if asked else None,
            names=opened.names,
            skipped=maps.skipped if isinstance(maps, Attribution) else (),
        )
        scores[name] = found if normalize is None else found.normalized(normalize)
    return scores[wanted[0]] if isinstance(metric, str) else scores


def _choices(wanted: Sequence[str], protocol: Protocol, options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Every choice for each metric; an option that none of them has is an error."""
    if not wanted or len(set(wanted)) < len(wanted):
        raise OptionError(f"metric={list(wanted)!r}; expected one or more different names.")
    found = {name: find_metric(name) for name in wanted}
    for option in options:
        if not any(option in m.options for m in found.values()):
            known = sorted({o for m in found.values() for o in m.options})
            raise OptionError(f"{', '.join(found)} has no option {option!r}; there are {', '.join(known) or 'none'}.")
    return {n: protocol.options(n, {o: v for o, v in options.items() if o in m.options}) for n, m in found.items()}


def _measured(metric: Metric, trial: Trial, options: Mapping[str, Any]) -> Outcome:
    outcome = metric.function(trial, **options)
    if outcome.values.shape != (len(trial),):
        raise OptionError(f"{metric.name} returned {list(outcome.values.shape)}; expected values [{len(trial)}].")
    return replace(outcome, values=outcome.values.float())


def _without_skipped(images: Images, maps: Attribution | Tensor) -> Images:
    """The images that have maps: all but those that could not be read when the maps were made."""
    skipped = {skip.index for skip in maps.skipped} if isinstance(maps, Attribution) else set()
    return images[[i for i in range(len(images)) if i not in skipped]] if skipped else images


def _classes(
    images: Images, maps: Attribution | Tensor, targets: Targets, target_class: TargetClass
) -> tuple[str, Targets]:
    """How the classes were chosen, and which they are; None for the predicted ones."""
    if targets is not None:
        return "given", targets
    if target_class == "explained":
        return ("explained", maps.targets) if isinstance(maps, Attribution) else ("predicted", None)
    if target_class == "predicted":
        return "predicted", None
    if target_class != "label":
        raise OptionError(f"target_class={target_class!r}; it can be 'explained', 'predicted' or 'label'.")
    labels = [label for label in images.labels if label is not None]
    if len(labels) < len(images):
        raise OptionError(
            f"This protocol asks about the label of each image, and {len(images) - len(labels)} of {len(images)} have "
            "none. Write targets=, open_images(…, labels=…), or target_class='predicted'."
        )
    return "label", labels


def _boxes(net: Classifier, images: Images, boxes: Any) -> list[Tensor]:
    found = boxes_of_images(net, images) if boxes is None else given_boxes(boxes, len(images))
    if not any(len(own) for own in found):
        raise OptionError("No image has boxes; write boxes=, one list of (x0, y0, x1, y1) an image.")
    return found


def _part(maps: Attribution | Tensor, index: Tensor) -> Attribution | None:
    if not isinstance(maps, Attribution):
        return None
    rows = {name: getattr(maps, name)[index.to(getattr(maps, name).device)] for name in ("maps", "targets")}
    return Attribution(**rows, confidences=maps.confidences[index.to(maps.confidences.device)], settings=maps.settings)


def _origin(maps: Attribution | Tensor, given: Tensor) -> dict[str, Any]:
    own = {"size": list(given.shape[1:])}
    return {**own, "settings": maps.settings} if isinstance(maps, Attribution) else own
