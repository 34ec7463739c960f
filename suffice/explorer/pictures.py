"""The images of a page: those that the server was started with, and those that somebody dropped on it."""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

import torch
from PIL import Image
from torch import Tensor

from suffice.draw.pictures import data_uri
from suffice.errors import ImageTooLarge, UnreadableImage
from suffice.explorer.errors import Unknown
from suffice.vision import Images, Picture, open_images
from suffice.vision.images.decode import decode

T = TypeVar("T")

MOST_BYTES = 20 * 2**20  # of an upload
MOST_PIXELS = 32_000_000
KEPT_UPLOADS = 32
THUMBNAIL = 112  # pixels of the longest side


class Kept(OrderedDict[Any, T]):
    """The things last used, up to so many."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def get_or(self, key: Any, make: Callable[[], T]) -> T:
        """What is kept under a key, made where it is not there."""
        if key in self:
            self.move_to_end(key)
            return self[key]
        value = self[key] = make()
        while len(self) > self.most:
            self.popitem(last=False)
        return value


class Pictures:
    """Images by key: ``"3"`` for the fourth of the collection, ``"u" + hash`` for an upload. A key is never a path.

    Example:
        >>> pictures = Pictures(open_images(torch.zeros(2, 3, 8, 8)))
        >>> len(pictures), pictures["1"].name
        (2, 'tensor[1]')
    """

    def __init__(self, images: Images) -> None:
        self.images = images
        self._uploads: Kept[Picture] = Kept(KEPT_UPLOADS)
        self._lock = threading.Lock()
        self._thumbnail = lru_cache(maxsize=512)(self._make_thumbnail)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, key: str) -> Picture:
        if re.fullmatch(r"[0-9]{1,9}", key) and int(key) < len(self.images):
            return self.images[int(key)]
        with self._lock:
            if key in self._uploads:
                return self._uploads[key]
        gone = "It was dropped on another page, or too long ago: drop it again." if key.startswith("u") else ""
        raise Unknown(f"There is no image {key[:40]!r}. {gone}".strip())

    def add(self, data: bytes, name: str) -> str:
        """Take in the bytes of an image file; returns its key.

        Raises:
            ImageError: It is too large, or no image that can be read.
        """
        if len(data) > MOST_BYTES:
            raise ImageTooLarge(f"The file has {len(data):,} bytes; up to {MOST_BYTES:,} are taken.")
        name = re.sub(r"[\x00-\x1f]", "", name.replace("\\", "/").rpartition("/")[2])[:120] or "image"
        image = decode(data, name=name, max_pixels=MOST_PIXELS)
        if min(image.size) < 8:
            raise UnreadableImage(f"{name} has {image.width} × {image.height} pixels; expected 8 or more a side.")
        key = "u" + hashlib.sha256(data).hexdigest()[:20]
        with self._lock:
            self._uploads.pop(key, None)  # it may have another name now
            # As a file: 32 decoded photographs would be gigabytes.
            self._uploads.get_or(key, lambda: replace(open_images(data, max_pixels=MOST_PIXELS)[0], name=name))
        return key

    def listed(self, offset: int, count: int) -> list[dict[str, Any]]:
        """Some images of the collection: ``key``, ``name``, ``label``, ``thumbnail``."""
        keys = [str(i) for i in range(offset, min(offset + count, len(self)))]
        return [self.about(key) for key in keys]

    def about(self, key: str) -> dict[str, Any]:
        """One image: ``key``, ``name``, ``label`` (null where it has none), ``thumbnail`` (null where unreadable)."""
        picture = self[key]
        label = picture.label
        return {
            "key": key,
            "name": picture.name,
            "label": None if label is None else str(label),
            "thumbnail": self._thumbnail(key),
        }

    def _make_thumbnail(self, key: str) -> str | None:
        try:
            image = as_picture(self[key].decode())
        except (UnreadableImage, ImageTooLarge):
            return None
        image.thumbnail((THUMBNAIL, THUMBNAIL), Image.Resampling.LANCZOS)
        return data_uri(image)


def as_picture(pixels: Image.Image | Tensor) -> Image.Image:
    """A copy of decoded pixels as an image of Pillow."""
    if isinstance(pixels, Image.Image):
        return pixels.copy()
    array = pixels.mul(255).round().to(torch.uint8).permute(1, 2, 0).cpu().numpy()
    return Image.fromarray(array)
