"""The ways to the pixels of one picture: a file, bytes, a PIL image, an array, an item of a data set."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from suffice.errors import ImageError, UnreadableImage
from suffice.vision.identity import content_hash
from suffice.vision.images.arrays import as_float, fingerprint, pixel_batch, tensor_of_array, unify
from suffice.vision.images.decode import check_size, decode, to_rgb
from suffice.vision.images.picture import Label, PixelSource, as_label

# Two threads must not load the same lazily opened PIL image at once: they would share its file position.
_pil_loading = threading.Lock()


@dataclass(frozen=True)
class FileSource:
    """A file in one of the supported formats."""

    path: str
    max_pixels: int | None = None

    def read(self) -> Image.Image:
        """Decode the file."""
        return decode(self.path, max_pixels=self.max_pixels)

    def fingerprint(self) -> str:
        """Hash of the bytes of the file."""
        try:
            return content_hash(Path(self.path).read_bytes())
        except (OSError, ValueError) as error:  # ValueError: the path contains a null character
            raise UnreadableImage(f"Cannot read {self.path}: {error}.") from error


@dataclass(frozen=True)
class EncodedSource:
    """The bytes of a file in one of the supported formats."""

    data: bytes
    name: str
    max_pixels: int | None = None

    def read(self) -> Image.Image:
        """Decode the bytes."""
        return decode(self.data, name=self.name, max_pixels=self.max_pixels)

    def fingerprint(self) -> str:
        """Hash of the bytes, the same as for a file that holds them."""
        return content_hash(self.data)


@dataclass(frozen=True)
class PilSource:
    """A PIL image of any mode, taken as it is: whoever opened it decides whether to turn it upright."""

    image: Image.Image
    name: str
    max_pixels: int | None = None

    def read(self) -> Image.Image:
        """Convert to RGB."""
        if 0 in self.image.size:
            raise UnreadableImage(f"{self.name} has size {self.image.size}, so it holds no pixels.")
        check_size(self.image.size, self.name, self.max_pixels)
        try:
            with _pil_loading:
                self.image.load()
            return to_rgb(self.image)
        except Exception as error:  # it may come from a broken file that was opened but not read; see decode
            raise UnreadableImage(f"Cannot read {self.name}: {error}.") from error

    def fingerprint(self) -> str:
        """Hash of the shape and of the RGB pixels."""
        return fingerprint(torch.from_numpy(np.array(self.read())).permute(2, 0, 1))


@dataclass(frozen=True)
class ArraySource:
    """Pixels in memory, [C, H, W] with C = 1, 3 or 4. They are not copied, so do not change them."""

    pixels: Tensor | np.ndarray[Any, Any]
    name: str

    def _unified(self) -> Tensor:
        pixels = self.pixels if isinstance(self.pixels, Tensor) else tensor_of_array(self.pixels)
        return unify(pixels.cpu(), self.name)

    def read(self) -> Tensor:
        """Float32 [3, H, W] in [0, 1], on the CPU; a copy."""
        return torch.from_numpy(as_float(self._unified()).numpy().copy())

    def fingerprint(self) -> str:
        """Hash of the shape and pixels."""
        return fingerprint(self._unified())


class SharedDataset:
    """A map-style data set that one thread at a time may read: most were never meant for more."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self._lock = threading.Lock()

    def __getitem__(self, index: int) -> Any:
        with self._lock:
            return self.dataset[index]

    def __reduce__(self) -> tuple[Any, ...]:  # the lock cannot be pickled and need not be
        return SharedDataset, (self.dataset,)


class _Fetched(ABC):
    """A picture that must be fetched before it is known what holds its pixels."""

    @abstractmethod
    def _source(self) -> PixelSource: ...

    def read(self) -> Image.Image | Tensor:
        """Fetch the image and decode it."""
        return self._source().read()

    def fingerprint(self) -> str:
        """Fetch the image and hash it."""
        return self._source().fingerprint()


@dataclass(frozen=True)
class DatasetItem(_Fetched):
    """One item of a map-style data set: an image, or (image, label)."""

    shared: SharedDataset
    index: int
    name: str
    max_pixels: int | None = None

    def _item(self) -> tuple[Any, Any]:
        item = self.shared[self.index]
        if isinstance(item, (tuple, list)):
            if len(item) != 2:
                raise ImageError(f"{self.name} has {len(item)} parts; expected an image, or (image, label).")
            return item[0], item[1]
        return item, None

    def label(self) -> Label | None:
        """The second part of the item, if it has one."""
        return as_label(self._item()[1], self.name)

    def _source(self) -> PixelSource:
        return source_of(self._item()[0], self.name, self.max_pixels)


@dataclass(frozen=True)
class HuggingFaceRow(_Fetched):
    """One row of a Hugging Face data set whose image column is not decoded by it, but here.

    So the pixel limit and the list of formats hold for these images too, and an image has the identity of its
    file. ``labels`` has only the label column, so that reading labels does not read images.
    """

    dataset: Any
    labels: Any
    column: str
    label_column: str | None
    index: int
    name: str
    max_pixels: int | None = None

    def label(self) -> Label | None:
        """Value of the label column."""
        return as_label(self.labels[self.index][self.label_column], self.name)

    def _source(self) -> PixelSource:
        image = self.dataset[self.index][self.column]
        if isinstance(image, Mapping):
            image = next((image[key] for key in ("bytes", "path") if image.get(key) is not None), image)
        return source_of(image, self.name, self.max_pixels)


def source_of(image: Any, name: str, max_pixels: int | None) -> PixelSource:
    """The source for exactly one image, of any kind that holds or names one."""
    if isinstance(image, Image.Image):
        return PilSource(image, name, max_pixels)
    if isinstance(image, (str, Path)):
        return FileSource(str(image), max_pixels)
    if isinstance(image, (bytes, bytearray)):
        return EncodedSource(bytes(image), name, max_pixels)
    if isinstance(image, (Tensor, np.ndarray)):
        batch = pixel_batch(image, name)
        if len(batch) == 1:
            return ArraySource(batch[0], name)
        raise ImageError(f"{name} is {len(batch)} images; expected one.")
    raise ImageError(f"{name} is of type {type(image).__name__}; expected a PIL image, tensor, array, path or bytes.")
