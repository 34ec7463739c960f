"""Threads that ask models: for each device a quick lane, and a slow one beside it.

In the quick lane the newest question counts: who asks again before an answer came no longer wants to know the old one.
In the slow lane searches and maps wait for each other, a few at most, and can be called off. Both lanes have models of
their own, so that a search never keeps a page from answering, and hooks of a method never meet another forward.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from suffice.explorer.errors import Busy, Cancelled

Work = Callable[[], None]
NICE = 10  # by how much long work is less urgent, for the operating system


class QuickLane:
    """One thread that does the newest work of each asker; what was to be done for them before is dropped.

    Example:
        >>> lane, said = QuickLane(), []
        >>> done = threading.Event()
        >>> lane.put("anyone", lambda: (said.append("answer"), done.set()), lambda: said.append("dropped"))
        >>> done.wait(5), said
        (True, ['answer'])
        >>> lane.close()
    """

    def __init__(self, name: str = "quick") -> None:
        self._waiting: OrderedDict[Hashable, tuple[Work, Work]] = OrderedDict()
        self._change = threading.Condition()
        self._open = True
        self._thread = threading.Thread(target=self._run, name=f"suffice {name}", daemon=True)
        self._thread.start()

    def put(self, asker: Hashable, work: Work, dropped: Work) -> None:
        """Do work soon; ``dropped`` is called instead where the same asker comes again first.

        The new work takes the place in line of the old, so that among many models none is passed over for long.
        """
        with self._change:
            old = self._waiting.get(asker)
            self._waiting[asker] = (work, dropped)
            self._change.notify()
        if old is not None:
            old[1]()

    def close(self) -> None:
        """End after the work under way."""
        with self._change:
            self._open = False
            self._waiting.clear()
            self._change.notify()
        self._thread.join(timeout=30)

    def _run(self) -> None:
        while True:
            with self._change:
                while self._open and not self._waiting:
                    self._change.wait()
                if not self._open:
                    return
                _, (work, _) = self._waiting.popitem(last=False)
            work()


@dataclass(eq=False)
class Job:
    """Long work: ``run`` gets the job itself, and looks at ``cancelled`` now and then."""

    owner: Hashable
    run: Callable[[Job], None]
    cancelled: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Raise an error where it was called off."""
        if self.cancelled.is_set():
            raise Cancelled


class SlowLane:
    """One thread for long work, one after the other, with a limit to what may wait."""

    def __init__(self, name: str = "slow", waiting: int = 16, of_one: int = 4) -> None:
        self.most, self.of_one = waiting, of_one
        self._waiting: deque[Job] = deque()
        self._current: Job | None = None
        self._change = threading.Condition()
        self._open = True
        self._thread = threading.Thread(target=self._run, name=f"suffice {name}", daemon=True)
        self._thread.start()

    def put(self, job: Job) -> None:
        """Wait for a turn.

        Raises:
            Busy: Too much waits already.
        """
        with self._change:
            own = sum(one.owner == job.owner for one in (*self._waiting, self._current) if one is not None)
            if len(self._waiting) >= self.most or own >= self.of_one:
                raise Busy(f"{len(self._waiting)} searches wait already; wait for one to end, or cancel one.")
            self._waiting.append(job)
            self._change.notify()

    def cancel(self, job: Job) -> None:
        """Call a job off: one that waits is told so at once, the one under way at its next question to a model."""
        job.cancelled.set()
        with self._change:
            waits = job in self._waiting
            if waits:
                self._waiting.remove(job)
        if waits:
            job.run(job)

    def cancel_all(self, owner: Hashable) -> None:
        """Call off all that somebody wanted."""
        with self._change:
            mine = [one for one in (*self._waiting, self._current) if one is not None and one.owner == owner]
        for job in mine:
            self.cancel(job)

    def close(self) -> None:
        """End; the work under way is called off."""
        with self._change:
            self._open = False
            self._waiting.clear()
            if self._current is not None:
                self._current.cancelled.set()
            self._change.notify()
        self._thread.join(timeout=30)

    def _run(self) -> None:
        with contextlib.suppress(OSError, AttributeError):  # threads have a priority of their own on Linux only
            if os.uname().sysname == "Linux":
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        while True:
            with self._change:
                self._current = None
                while self._open and not self._waiting:
                    self._change.wait()
                if not self._open:
                    return
                self._current = self._waiting.popleft()
            self._current.run(self._current)
