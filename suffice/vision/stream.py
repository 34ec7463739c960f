"""Batches of pixels in order, decoded ahead by threads, with bounded memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

import torch
from PIL import Image
from torch import Tensor

from suffice.errors import ImageError, ImageTooLarge, OptionError, UnreadableImage
from suffice.options import Count, check_options
from suffice.vision.geometry import Geometry, as_pixels
from suffice.vision.images.picture import Images, Picture

OnError = Literal["raise", "skip"]
Prepare = Callable[[Image.Image | Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class PixelBatch:
    """Some images, ready for a model.

    Attributes:
        index: Position of each image in the sequence, [B] int64.
        decoded: [B, 3, H, W], uint8 or float32 in [0, 1].
    """

    index: Tensor
    decoded: Tensor

    @property
    def pixels(self) -> Tensor:
        """Their pixels, [B, 3, H, W] in [0, 1], float32."""
        return as_pixels(self.decoded)

    def on(self, device: torch.device) -> Tensor:
        """Their pixels on a device, to which bytes are moved as such."""
        return as_pixels(self.decoded.to(device))


@dataclass(frozen=True)
class Skip:
    """An image that could not be used: its position in the sequence, its name, and what was wrong with it."""

    index: int
    name: str
    reason: str


class Decoding:
    """Images one after the other in order, decoded ahead by threads; those that are broken are left out.

    It ends its threads when it is closed or exhausted. Made by :meth:`PixelStream.one_by_one`.
    """

    def __init__(self, given: PixelStream, skipped: list[Skip]) -> None:
        self._given, self._skipped = given, skipped
        self._waiting = enumerate(given.images)
        self._running: deque[tuple[int, Picture, Future[Tensor]]] = deque()
        self._all_running = False
        self._shape: torch.Size | None = None
        self._pool = ThreadPoolExecutor(given.workers, thread_name_prefix="suffice-decode")
        geometry = given.geometry
        self._bring = geometry.decoded if isinstance(geometry, Geometry) else geometry
        self._types = (torch.float32, torch.uint8)[: 1 + isinstance(geometry, Geometry)]

    def ready(self, count: int) -> bool:
        """Whether so many images, or all that are left, are decoded by now; never more than are decoded ahead."""
        self._run_ahead()
        first = [future for _, _, future in islice(self._running, count)]
        return (len(first) == count or self._all_running) and all(future.done() for future in first)

    def take(self, count: int) -> PixelBatch | None:
        """The next images, up to so many; None where none are left."""
        taken: list[tuple[int, Tensor]] = []
        while len(taken) < count:
            self._run_ahead()
            if not self._running:
                self.close()
                break
            taken += self._first()
        if not taken:
            return None
        index, decoded = zip(*taken, strict=True)
        if len({one.dtype for one in decoded}) > 1:
            decoded = tuple(map(as_pixels, decoded))
        return PixelBatch(torch.tensor(index), torch.stack(decoded))

    def close(self) -> None:
        """Wait for what is being decoded, and let go of the rest."""
        self._waiting = enumerate([])
        self._running.clear()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run_ahead(self) -> None:
        for index, picture in islice(self._waiting, self._given.ahead - len(self._running)):
            self._running.append((index, picture, self._pool.submit(self._prepared, picture)))
        self._all_running = len(self._running) < self._given.ahead

    def _prepared(self, picture: Picture) -> Tensor:
        decoded = picture.decode()
        try:
            return self._bring(decoded)
        except ImageTooLarge as error:  # which does not know the name
            raise ImageTooLarge(f"{picture.name}: {error}") from error

    def _first(self) -> list[tuple[int, Tensor]]:
        """The first image that is being decoded; none where it is broken."""
        index, picture, future = self._running.popleft()
        try:
            pixels = future.result()
        except ImageError as error:
            if self._given.on_error == "raise":
                raise
            self._skipped.append(Skip(index, picture.name, str(error)))
            return []
        self._check(pixels, picture.name)
        return [(index, pixels)]

    def _check(self, pixels: Tensor, name: str) -> None:
        if pixels.dim() != 3 or pixels.shape[0] != 3 or pixels.dtype not in self._types:
            seen = f"{pixels.dtype} {list(pixels.shape)}"
            raise OptionError(f"Geometry made {seen} of {name}; expected float32 [3, H, W].")
        self._shape = self._shape or pixels.shape
        if pixels.shape != self._shape:
            seen = f"{list(pixels.shape)} of {name}, but {list(self._shape)} of the first image"
            raise OptionError(f"Geometry made {seen}; a batch needs one size.")


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
    ahead: int
    skipped: list[Skip] = field(default_factory=list)

    def one_by_one(self) -> Decoding:
        """The images without batches, from the beginning."""
        self.skipped = []
        return Decoding(self, self.skipped)

    def __iter__(self) -> Iterator[PixelBatch]:
        return self._batches(self.one_by_one())

    def _batches(self, decoding: Decoding) -> Iterator[PixelBatch]:
        # Closed also when the loop over the batches is left early, or interrupted.
        with closing(decoding):
            while batch := decoding.take(self.batch_size):
                yield batch
                del batch  # or it would stay in memory while the next is gathered


def readable(images: Images, on_error: OnError = "skip", most: int | None = None) -> tuple[Images, list[Skip]]:
    """The images that can be read, and the others; for work that goes over them more than once.

    Args:
        images: To look at.
        on_error: With ``"raise"`` nothing is looked at: the first that cannot be read is an error where it is used.
        most: As many as are enough; what comes after them is not looked at.
    """
    if on_error == "raise":
        return images[:most], []
    looked = stream(images, lambda _: torch.zeros(3, 1, 1), batch_size=min(most or 256, 256), on_error="skip")
    good: list[int] = []
    for batch in looked:
        good += batch.index.tolist()
        if most is not None and len(good) >= most:
            break
    if not good:
        raise UnreadableImage(f"None of the images could be read. {looked.skipped[0].reason}")
    if most is not None and len(good) >= most:
        good = good[:most]
        return images[good], [skip for skip in looked.skipped if skip.index < good[-1]]
    return (images[good] if looked.skipped else images), looked.skipped


def stream(
    images: Images,
    geometry: Prepare,
    *,
    batch_size: Count = 64,
    workers: Count | None = None,
    on_error: OnError = "raise",
    ahead: Count | None = None,
) -> PixelStream:
    """Decode images, bring them to one size, and batch them.

    Threads decode ahead of what is used, so far that memory does not grow with the number of images.

    Args:
        images: In the order wanted.
        geometry: Takes what :meth:`Picture.decode` gives, returns float32 [3, H, W], the same size for all.
        batch_size: Images in a batch; only the last one may have fewer, also where images are skipped.
        workers: Number of threads; default: one per core, at most 8.
        on_error: ``"raise"`` the error of an image that cannot be read, or ``"skip"`` it and note it in
            ``.skipped``. Errors that are not about an image are always raised.
        ahead: How many images to decode ahead; default: a little more than two batches.

    Returns:
        An iterable of :class:`PixelBatch`, in the order of the images.

    Example:
        >>> from suffice.vision.images import open_images
        >>> images = open_images(torch.rand(5, 3, 8, 8))
        >>> [batch.index.tolist() for batch in stream(images, lambda pixels: pixels, batch_size=2)]
        [[0, 1], [2, 3], [4]]
    """
    check_options({"batch_size": batch_size, "workers": workers, "on_error": on_error, "ahead": ahead}, stream)
    workers = workers or min(8, os.cpu_count() or 1)
    return PixelStream(images, geometry, batch_size, workers, on_error, ahead or 2 * batch_size + workers)
