"""One function that opens whatever a user has; new kinds of collections join by :func:`register_images`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

from suffice.errors import ImageError, OptionError, UnreadableImage
from suffice.options import Count, check_options
from suffice.plugins import provide, provided, resolve
from suffice.vision.images.arrays import check_range, pixel_batch
from suffice.vision.images.listing import IMAGE_SUFFIXES, MANIFEST_SUFFIXES, open_folder, open_manifest
from suffice.vision.images.picture import Images, Picture, as_label
from suffice.vision.images.sources import (
    ArraySource,
    DatasetItem,
    FileSource,
    HuggingFaceDataset,
    MapDataset,
    source_of,
)

# Entry points of this group name what opens the images of a prefix.
GROUP = "suffice.images"


def open_images(
    source: Any, *, root: str | os.PathLike[str] | None = None, labels: Any = "auto", max_pixels: Count | None = None
) -> Images:
    """Open images of any kind, lazily.

    Args:
        source: One of

            * the path of an image; of a folder (with everything below it, sorted by path; where every image
              lies in a sub-folder, that is its label); of a ``.csv`` or ``.jsonl`` manifest, see
              :func:`~suffice.vision.images.listing.open_manifest`;
            * ``"name:rest"`` where ``name`` was registered by :func:`register_images`;
            * a PIL image, or the bytes of a file;
            * a tensor [3, H, W], [1, H, W], [N, 3, H, W] or [N, 1, H, W], uint8, uint16 or float in [0, 1];
            * an array H×W, H×W×C, N×H×W×C (C = 1, 3, 4), uint8, uint16 or float in [0, 1];
            * a map-style data set of images or (image, label) pairs, also one of Hugging Face, or a ``DataLoader`` of
              one; where it names its classes, labels are these names, as an index may mean another class to a model
              (see :class:`~suffice.vision.images.class_names.ClassNames` for parts, unions, and transforms);
            * a column of paths, such as a pandas ``Series``;
            * :class:`Images` (given back as they are) or a :class:`Picture`;
            * a list or tuple of all these.
        root: Folder that the paths in a manifest are relative to; default: the folder of the manifest.
        labels: ``"auto"`` takes the labels that the source has; None takes none; or give one per image.
        max_pixels: Refuse to decode larger images; default: ``PIL.Image.MAX_IMAGE_PIXELS``.

    Raises:
        ImageError: There is nothing to open, or it is of no known kind. A broken image shows when it is decoded.

    Example:
        >>> import torch
        >>> open_images([torch.rand(3, 8, 8), Image.new("L", (4, 4))]).names
        ['tensor[0]', 'image[1]']
    """
    check_options({"max_pixels": max_pixels}, open_images)
    if isinstance(source, Images):
        return _relabeled(source, labels)
    opening = _Opening(root, max_pixels)
    images = Images(opening.open(source, ()))
    if root is not None and not opening.root_used:
        raise OptionError("root= goes with a manifest (.csv or .jsonl), and there is none among what was given.")
    return _relabeled(images, labels)


def register_images(prefix: str, opener: Callable[[str], Images]) -> None:
    """Let :func:`open_images` understand ``"prefix:rest"``.

    Args:
        prefix: At least two letters, digits, hyphens or underscores, beginning with a letter; not yet in use.
        opener: Called with what follows the colon; returns the images. :func:`split_slice` helps.

    Example:
        >>> import torch
        >>> register_images("blank", lambda rest: open_images(torch.zeros(int(rest), 3, 8, 8)))
        >>> len(open_images("blank:5"))
        5
    """
    # One letter would be a drive on Windows.
    if not re.fullmatch(r"[A-Za-z][\w-]+", prefix):
        raise OptionError(f"The prefix is {prefix!r}; expected two or more letters, digits, hyphens or underscores.")
    if provided(GROUP).get(prefix, opener) is not opener:
        raise OptionError(f"The prefix {prefix!r} is taken by {provided(GROUP)[prefix]!r}; choose another one.")
    provide(GROUP, prefix, opener)


def split_slice(text: str) -> tuple[str, slice]:
    """Split a name from the slice that may follow it; without one, the slice of everything.

    Example:
        >>> split_slice("test[:200]"), split_slice("test")
        (('test', slice(None, 200, None)), ('test', slice(None, None, None)))
    """
    match = re.fullmatch(r"([^\[\]]*)(?:\[(-?\d+)?:(-?\d+)?(?::(-?\d+)?)?\])?", text)
    if match is None or match[4] in ("0", "-0"):
        raise OptionError(f"Cannot read {text!r}; expected a name, perhaps with a slice: test, test[:200], test[::10].")
    start, stop, step = (None if number is None else int(number) for number in match.groups()[1:])
    return match[1], slice(start, stop, step)


@dataclass
class _Opening:
    """One call of :func:`open_images`. ``position`` is the index of a source in the lists around it."""

    root: str | os.PathLike[str] | None
    max_pixels: int | None
    root_used: bool = False

    def open(self, source: Any, position: tuple[int, ...]) -> list[Picture]:
        if isinstance(source, Images):
            return list(source)
        if isinstance(source, Picture):
            return [source]
        if isinstance(source, (str, os.PathLike)):
            return self._path(os.fspath(source), listed=bool(position))
        if isinstance(source, (bytes, bytearray, Image.Image)):
            kind = "image" if isinstance(source, Image.Image) else "bytes"
            name = os.path.basename(getattr(source, "filename", "")) or _name(kind, position)
            return [Picture(name, source_of(source, name, self.max_pixels))]
        if _is_column(source):
            return self.open(source.tolist(), position)
        if isinstance(source, (Tensor, np.ndarray)):
            return _array(source, position)
        if isinstance(source, (list, tuple)):
            if not source:
                raise ImageError("The list of images is empty; give at least one image, path, array or tensor.")
            return [picture for i, entry in enumerate(source) for picture in self.open(entry, (*position, i))]
        if isinstance(source, DataLoader):  # its batches are for training; the pictures are in its data set
            return self.open(source.dataset, position)
        if isinstance(getattr(source, "features", None), Mapping) and hasattr(source, "__len__"):
            return self._items(HuggingFaceDataset(source), len(source), "dataset", position)
        # A stream of torch has the method to get an item, but only to raise an error.
        by_name_or_none = isinstance(source, (Mapping, IterableDataset)) or hasattr(source, "iloc")
        if hasattr(source, "__getitem__") and hasattr(source, "__len__") and not by_name_or_none:
            return self._items(MapDataset(source), len(source), type(source).__name__, position)
        raise ImageError(_unknown_kind(source))

    def _path(self, path: str, *, listed: bool) -> list[Picture]:
        prefix, colon, rest = path.partition(":")
        if colon and prefix in provided(GROUP):
            images = resolve(GROUP, prefix)(rest)
            if not isinstance(images, Images):
                raise OptionError(f"The opener of {prefix!r} returned {type(images).__name__}; it must return Images.")
            return list(images)
        # Among thousands of listed files nothing is touched before it is needed, and one that is missing must
        # not keep the others from opening.
        if listed and path.lower().endswith(IMAGE_SUFFIXES):
            return [Picture(path, FileSource(path, self.max_pixels))]
        if os.path.isdir(path):
            return open_folder(Path(path), self.max_pixels)
        if path.lower().endswith(MANIFEST_SUFFIXES):
            self.root_used = True
            return open_manifest(Path(path), self.root, self.max_pixels)
        if not listed and not os.path.lexists(path):
            known = f" Known prefixes: {', '.join(sorted(provided(GROUP))) or 'none'}." if colon else ""
            raise UnreadableImage(f"There is no file or folder {path!r}.{known}")
        return [Picture(path, FileSource(path, self.max_pixels))]

    def _items(
        self, dataset: MapDataset | HuggingFaceDataset, count: int, kind: str, position: tuple[int, ...]
    ) -> list[Picture]:
        items = [DatasetItem(dataset, i, _name(kind, (*position, i)), self.max_pixels) for i in range(count)]
        return [Picture(item.name, item, stored_label=item.label if dataset.has_labels else None) for item in items]


def _is_column(source: Any) -> bool:
    """Whether something is a pandas Series, or an array of names or other things that are not numbers."""
    if isinstance(source, np.ndarray):
        return source.ndim == 1 and source.dtype.kind in "OUT"
    return hasattr(source, "tolist") and hasattr(source, "iloc")


def _array(source: Tensor | np.ndarray[Any, Any], position: tuple[int, ...]) -> list[Picture]:
    kind = "tensor" if isinstance(source, Tensor) else "array"
    name = _name(kind, position)
    batch = pixel_batch(source, name)
    # Normalized pixels are the common mistake, so say it at once and not image by image later.
    if batch.is_floating_point() if isinstance(batch, Tensor) else batch.dtype.kind == "f":
        check_range(batch, name)
    if isinstance(batch, Tensor):
        batch = batch.cpu()  # all at once, not image by image
    names = [_name(kind, (*position, i)) for i in range(len(batch))] if source.ndim == 4 else [name]
    return [Picture(n, ArraySource(pixels, n)) for n, pixels in zip(names, batch, strict=True)]


def _name(kind: str, position: tuple[int, ...]) -> str:
    return kind + "".join(f"[{i}]" for i in position)


def _relabeled(images: Images, labels: Any) -> Images:
    if isinstance(labels, str) and labels == "auto":
        return images
    if labels is None:
        return Images(picture.labeled(None) for picture in images)
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise OptionError(f"labels= is {labels!r}; expected 'auto', None, or a sequence with one label per image.")
    given = list(labels)
    if len(given) != len(images):
        raise OptionError(f"labels= has {len(given)} entries for {len(images)} images; give one per image.")
    return Images(picture.labeled(as_label(label, picture.name)) for picture, label in zip(images, given, strict=True))


def _unknown_kind(source: Any) -> str:
    kind = type(source).__name__
    if isinstance(source, Mapping) or hasattr(source, "iloc"):
        return f"Cannot open a {kind} as images; choose one of its entries: {', '.join(map(repr, source))}."
    if hasattr(source, "__iter__"):
        return f"Cannot open a {kind} as images, as its items have no positions; write list(…), or use a map-style set."
    return f"Cannot open a {kind} as images; expected a path, PIL image, tensor, array, data set, or a list of these."
