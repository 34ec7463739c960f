"""Which images a study is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from suffice.errors import StudyError, UnreadableImage
from suffice.plugins import provided
from suffice.study.asked import Asked
from suffice.study.paths import expanded, placed
from suffice.vision import Images, open_images
from suffice.vision.images import Picture
from suffice.vision.images.listing import with_boxes
from suffice.vision.images.opening import GROUP


def chosen_images(asked: Asked) -> Images:
    """The images that a study asks for; the names of files below its folder are relative to that."""
    with asked.places.at(("images",), "source"):
        images = images_of_choice(asked)[:: asked.images.every][: asked.images.take]
        if not len(images):
            raise StudyError("No image is left by 'classes', 'every' and 'take'.")
        return images


def images_of_choice(asked: Asked) -> Images:
    """The same, and those that ``every`` and ``take`` leave out."""
    choice, base = asked.images, asked.base.resolve()  # so names are the same wherever the study goes on
    given = [choice.source] if isinstance(choice.source, str) else list(choice.source)
    sources = [_source(source, base) for source in given]
    root, boxes = (None if one is None else placed(one, base) for one in (choice.root, choice.boxes))
    images = open_images(sources[0] if len(sources) == 1 else sources, root=root, max_pixels=choice.max_pixels)
    images = images if boxes is None else with_boxes(images, boxes)
    images = Images(replace(picture, name=picture.name.removeprefix(f"{base}/")) for picture in images)
    if choice.classes is not None:
        wanted = set(choice.classes)
        images = images[[label in wanted for label in images.labels]]
    return images


def images_of_names(found: Images, names: Sequence[str]) -> Images:
    """The images of these names among those found; one that is no longer there is an image that cannot be read."""
    by_name: dict[str, list[Picture]] = {}
    for picture in found:
        by_name.setdefault(picture.name, []).append(picture)
    for name, count in Counter(names).items():
        if (there := len(by_name.get(name, []))) not in (0, count):
            raise StudyError(
                f"The study began with {count} images called {name}, and now there are {there}, so nobody knows which "
                "they were. Begin another one, in another folder."
            )
    in_turn = {name: iter(some) for name, some in by_name.items()}
    return Images(next(in_turn[name]) if name in in_turn else Picture(name, _Gone(name)) for name in names)


def _source(source: str, base: Path) -> str:
    """What images are opened from: a path of the study, or ``"name:rest"`` as it is."""
    place, text = placed(source, base), expanded(source)
    return text if text.partition(":")[0] in provided(GROUP) and not place.exists() else str(place)


@dataclass(frozen=True)
class _Gone:
    """Where the pixels of an image were that is no longer there."""

    name: str

    def read(self) -> Any:
        raise UnreadableImage(f"{self.name} is no longer there.")

    def fingerprint(self) -> str:
        raise UnreadableImage(f"{self.name} is no longer there.")
