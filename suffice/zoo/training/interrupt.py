"""Ctrl-C between two steps instead of inside one."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def finishing_steps() -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C wait for the end of the step, so that no half-made step is ever saved.

    A second Ctrl-C interrupts at once. Outside the main thread, where Python delivers no signals, nothing changes.

    Yields:
        A function that says whether Ctrl-C was pressed.
    """
    asked = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        signal.signal(signal.SIGINT, before)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.getsignal(signal.SIGINT) or signal.SIG_DFL
    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
