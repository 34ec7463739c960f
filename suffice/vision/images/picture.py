"""A picture, and a sequence of pictures that stay where they are until somebody looks."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, overload

import numpy as np
from PIL import Image
from torch import Tensor

from suffice.errors import ImageError, OptionError

Label = int | str
Box = tuple[float, float, float, float]
Boxes = tuple[Box, ...]


class PixelSource(Protocol):
    """Where the pixels of one picture come from. Write one of these to bring pictures of another kind."""

    def read(self) -> Image.Image | Tensor:
        """The pixels: an RGB image, or a float32 tensor [3, H, W] in [0, 1] on the CPU."""
        ...

    def fingerprint(self) -> str:
        """A hash of the content; equal content has an equal hash."""
        ...


@dataclass(frozen=True, eq=False)
class Picture:
    """One picture: a name, perhaps a label, boxes, and a mask, and a way to its pixels.

    Args:
        name: What reports and errors call it.
        source: Where the pixels come from.
        boxes: Objects in it as (x0, y0, x1, y1), in pixels of the upright original; None if not known.
        stored_label: The label, or a function that fetches it; read it as ``.label``.
        read_mask: A function that fetches where objects are to be seen, bool [H, W], in pixels of the upright original;
            None if not known.

    Example:
        >>> import torch
        >>> from suffice.vision.images import open_images
        >>> picture = open_images(torch.zeros(3, 8, 8), labels=["cat"])[0]
        >>> picture.name, picture.label, picture.decode().shape
        ('tensor', 'cat', torch.Size([3, 8, 8]))
    """

    name: str
    source: PixelSource = field(repr=False)
    boxes: Boxes | None = None
    stored_label: Label | Callable[[], Label | None] | None = field(default=None, repr=False)
    read_mask: Callable[[], Tensor] | None = field(default=None, repr=False)

    @property
    def label(self) -> Label | None:
        """The class that somebody gave it: an index, a name, or None. May read the item of a data set."""
        return self.stored_label() if callable(self.stored_label) else self.stored_label

    @cached_property
    def id(self) -> str:
        """Hash of the content: the bytes of a file, the shape and pixels of what is in memory."""
        return self.source.fingerprint()

    def decode(self) -> Image.Image | Tensor:
        """Decode files and PIL images to an RGB image; tensors and arrays to a float32 tensor [3, H, W] in [0, 1].

        Raises:
            ImageError: It cannot be read.
        """
        return self.source.read()

    def labeled(self, label: Label | None) -> Picture:
        """The same picture with another label, or with none."""
        return replace(self, stored_label=label)


class Images(Sequence[Picture]):
    """Pictures in a fixed order. Nothing is decoded or hashed until asked for.

    Example:
        >>> import torch
        >>> from suffice.vision.images import open_images
        >>> images = open_images(torch.rand(5, 3, 8, 8), labels=[0, 1, 0, 1, 2])
        >>> images
        Images(5, labeled, 3 classes)
        >>> images[1:3].names
        ['tensor[1]', 'tensor[2]']
        >>> images[torch.tensor(images.labels) == 0].names
        ['tensor[0]', 'tensor[2]']
    """

    def __init__(self, pictures: Iterable[Picture] = ()) -> None:
        self._pictures = tuple(pictures)
        for picture in self._pictures:
            if not isinstance(picture, Picture):
                raise OptionError(f"Images() takes pictures, not {type(picture).__name__}; write open_images(…).")

    @property
    def names(self) -> list[str]:
        """Name of each picture."""
        return [picture.name for picture in self._pictures]

    @property
    def labels(self) -> list[Label | None]:
        """Label of each picture; None where it has none."""
        return [picture.label for picture in self._pictures]

    @property
    def boxes(self) -> list[Boxes | None]:
        """Boxes of each picture; None where they are not known."""
        return [picture.boxes for picture in self._pictures]

    @property
    def ids(self) -> list[str]:
        """Content hash of each picture; reads every picture the first time."""
        return [picture.id for picture in self._pictures]

    def __len__(self) -> int:
        return len(self._pictures)

    def __iter__(self) -> Iterator[Picture]:
        return iter(self._pictures)

    @overload
    def __getitem__(self, key: int) -> Picture: ...

    @overload
    def __getitem__(self, key: slice | Sequence[int] | Sequence[bool] | Tensor | np.ndarray[Any, Any]) -> Images: ...

    def __getitem__(self, key: Any) -> Picture | Images:
        """One picture by position, or several by slice, positions, or a mask with one bool per picture."""
        if isinstance(key, slice):
            return Images(self._pictures[key])
        if isinstance(key, (bool, np.bool_)):
            raise TypeError("A single bool is no position; give an integer, or a mask with one bool per picture.")
        positions = key.tolist() if isinstance(key, (Tensor, np.ndarray)) else key
        if isinstance(positions, (list, tuple, range)):
            return Images(self._pictures[position] for position in self._positions(positions))
        return self._pictures[operator.index(positions)]

    def _positions(self, key: Sequence[Any]) -> Iterable[int]:
        mask = [isinstance(entry, (bool, np.bool_)) for entry in key]
        if not any(mask):
            return [operator.index(entry) for entry in key]
        if not all(mask):
            raise TypeError("A selection of pictures is either positions or a mask of bools, not both.")
        if len(key) != len(self):
            raise IndexError(f"The mask has {len(key)} entries for {len(self)} pictures.")
        return [position for position, keep in enumerate(key) if keep]

    def __add__(self, other: Images) -> Images:
        if not isinstance(other, Images):
            return NotImplemented
        return Images((*self._pictures, *other._pictures))

    def __repr__(self) -> str:
        known = [picture.stored_label for picture in self._pictures if picture.stored_label is not None]
        if not known:
            return f"Images({len(self)})"
        if any(callable(label) for label in known):  # counting the classes would read the whole data set
            return f"Images({len(self)}, labels on demand)"
        share = "labeled" if len(known) == len(self) else f"{len(known)} labeled"
        classes = len(set(known))
        return f"Images({len(self)}, {share}, {classes} class{'' if classes == 1 else 'es'})"


def as_label(value: Any, name: str) -> Label | None:
    """A label as Python has it: int, str or None; also from scalars of numpy and torch."""
    if isinstance(value, np.generic) or (isinstance(value, (Tensor, np.ndarray)) and value.ndim == 0):
        value = value.item()
    if value is None or (isinstance(value, (int, str)) and not isinstance(value, bool)):
        return value
    raise ImageError(f"The label of {name} is {value!r}; expected an integer, a text, or None.")
