"""Batch sizes: the one loop that cuts work into pieces that fit into memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import TypeVar

import torch

from suffice.errors import SufficeWarning

T = TypeVar("T")


class BatchLoop:
    """How many inputs go through a model at once, and the one loop that halves that when memory runs out.

    ``size`` is the current number and stays small once it was halved. Loops of one object may be nested: what does not
    fit inside is raised to the loop around it, which goes on with fewer rows.

    Example:
        >>> loop = BatchLoop(4, torch.device("cpu"))
        >>> list(loop.run(3, lambda rows: (rows.start, rows.stop), cost=2))
        [(0, 2), (2, 3)]
    """

    def __init__(self, size: int, device: torch.device) -> None:
        self.size = size
        self.device = device
        self._warned = False

    def run(self, count: int, work: Callable[[slice], T], *, cost: int = 1) -> Iterator[T]:
        """Run work on rows 0 to ``count``, piece by piece and in order, and yield what it returns.

        A piece is as many rows, of ``cost`` inputs each, as ``size`` inputs are, and at least one. Where it runs out of
        memory, work is called again with fewer; errors about something else, or that this cannot help, are raised.
        """
        start = 0
        while start < count:
            rows = min(self._rows(cost), count - start)
            try:
                result = work(slice(start, start + rows))
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
                if self.size >= rows * cost:
                    self.size = max(1, rows * cost // 2)
                if self._rows(cost) >= rows:
                    raise
            else:
                yield result
                start += rows
                continue
            # Out of the except block: only now does the error no longer hold the tensors of the frames it came through.
            self._make_room(rows * cost)

    def _rows(self, cost: int) -> int:
        return max(1, self.size // cost)

    def _make_room(self, inputs: int) -> None:
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"Out of memory at batch size {inputs}; going on with smaller batches.", SufficeWarning, stacklevel=3
            )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that the memory of the GPU or of the host is used up."""
    # Of the host, of Apple's GPUs and of CUDA's libraries, which have no type of their own.
    words = ("can't allocate memory", "not enough memory", "out of memory", "STATUS_ALLOC_FAILED")
    return isinstance(error, torch.cuda.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and any(word in str(error) for word in words)
    )
