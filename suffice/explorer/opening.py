"""From names of models, images and studies to an explorer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from suffice.errors import OptionError, StudyError, SufficeError
from suffice.explorer.explorer import Explorer
from suffice.study import Study
from suffice.vision import Classifier, load, open_images

USUAL_MODELS = ("zoo/resnet", "zoo/convnext", "zoo/swin", "zoo/deit")
USUAL_IMAGES = "scenes:test[:48]"
MOST_OF_STUDY = 6  # models of a study that are loaded where none were named


def open_explorer(
    run: str | Path | None = None,
    models: Sequence[str] = (),
    images: Sequence[str] = (),
    *,
    checkpoints: Sequence[str | Path] = (),
    device: str | None = None,
    max_pixels: int | None = None,
    say: Callable[[str], None] = lambda said: None,
) -> Explorer:
    """Open an explorer of models by name and images by path, or of a study.

    Args:
        run: Folder of a study that was run; its images, and its models by their labels.
        models: Names as :func:`suffice.load` takes them; with a study, labels of its models too, also with ``*``.
            Default: four networks of the zoo, or the first six of the study.
        images: As :func:`suffice.open_images` takes them; default: scenes, or the images of the study.
        checkpoints: A file of weights for each of ``models``, in their order; ``"-"`` for the published ones.
        device: Where the models are put; default: the first GPU, else the CPU.
        max_pixels: Refuse to decode larger images.
        say: Called with what is being done.
    """
    if checkpoints and len(checkpoints) != len(models):
        raise OptionError(
            f"There are {len(models)} models and {len(checkpoints)} checkpoints; give each --model its --checkpoint, "
            "in the same order, or - for the published weights."
        )
    study = None if run is None else Study.open(run)
    if study is not None and study.store is None:
        raise StudyError(f"{run} is the file of a study; give the folder of its results.")
    nets: list[Classifier] = []
    for name, make in _wanted(study, models, checkpoints, device):
        say(f"Loading {name}")
        try:
            nets.append(make())
        except SufficeError as error:
            if models or study is None:
                raise
            say(f"{name} is left out: {error}")
    source: Any = list(images) if len(images) != 1 else images[0]
    if images:
        opened = open_images(source, max_pixels=max_pixels)
    else:
        opened = open_images(USUAL_IMAGES) if study is None else study.plan.images
    if not len(opened):
        raise OptionError("There are no images to show.")
    return Explorer(nets, opened, study)


def _wanted(
    study: Study | None, models: Sequence[str], checkpoints: Sequence[str | Path], device: str | None
) -> list[tuple[str, Callable[[], Classifier]]]:
    """Models by name, each with what loads it."""

    def by_name(name: str, checkpoint: str | Path = "-") -> Callable[[], Classifier]:
        if str(checkpoint) == "-":
            return lambda: load(name, device=device)
        named = f"{name} ({Path(checkpoint).stem})"  # the same network may come with several
        return lambda: load(name, checkpoint=checkpoint, device=device).replace(name=named)

    if checkpoints:
        return [(name, by_name(name, own)) for name, own in zip(models, checkpoints, strict=True)]
    if study is None:
        return [(name, by_name(name)) for name in models or USUAL_MODELS]
    planned = {model.label: model for model in study.plan.models}

    def of_study(label: str) -> Callable[[], Classifier]:
        return lambda: planned[label].load(study.asked.base, device).replace(name=label)

    if not models:
        return [(label, of_study(label)) for label in list(planned)[:MOST_OF_STUDY]]
    found: list[tuple[str, Callable[[], Classifier]]] = []
    for name in models:
        labels = [label for label in planned if fnmatchcase(label, name)]
        found += [(label, of_study(label)) for label in labels] or [(name, by_name(name))]
    return found
