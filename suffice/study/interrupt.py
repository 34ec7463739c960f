"""Ctrl-C that is not lost."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def noticing_interrupts() -> Iterator[Callable[[], None]]:
    """Remember Ctrl-C, which interrupts as ever, for where Python drops it.

    An exception that is raised while an object is finalized, such as a lock that nobody holds any more, is printed and
    forgotten, and KeyboardInterrupt is no exception to that. Outside the main thread, where Python delivers no signals,
    nothing changes.

    Yields:
        A function that raises KeyboardInterrupt if Ctrl-C was pressed.
    """
    pressed = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed = True
        signal.default_int_handler(number, frame)

    def check() -> None:
        if pressed:
            raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is not signal.default_int_handler:
        yield check  # somebody else sees to it
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)
