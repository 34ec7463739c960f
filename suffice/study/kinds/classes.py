"""Which class of an image a measurement is about."""

from __future__ import annotations

from typing import Literal

from suffice.errors import StudyError
from suffice.study.measurement import Work
from suffice.vision.classifier import Targets

Classes = Literal["predicted", "label"]


def targets_of_images(work: Work, which: Classes) -> Targets:
    """The classes that are asked about: those that the model predicts, or those of the images' labels."""
    if which == "predicted":
        return None
    labels = work.images.labels
    if None in labels:
        nameless = work.images.names[labels.index(None)]
        raise StudyError(f'target_class = "label", but {nameless} has no label.')
    return [work.net.class_index(label) for label in labels if label is not None]
