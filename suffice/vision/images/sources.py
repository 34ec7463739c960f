"""The ways to the pixels of one picture: a file, bytes, a PIL image, an array, an item of a data set."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from suffice.errors import ImageError, ImageTooLarge, UnreadableImage
from suffice.vision.identity import content_hash
from suffice.vision.images.arrays import as_float, fingerprint, pixel_batch, tensor_of_array, unify
from suffice.vision.images.class_names import ClassNames
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
class FileMask:
    """The mask of a picture, as a file in one of the supported formats: whatever is not black is an object."""

    path: str
    max_pixels: int | None = None

    def __call__(self) -> Tensor:
        """Decode the file, bool [H, W]."""
        return torch.from_numpy(np.asarray(decode(self.path, max_pixels=self.max_pixels)).any(axis=2))


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


class MapDataset:
    """A map-style data set of images or (image, label). One thread at a time reads it: few were meant for more."""

    has_labels = True  # perhaps: only an item can tell

    def __init__(self, dataset: Any) -> None:
        if len(dataset) == 0:
            raise ImageError(f"The data set {type(dataset).__name__} is empty.")
        self.dataset = dataset
        self.classes = ClassNames(dataset)
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:  # the lock cannot be pickled and need not be
        return MapDataset, (self.dataset,)

    def _item(self, index: int) -> tuple[Any, Any]:
        name = self._name(index)
        try:
            with self._lock:
                item = self.dataset[index]
        except Image.DecompressionBombError as error:
            raise ImageTooLarge(f"{name}: {error} To decode it anyway, raise PIL.Image.MAX_IMAGE_PIXELS.") from error
        except (OSError, SyntaxError) as error:  # what Pillow raises for broken files, in data sets that decode them
            raise UnreadableImage(f"Cannot read {name}: {error}.") from error
        if not isinstance(item, (tuple, list)):
            return item, None
        if len(item) != 2:
            raise ImageError(f"{name} has {len(item)} parts; expected an image, or (image, label).")
        return item[0], item[1]

    def _name(self, index: int) -> str:
        return f"{self.classes.kind}[{index}]"

    def image(self, index: int) -> Any:
        """The item, or its first part."""
        return self._item(index)[0]

    def label(self, index: int) -> Any:
        """The second part of the item, if it has one; where the data set names its classes, the name of that class."""
        label = self._item(index)[1]
        with self._lock:  # to compare it with the label of a data set inside, that one is read, too
            return self.classes.of(label, index, self._name(index))


class HuggingFaceDataset:
    """A Hugging Face data set whose image column is not decoded by it, but here.

    So the pixel limit and the list of formats hold for these images too, and an image has the identity of its file.
    """

    def __init__(self, dataset: Any) -> None:
        kinds = {column: type(feature).__name__ for column, feature in dataset.features.items()}
        columns = {kind: column for column, kind in reversed(kinds.items())}  # the first of each kind
        if "Image" not in columns:
            seen = ", ".join(f"{column} ({kind})" for column, kind in kinds.items())
            raise ImageError(f"The data set has no column of type Image; its columns are {seen}.")
        if len(dataset) == 0:
            raise ImageError("The data set is empty.")
        self.column, self.label_column = columns["Image"], columns.get("ClassLabel")
        self.has_labels = self.label_column is not None
        self.classes = ClassNames(dataset)
        # Without the user's format and transforms: what is wanted is the picture, not a model's input.
        plain = dataset.with_format(None)
        undecoded = type(dataset.features[self.column])(decode=False)
        self.images = plain.select_columns([self.column]).cast_column(self.column, undecoded)
        # Apart, so that reading labels does not read images.
        self.labels = plain.select_columns([self.label_column]) if self.has_labels else None

    def image(self, index: int) -> Any:
        """The bytes or the path of an image where the data set has them."""
        image = self.images[index][self.column]
        if isinstance(image, Mapping):
            return next((image[key] for key in ("bytes", "path") if image.get(key) is not None), image)
        return image

    def label(self, index: int) -> Any:
        """The name of the class in the label column."""
        if self.labels is None:
            return None
        return self.classes.of(self.labels[index][self.label_column], index, f"dataset[{index}]")


@dataclass(frozen=True)
class DatasetItem:
    """One picture of a data set, fetched when it is looked at."""

    dataset: MapDataset | HuggingFaceDataset
    index: int
    name: str
    max_pixels: int | None = None

    def label(self) -> Label | None:
        """Fetch the label."""
        return as_label(self.dataset.label(self.index), self.name)

    def _source(self) -> PixelSource:
        return source_of(self.dataset.image(self.index), self.name, self.max_pixels)

    def read(self) -> Image.Image | Tensor:
        """Fetch the image and decode it."""
        return self._source().read()

    def fingerprint(self) -> str:
        """Fetch the image and hash it."""
        return self._source().fingerprint()


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
