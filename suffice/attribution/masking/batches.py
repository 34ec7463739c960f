"""Long work in as large batches as memory allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from suffice.perturb import Forwarder

Part = TypeVar("Part")


def in_batches(forwarder: Forwarder, count: int, work: Callable[[slice], Part]) -> Iterator[Part]:
    """Results of all rows, batch by batch; where memory runs out, again with smaller batches.

    Args:
        forwarder: Knows how many inputs go through the model at once.
        count: How many rows there are.
        work: From some of the rows to their result.

    Yields:
        The results, in the order of the rows.
    """
    start = 0
    while start < count:
        rows = slice(start, min(start + forwarder.batch_size, count))
        try:
            part = work(rows)
        except RuntimeError as error:  # out of memory is one, on the GPU and on the CPU
            forwarder.make_room(error)
            continue
        yield part
        start = rows.stop
