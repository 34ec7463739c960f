"""The images that an explainer is trained on, and those that it must never see.

Which side an image is on depends on its content alone: a tenth is held out to look at on the way, by the hash that is
the image's identity, so that an image and its copies are always on the same side, in every run. What the explainer will
be judged on is named beforehand and taken out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from suffice.attribution.learned.recipe import ExplainedClass
from suffice.errors import OptionError, UnreadableImage
from suffice.perturb import Runner
from suffice.vision import Classifier, Picture, open_images
from suffice.vision.identity import content_hash
from suffice.vision.stream import OnError, Skip, stream

HELD_OUT = 10  # one in so many images is held out
OnProgress = Callable[[int, int], None]


def short_id(identity: str) -> int:
    """The identity of an image as a number that fits int64.

    Example:
        >>> short_id("ff" * 16) < 2**60
        True
    """
    return int(identity[:15], 16)


@dataclass(frozen=True, eq=False)
class ExplainerImages:
    """Images for training, held in bytes, with the classes to explain.

    Attributes:
        pixels: uint8 [N, 3, H, W], of the explained model's size.
        targets: Class to explain in each, int64 [N].
        ids: Identity of each, as :func:`short_id` has it, int64 [N].
        held_out: Which are for validation, bool [N].
        name: What reports call them.
        left_out: How many were taken out since they are to be evaluated on.
        explains: Which classes ``targets`` are.
        skipped: Those that could not be read.
    """

    pixels: Tensor
    targets: Tensor
    ids: Tensor
    held_out: Tensor
    name: str
    left_out: int = 0
    explains: ExplainedClass = "predicted"
    skipped: tuple[Skip, ...] = ()

    def __post_init__(self) -> None:
        if not (~self.held_out).any() or not self.held_out.any():
            broken = f" {len(self.skipped)} cannot be read, such as {self.skipped[0].name}." if self.skipped else ""
            raise OptionError(
                f"{len(self.pixels)} images of {self.name} are left, of which {int(self.held_out.sum())} are held out; "
                f"training needs some of both kinds, so give more images.{broken}"
            )

    @property
    def train(self) -> Tensor:
        """Positions of the images to train on."""
        return (~self.held_out).nonzero().flatten()

    @property
    def validation(self) -> Tensor:
        """Positions of the images to look at on the way."""
        return self.held_out.nonzero().flatten()

    def to_look_at(self, most: int) -> Tensor:
        """Positions of at most so many of these, evenly taken: files are often sorted by class."""
        rows = self.validation
        count = min(most, len(rows))
        return rows[torch.arange(count) * len(rows) // count]

    def fingerprint(self) -> str:
        """Hash of which images these are, and of the classes to explain."""
        return content_hash(*(part.numpy().tobytes() for part in (self.ids, self.targets, self.held_out)))


def open_explainer_images(
    runner: Runner,
    images: Any,
    *,
    explains: ExplainedClass = "predicted",
    never: Any = None,
    name: str | None = None,
    on_error: OnError = "skip",
    on_progress: OnProgress | None = None,
) -> ExplainerImages:
    """Prepare images for training an explainer.

    Args:
        runner: Of the explained model, whose size the images get, and whose predictions are the classes to explain.
        images: Anything that :func:`suffice.open_images` takes.
        explains: The ``"predicted"`` class, or the image's ``"label"``.
        never: Images that the explainer is to be evaluated on: they are left out, by their content.
        name: What reports call them.
        on_error: ``"skip"`` images that cannot be read and note them in ``.skipped``, or ``"raise"`` their error.
        on_progress: Called with (done, total).

    Raises:
        OptionError: An image has no label though labels are to be explained, or too few are left.
        UnreadableImage: None of the images can be read.
    """
    net, opened = runner.net, open_images(images)
    forbidden = set() if never is None else set(map(short_id, open_images(never).ids))
    kept: list[int] = []
    parts: list[Tensor] = []
    decoded = stream(opened, net.geometry, on_error=on_error)
    for batch in decoded:
        wanted = [row for row, i in enumerate(batch.index.tolist()) if short_id(opened[i].id) not in forbidden]
        kept += batch.index[wanted].tolist()
        parts.append((batch.pixels[wanted] * 255).round().to(torch.uint8))
        if on_progress is not None:
            on_progress(int(batch.index[-1]) + 1, len(opened))
    if len(decoded.skipped) == len(opened) > 0:
        raise UnreadableImage(f"None of the images could be read. {decoded.skipped[0].reason}")
    pixels = torch.cat(parts) if parts else torch.zeros(0, 3, *net.size, dtype=torch.uint8)
    ids = torch.tensor([short_id(opened[i].id) for i in kept], dtype=torch.int64)
    left_out = sum(short_id(one) in forbidden for one in opened.ids) if forbidden else 0
    if explains == "label":
        targets = torch.tensor([_label(opened[i], net) for i in kept], dtype=torch.int64)
    else:
        targets = _predicted(runner, pixels)
    draw = torch.tensor([int(content_hash("held out", str(i))[:8], 16) for i in ids.tolist()], dtype=torch.int64)
    held_out = draw < 16**8 // HELD_OUT
    if len(draw) > 1 and not held_out.any():  # so few that chance left none
        held_out = draw == draw.min()
    called = name or (images if isinstance(images, str) else f"{len(opened)} images")
    return ExplainerImages(pixels, targets, ids, held_out, called, left_out, explains, tuple(decoded.skipped))


def _predicted(runner: Runner, pixels: Tensor) -> Tensor:
    def some(rows: slice) -> Tensor:
        return runner.scores(pixels[rows].float() / 255).argmax(dim=1).cpu()

    return torch.cat([torch.zeros(0, dtype=torch.int64), *runner.run(len(pixels), some)])


def _label(picture: Picture, net: Classifier) -> int:
    if picture.label is None:
        raise OptionError(f"{picture.name} has no label; write explains='predicted', or give images with labels.")
    return net.class_index(picture.label)
