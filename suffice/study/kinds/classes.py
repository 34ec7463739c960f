"""Which class of an image a measurement is about."""

from __future__ import annotations

from typing import Literal

from suffice.errors import OptionError, StudyError
from suffice.study.measurement import Work
from suffice.vision import Classifier, Images
from suffice.vision.classifier import Targets

Classes = Literal["predicted", "label"]
Target = int | str | None


def targets_of_images(work: Work, which: Classes, target: Target = None) -> Targets:
    """The classes that are asked about.

    Args:
        work: The model and the images.
        which: Those that the model predicts, or those of the images' labels; 0 where there is no image to be read.
        target: Instead, an index or label for all images; or ``"@2"``, ``"@3"`` …: the second or third likeliest.
    """
    if target is not None:
        return work.net.class_index(target) if (rank := _rank(target)) is None else _likeliest(work, rank)
    if which == "predicted":
        return None
    labels = work.images.labels
    if None in labels:
        unreadable = {skip.index for skip in work.unreadable()}  # perhaps gone, and its label with it
        nameless = [p.name for i, p in enumerate(work.images) if labels[i] is None and i not in unreadable]
        if nameless:
            raise StudyError(f'target_class = "label", but {nameless[0]} has no label.')
    return [0 if label is None else work.net.class_index(label) for label in labels]


def lacking_labels(images: Images) -> str | None:
    """Why not all images can be asked about by their labels; None where each has one, or may have if looked up."""
    nameless = [picture.name for picture in images if picture.stored_label is None]
    if not nameless:
        return None
    return f"it asks about their labels, and {len(nameless)} of {len(images)} have none, such as {nameless[0]}"


def no_such_class(net: Classifier, target: Target) -> str | None:
    """Why a model cannot be asked about a target; None where it can."""
    if target is None:
        return None
    if (rank := _rank(target)) is not None:
        few = net.labels is not None and rank > len(net.labels)
        return f"target={target!r}, but there are {len(net.labels or ())} classes" if few else None
    try:
        net.class_index(target)
    except OptionError as error:
        return str(error).removesuffix(".")
    return None


def _rank(target: int | str) -> int | None:
    """Which of the likeliest classes is meant, from 1; None where it is a class."""
    number = target[1:] if isinstance(target, str) and target.startswith("@") else ""
    return int(number) if number.isdecimal() and int(number) else None


def _likeliest(work: Work, rank: int) -> list[int]:
    """The class of this rank in each image; 0 where it cannot be read, and nothing is asked."""
    said = work.net.predict(work.images, batch_size=work.runner.batch_size, on_error="skip")
    found = dict(zip(said.index.tolist(), said.top(rank), strict=True))
    return [found[i][-1][0] if i in found else 0 for i in range(len(work.images))]
