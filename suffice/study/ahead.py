"""Images of the next shard, decoded while this one is measured."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

from PIL import Image
from torch import Tensor

from suffice.vision import Images
from suffice.vision.images import Picture

MOST = 1 << 29  # bytes of pixels
Pixels = Image.Image | Tensor


class DecodedAhead:
    """Images that threads decode before anybody asks for them.

    Each is held until it is read for the first time, and all of them together are at most about ``most`` bytes; what is
    not decoded by then, or is read again, is decoded where it is read. An image that is broken says so there, too.

    Args:
        images: In the order in which they will be read.
        most: Bytes of pixels to hold.

    Attributes:
        images: The same images, to be read.

    Example:
        >>> import torch
        >>> from suffice.vision import open_images
        >>> ahead = DecodedAhead(open_images(torch.rand(3, 3, 8, 8)))
        >>> ahead.images.names, ahead.images[1].decode().shape
        (['tensor[0]', 'tensor[1]', 'tensor[2]'], torch.Size([3, 8, 8]))
        >>> ahead.close()
    """

    def __init__(self, images: Images, most: int = MOST) -> None:
        self._most, self._held = most, 0
        self._pool = ThreadPoolExecutor(min(8, os.cpu_count() or 1), thread_name_prefix="suffice-ahead")
        self.images = Images(
            replace(picture, source=_Ahead(picture, self._pool.submit(self._decode, picture))) for picture in images
        )
        self._pool.shutdown(wait=False)  # threads end when they are done

    def close(self) -> None:
        """Wait for what is being decoded, and leave the rest."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _decode(self, picture: Picture) -> Pixels | None:
        if self._held >= self._most:
            return None
        pixels = picture.decode()
        size = pixels.nbytes if isinstance(pixels, Tensor) else 3 * pixels.width * pixels.height
        self._held += size  # by several threads at once: one that is forgotten does no harm
        return pixels


@dataclass(eq=False)
class _Ahead:
    """Where the pixels of a picture come from that is perhaps decoded already."""

    picture: Picture
    future: Future[Pixels | None] | None

    def read(self) -> Pixels:
        future, self.future = self.future, None
        # What no thread has begun is not waited for.
        pixels = None if future is None or future.cancel() else future.result()
        return self.picture.decode() if pixels is None else pixels

    def fingerprint(self) -> str:
        return self.picture.id
