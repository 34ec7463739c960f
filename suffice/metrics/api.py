"""From a classifier, images, maps and the name of a metric to scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from suffice.attribution import Attribution
from suffice.errors import OptionError
from suffice.metrics.choices import choices_of
from suffice.metrics.map_batch import checked
from suffice.metrics.metric import Metric, find_metric
from suffice.metrics.outcome import By
from suffice.metrics.protocols import Protocol, TargetClass, find_protocol
from suffice.metrics.scores import Scores
from suffice.metrics.together import Maps, measure_together
from suffice.options import check_options
from suffice.perturb.runner import AnyPrecision, Runner
from suffice.plugins import check_arguments
from suffice.progress import reports
from suffice.vision import Images, Model, as_classifier, open_images
from suffice.vision.classifier import Targets


@reports("Measuring")
def measure(
    net: Model,
    images: Any,
    maps: Attribution | Tensor,
    metric: str | Metric | Sequence[str | Metric] = "insertion",
    protocol: str | Protocol = "default",
    *,
    targets: Targets = None,
    target_class: TargetClass | None = None,
    boxes: Any = None,
    normalize: By | None = None,
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
    precision: AnyPrecision = "fp32",
    compile: bool = False,
    runner: Runner | None = None,
    progress: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Scores:
    """Score attribution maps by metrics such as insertion and deletion.

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
        precision: Of the model: ``"fp32"``, ``"tf32"``, ``"fp16"``, ``"bf16"`` or ``"auto"``, see
            :class:`suffice.Runner`.
        compile: Compile the model; worth it for long work on a GPU.
        runner: A :class:`suffice.Runner` of this model instead of the three, so that it is compiled or converted once
            for many calls.
        progress: Show how many questions were put to the model, how fast, and the time left.
        on_progress: Called with (images done, images in all).
        **options: Options of the metrics; each goes to those that have it.

    Returns:
        Scores, of several metrics too; on the device of ``images`` where they are a tensor, else on the CPU.

    Raises:
        OptionError: Something does not fit; the message says what does.

    Example:
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(5,)], grid=4)                                  # looks at cell 5 only
        >>> maps = torch.zeros(1, 4, 4)
        >>> maps[0, 1, 1] = 1.0                                             # and the map says so
        >>> found = measure(oracle.classifier(32), oracle.image(32), maps, ["insertion", "deletion"], targets=1,
        ...                 baseline="black", units="cells", steps=16)
        >>> round(found["insertion"].mean, 2), round(found["deletion"].mean, 2)
        (0.95, 0.05)
        >>> found["insertion"].protocol["integration"]
        'trapezoid'
    """
    check_options({"normalize": normalize, "target_class": target_class}, measure)
    net = as_classifier(net)
    runner = Runner.of(net, runner, batch_size=batch_size, precision=precision, compile=compile)
    wanted = [str(one) for one in ([metric] if isinstance(metric, (str, Metric)) else metric)]
    chosen = find_protocol(protocol)
    check_arguments(measure, options, (option for name in wanted for option in find_metric(name).options))
    choices_of(wanted, chosen, options)  # what cannot be is said before images are opened
    source = maps if isinstance(maps, Attribution) else None
    opened = _with_maps(open_images(images.detach() if isinstance(images, Tensor) else images), source)
    given = checked(maps if source is None else source.maps, len(opened))
    rule, classes = _classes(opened, source, targets, target_class or chosen.target_class)
    (scores,) = measure_together(
        net, opened, [Maps(given, classes, rule, source)], wanted, chosen, options,
        boxes=boxes, seed=seed, runner=runner, on_progress=on_progress,
        device=images.device if isinstance(images, Tensor) else torch.device("cpu"),
    )  # fmt: skip
    return scores if normalize is None else scores.normalized(normalize)


def _with_maps(images: Images, source: Attribution | None) -> Images:
    """The images that have maps: all but those that could not be read when the maps were made."""
    if source is None or len(images) == len(source):
        return images  # some of them, perhaps, chosen alike
    skipped = {skip.index for skip in source.skipped}
    return images[[i for i in range(len(images)) if i not in skipped]] if skipped else images


def _classes(
    images: Images, source: Attribution | None, targets: Targets, target_class: TargetClass
) -> tuple[str, Targets]:
    """How the classes were chosen, and which they are; None for the predicted ones."""
    if targets is not None:
        return "given", targets
    if target_class == "explained" and source is not None:
        return "explained", source.targets
    if target_class != "label":
        return "predicted", None
    labels = [label for label in images.labels if label is not None]
    if len(labels) < len(images):
        raise OptionError(
            f"This protocol asks about the label of each image, and {len(images) - len(labels)} of {len(images)} have "
            "none. Write targets=, open_images(…, labels=…), or target_class='predicted'."
        )
    return "label", labels
