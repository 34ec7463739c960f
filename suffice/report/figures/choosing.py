"""Which images of a study are meant, and which show the most."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from suffice.errors import OptionError
from suffice.plugins import did_you_mean
from suffice.study import Study


def chosen_image(study: Study, image: str | int) -> int:
    """The position of an image of a study: given as its position, its name, or the end of its name."""
    names = study.plan.names
    if isinstance(image, int) or image.isdigit():
        if int(image) >= len(names):
            raise OptionError(f"The study has {len(names)} images, 0 to {len(names) - 1}; there is no {image}.")
        return int(image)
    exact = [i for i, name in enumerate(names) if image in (name, PurePosixPath(name).name, PurePosixPath(name).stem)]
    if len(exact) != 1:
        hint = f" There are {len(exact)}; write its position." if exact else did_you_mean(image, names)
        raise OptionError(
            f"The study has no image {image!r}.{hint}" if not exact else f"{image!r} is not one image.{hint}"
        )
    return exact[0]


def chosen_images(study: Study, images: str | int | None, most: int) -> list[int]:
    """Positions of images given as ``"3,7,cat.jpg"``, or of the first so many."""
    if images is None:
        return list(range(min(most, len(study.plan.names))))
    named = [images] if isinstance(images, int) else [part.strip() for part in images.split(",") if part.strip()]
    return [chosen_image(study, one) for one in named]


def some_models(families: Mapping[str, str], most: int) -> list[str]:
    """At most so many models, from as many families as possible, in their order.

    Example:
        >>> some_models({"a": "cnn", "b": "cnn", "c": "cnn", "d": "vit"}, 3)
        ['a', 'b', 'd']
    """
    by_family = {family: [m for m, own in families.items() if own == family] for family in families.values()}
    rounds = max(map(len, by_family.values()), default=0)
    turns = [own[turn] for turn in range(rounds) for own in by_family.values() if turn < len(own)]
    return [model for model in families if model in turns[:most]]
