"""Work that ends in time, and says a few times a minute how far it is."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from suffice.progress import clock_time
from suffice.zoo.training import Progress


@dataclass(frozen=True)
class Limit:
    """Until when to work; several processes may share one.

    Attributes:
        began: When the work began, as ``time.time()``.
        minutes: How long it may take; None for as long as it takes.
        stop: An event; once it is set, time is up.
    """

    began: float
    minutes: float | None
    stop: Any

    def left(self) -> float:
        """Seconds left."""
        if self.stop.is_set():
            return 0.0
        return math.inf if self.minutes is None else max(0.0, self.began + 60 * self.minutes - time.time())

    def over(self) -> bool:
        """Whether time is up."""
        return self.left() <= 0


def line(name: str, row: Progress, began: float) -> str:
    """Where a training stands, on one line.

    Example:
        >>> line("deit", Progress(step=50, steps=200, loss=1.5, accuracy=0.25, validation=None, rate=4000.0,
        ...     remaining=75.0), time.time() - 90)
        '    90 s  deit  step 50/200  loss 1.500  accuracy 25.0%  4,000 images/s  1:15 left'
    """
    looked = "" if row.validation is None else f" (validation {row.validation:.1%})"
    left = clock_time(row.remaining) if math.isfinite(row.remaining) else "?"
    return (
        f"{time.time() - began:6.0f} s  {name}  step {row.step:,}/{row.steps:,}  loss {row.loss:.3f}  "
        f"accuracy {row.accuracy:.1%}{looked}  {row.rate:,.0f} images/s  {left} left"
    )


def lines(name: str, began: float, every: float) -> Callable[[Progress], None]:
    """Prints where a training stands: at once when it is first told, then every so many seconds."""
    following = -math.inf

    def tell(row: Progress) -> None:
        nonlocal following
        if time.monotonic() >= following:
            following = time.monotonic() + every
            print(line(name, row, began), flush=True)

    return tell
