"""Batches of pixels in order, decoded ahead by threads, with bounded memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

import torch
from PIL import Image
from torch import Tensor

from suffice.errors import ImageError, OptionError, UnreadableImage
from suffice.options import Count, check_options
from suffice.vision.images.picture import Images, Picture

OnError = Literal["raise", "skip"]
Prepare = Callable[[Image.Image | Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class PixelBatch:
    """Some images, ready for a model."""

    index: Tensor  # position of each image in the sequence [B], int64
    pixels: Tensor  # [B, 3, H, W] in [0, 1], float32


@dataclass(frozen=True)
class Skip:
    """An image that could not be used: its position in the sequence, its name, and what was wrong with it."""

    index: int
    name: str
    reason: str


@dataclass(eq=False)
class PixelStream:
    """Batches of pixels, from the beginning at each iteration; made by :func:`stream`.

    ``skipped`` are the images that the latest iteration skipped, so far.
    """

    images: Images
    geometry: Prepare
    batch_size: int
    workers: int
    on_error: OnError
    skipped: list[Skip] = field(default_factory=list)

    def __iter__(self) -> Iterator[PixelBatch]:
        self.skipped = []
        return self._batches(self.skipped)

    def _batches(self, skipped: list[Skip]) -> Iterator[PixelBatch]:
        shape: torch.Size | None = None
        with closing(self._ready(skipped)) as ready:
            while chunk := list(islice(ready, self.batch_size)):
                for index, pixels in chunk:
                    shape = shape or pixels.shape
                    self._check(pixels, shape, self.images[index].name)
                yield PixelBatch(torch.tensor([index for index, _ in chunk]), torch.stack([p for _, p in chunk]))
                del chunk  # or the last batch would stay in memory while the next is gathered

    def _ready(self, skipped: list[Skip]) -> Generator[tuple[int, Tensor], None, None]:
        """Prepared images in order, those that are broken left out."""
        ahead = 2 * self.batch_size + self.workers
        waiting = enumerate(self.images)
        running: deque[tuple[int, Picture, Future[Tensor]]] = deque()
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="suffice-decode")
        try:
            while True:
                for index, picture in islice(waiting, ahead - len(running)):
                    running.append((index, picture, pool.submit(lambda p: self.geometry(p.decode()), picture)))
                if not running:
                    return
                index, picture, future = running.popleft()
                try:
                    pixels = future.result()
                except ImageError as error:
                    if self.on_error == "raise":
                        raise
                    skipped.append(Skip(index, picture.name, str(error)))
                else:
                    del future  # it holds the pixels too
                    yield index, pixels
        finally:
            # Reached also when the loop over the batches is left early, or interrupted.
            pool.shutdown(wait=True, cancel_futures=True)

    def _check(self, pixels: Tensor, shape: torch.Size, name: str) -> None:
        if pixels.dim() != 3 or pixels.shape[0] != 3 or pixels.dtype != torch.float32:
            seen = f"{pixels.dtype} {list(pixels.shape)}"
            raise OptionError(f"Geometry made {seen} of {name}; expected float32 [3, H, W].")
        if pixels.shape != shape:
            seen = f"{list(pixels.shape)} of {name}, but {list(shape)} of the first image"
            raise OptionError(f"Geometry made {seen}; a batch needs one size.")


def readable(images: Images, on_error: OnError = "skip") -> tuple[Images, list[Skip]]:
    """The images that can be read, and the others; for work that goes over them more than once.

    With ``on_error="raise"`` nothing is looked at: the first that cannot be read is an error where it is used.
    """
    if on_error == "raise":
        return images, []
    looked = stream(images, lambda _: torch.zeros(3, 1, 1), batch_size=256, on_error="skip")
    good = [index for batch in looked for index in batch.index.tolist()]
    if not good:
        raise UnreadableImage(f"None of the images could be read. {looked.skipped[0].reason}")
    return (images[good] if looked.skipped else images), looked.skipped


def stream(
    images: Images,
    geometry: Prepare,
    *,
    batch_size: Count = 64,
    workers: Count | None = None,
    on_error: OnError = "raise",
) -> PixelStream:
    """Decode images, bring them to one size, and batch them.

    Threads decode a little more than two batches ahead, so memory does not grow with the number of images.

    Args:
        images: In the order wanted.
        geometry: Takes what :meth:`Picture.decode` gives, returns float32 [3, H, W], the same size for all.
        batch_size: Images in a batch; only the last one may have fewer, also where images are skipped.
        workers: Number of threads; default: one per core, at most 8.
        on_error: ``"raise"`` the error of an image that cannot be read, or ``"skip"`` it and note it in
            ``.skipped``. Errors that are not about an image are always raised.

    Returns:
        An iterable of :class:`PixelBatch`, in the order of the images.

    Example:
        >>> from suffice.vision.images import open_images
        >>> images = open_images(torch.rand(5, 3, 8, 8))
        >>> [batch.index.tolist() for batch in stream(images, lambda pixels: pixels, batch_size=2)]
        [[0, 1], [2, 3], [4]]
    """
    check_options({"batch_size": batch_size, "workers": workers, "on_error": on_error}, stream)
    return PixelStream(images, geometry, batch_size, workers or min(8, os.cpu_count() or 1), on_error)
