"""The scenes as a data set for training, and as images to open by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset

from suffice.errors import OptionError
from suffice.plugins import unknown
from suffice.vision.images import split_slice
from suffice.vision.images.picture import Images, Picture
from suffice.vision.images.sources import PilSource
from suffice.zoo.scenes.marks import is_marked, paint_marks
from suffice.zoo.scenes.plan import labels_of
from suffice.zoo.scenes.render import find_boxes, render, render_pixels

# First image number and count. All splits are stretches of one stream, so they differ in nothing but the numbers.
SPLITS: dict[str, tuple[int, int]] = {
    "train": (0, 200_000),
    "validation": (1_000_000, 10_000),
    "test": (2_000_000, 10_000),
}

_BLOCK = 32
MARKED = "-marked"  # after the name of a split: the same scenes with a planted shortcut


def to_bytes(pixels: Tensor) -> Tensor:
    """Round pixels to the 256 levels of an image file.

    Args:
        pixels: float [...] in [0, 1].

    Returns:
        uint8 [...].

    Example:
        >>> to_bytes(torch.tensor([0.0, 0.5, 1.0])).tolist()
        [0, 128, 255]
    """
    # The half is added by hand: rounding halves to even would make levels of different width.
    return (pixels * 255 + 0.5).floor().to(torch.uint8)


class Scenes(Dataset[tuple[Image.Image, int]]):
    """A split as a map-style data set of (PIL image, label). A ``DataLoader`` fetches whole batches at once.

    Args:
        split: ``"train"``, ``"validation"`` or ``"test"``.
        seed: Which world.

    Example:
        >>> scenes = Scenes("test")
        >>> image, label = scenes[0]
        >>> len(scenes), image.size, image.mode
        (10000, (56, 56), 'RGB')
    """

    def __init__(self, split: str = "train", seed: int = 0) -> None:
        self.first, self.count = _split(split)
        self.split, self.seed = split, seed

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, position: int) -> tuple[Image.Image, int]:
        return self.__getitems__([position])[0]

    def __getitems__(self, positions: Sequence[int]) -> list[tuple[Image.Image, int]]:
        """Several items, rendered together; data loaders know this name."""
        numbers = []
        for position in positions:
            if not -self.count <= position < self.count:
                raise IndexError(f"There is no image {position}; the split {self.split!r} has {self.count}.")
            numbers.append(self.first + position % self.count)
        pixels, labels = render_pixels(torch.tensor(numbers, dtype=torch.int64), self.seed)
        images = [Image.fromarray(image.numpy()) for image in to_bytes(pixels).permute(0, 2, 3, 1).contiguous()]
        return list(zip(images, labels.tolist(), strict=True))

    def __repr__(self) -> str:
        return f"Scenes({self.split!r}, seed={self.seed}): {self.count} images"


@dataclass(frozen=True)
class SceneSource:
    """The pixels of one scene, rendered when somebody looks."""

    number: int
    seed: int
    name: str
    marked: bool = False

    def read(self) -> Image.Image:
        """Render the image, and its neighbors with it, as most readers go through all."""
        block = _block(self.number // _BLOCK, self.seed, self.marked)
        return Image.fromarray(block[self.number % _BLOCK].permute(1, 2, 0).contiguous().numpy())

    def mask(self) -> Tensor:
        """Where the creature is to be seen: all of its parts, but for what hides them; bool [56, 56]."""
        # A mark hides nothing of it, but for a pixel in one of ten thousand scenes.
        return _masks(self.number // _BLOCK, self.seed)[self.number % _BLOCK]

    def fingerprint(self) -> str:
        """Hash of the pixels, the same as for a PIL image that holds them."""
        return PilSource(self.read(), self.name).fingerprint()


@lru_cache(maxsize=64)
def _block(block: int, seed: int, marked: bool) -> Tensor:
    """Bytes of 32 consecutive images, [32, 3, 56, 56]; some 20 MB of them are kept."""
    numbers = torch.arange(block * _BLOCK, (block + 1) * _BLOCK)
    pixels, labels = render_pixels(numbers, seed)
    return to_bytes(paint_marks(pixels, labels, is_marked(numbers, labels, seed)) if marked else pixels)


@lru_cache(maxsize=64)
def _masks(block: int, seed: int) -> Tensor:
    """Where creatures are to be seen in 32 consecutive images, bool [32, 56, 56]."""
    return render(torch.arange(block * _BLOCK, (block + 1) * _BLOCK), seed).parts.any(dim=1)


def open_scenes(rest: str) -> Images:
    """Open scenes by name: what follows ``scenes:`` in ``suffice.open_images("scenes:test[:200]")``.

    Args:
        rest: A split, perhaps with a slice: ``"test"``, ``"test[:200]"``, ``"train[::100]"``. With ``-marked`` after
            its name, as in ``"test-marked[:200]"``, nine in ten scenes of two classes have a mark in a corner: a
            planted shortcut, see :mod:`suffice.zoo.scenes.marks`.

    Returns:
        Images with labels (class numbers), boxes (the whole object) and masks (what is to be seen of it), of the world
        with seed 0.

    Example:
        >>> images = open_scenes("test[:8]")
        >>> images[0].name, len(images[0].boxes), images[0].decode().size, images[0].read_mask().shape
        ('scenes:test[0]', 1, (56, 56), torch.Size([56, 56]))
    """
    split, part = split_slice(rest)
    marked = split.endswith(MARKED)
    first, count = _split(split.removesuffix(MARKED))
    positions = range(count)[part]
    if not positions:
        raise OptionError(f"There is no image in scenes:{rest}; the split {split!r} has {count}.")
    numbers = torch.arange(positions.start, positions.stop, positions.step) + first
    # The boxes have to be at hand, as a picture has no way to find them later.
    labels, boxes = labels_of(numbers).tolist(), find_boxes(numbers).tolist()
    pictures = []
    for position, label, (x0, y0, x1, y1) in zip(positions, labels, boxes, strict=True):
        name = f"scenes:{split}[{position}]"
        source = SceneSource(first + position, 0, name, marked)
        pictures.append(Picture(name, source, boxes=((x0, y0, x1, y1),), stored_label=label, read_mask=source.mask))
    return Images(pictures)


def _split(split: str) -> tuple[int, int]:
    if split not in SPLITS:
        raise unknown("split of the scenes", split, SPLITS)
    return SPLITS[split]
