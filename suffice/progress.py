"""How far long work is: how many questions were put to the model, how fast, and how long the rest will take.

Work is made of stages, such as the maps of some images by one method. Functions say what they are about to do
(:func:`plan`, :func:`stage`), runners count what goes through a model (:func:`asked`), and whoever wants to see it
opens a :func:`reporting` around the work. Without one, all of this does nothing.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

Function = TypeVar("Function", bound=Callable[..., Any])
Batch = TypeVar("Batch", bound=Any)

OFTEN = 0.1  # seconds between two looks, at least
WINDOW = 20.0  # seconds over which the rate is taken
LOG_EVERY = 15.0  # seconds between two lines where there is no terminal


@dataclass
class Stage:
    """A part of the work: so many units, usually images, that each take some questions.

    Attributes:
        units: How many there are.
        each: Questions that one takes, where that is known beforehand; once more are asked, it is not.
        steady: Whether units take about the same. Those of a search do not: the quick ones are finished first.
        asked: Questions so far.
        finished: Units so far.
    """

    units: int
    each: float | None = None
    steady: bool = True
    asked: int = 0
    finished: int = 0
    asked_then: int = 0  # when a unit was last finished

    @property
    def whole(self) -> float | None:
        """About how many questions there will be; None as long as nothing is known.

        Example:
            >>> Stage(10).whole, Stage(10, each=4000).whole, Stage(10, asked=30, finished=2, asked_then=20).whole
            (None, 40000, 100.0)
        """
        if self.finished >= self.units:
            return self.asked
        if self.finished and self.steady:
            return max(self.asked, self.units * self.asked_then / self.finished)
        if self.finished:
            # As if it were by chance when a unit is finished: all questions so far brought about so many ends.
            return self.asked + (self.units - self.finished) * self.asked / self.finished
        known = None if self.each is None else self.each * self.units
        return known if known is not None and self.asked <= known else None

    def finish(self, units: int) -> None:
        """So many units are finished by now; each takes at least one question, counted or not."""
        self.finished = units
        self.asked = self.asked_then = max(self.asked, units)


class Meter:
    """Adds up stages, and tells ``show`` about it, ten times a second at most.

    Example:
        >>> meter = Meter("Explaining", show=lambda meter, last: None, clock=iter(range(99)).__next__)
        >>> meter.stages["rise"] = meter.current = Stage(units=3, each=4000)
        >>> meter.ask(600)
        >>> meter.text
        '600/~12,000 questions · 600/s · 0:19 left · 0/3 images'
    """

    def __init__(
        self, what: str, show: Callable[[Meter, bool], None], unit: str = "images", clock: Any = time.monotonic
    ) -> None:
        self.what, self.unit = what, unit
        self.stages: dict[str, Stage] = {}
        self.current: Stage | None = None
        self._show, self._clock = show, clock
        self._looks: deque[tuple[float, int]] = deque([(clock(), 0)])

    def ask(self, questions: int) -> None:
        """So many questions more."""
        if self.current is not None:
            self.current.asked += questions
            self._look()

    def finish(self, units: int) -> None:
        """So many units of the current stage are finished by now."""
        if self.current is not None:
            self.current.finish(units)
            self._look()

    def close(self) -> None:
        """Show the end."""
        self._look(last=True)

    @property
    def asked(self) -> int:
        """Questions so far."""
        return sum(stage.asked for stage in self.stages.values())

    @property
    def whole(self) -> int | None:
        """About how many questions there will be; None where some stage does not know."""
        parts = [stage.whole for stage in self.stages.values()]
        return None if not parts or None in parts else round(sum(part for part in parts if part is not None))

    @property
    def rate(self) -> float:
        """Questions a second, lately."""
        (start, before), (now, after) = self._looks[0], self._looks[-1]
        return (after - before) / (now - start) if now > start else 0.0

    @property
    def text(self) -> str:
        """How far it is: questions, how many a second, time left, units; what matters less comes last."""
        whole, rate = self.whole, self.rate
        done = all(each.finished >= each.units for each in self.stages.values())
        parts = [f"{self.asked:,}{'' if whole is None else f'/{whole:,}' if done else f'/~{whole:,}'} questions"]
        if rate:
            parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s")
            if whole is not None and not done:
                parts.append(f"{clock_time((whole - self.asked) / rate)} left")
        for name, stage in self.stages.items():
            if stage is self.current:
                about = f"{name} of" if len(self.stages) > 1 else ""
                parts.append(f"{about} {stage.finished:,}/{stage.units:,} {self.unit}".strip())
        return " · ".join(parts)

    def _look(self, last: bool = False) -> None:
        now = self._clock()
        if not last and now - self._looks[-1][0] < OFTEN:
            return
        self._looks.append((now, self.asked))
        while len(self._looks) > 2 and now - self._looks[1][0] > WINDOW:
            self._looks.popleft()
        self._show(self, last)


_active: ContextVar[Meter | None] = ContextVar("suffice_progress", default=None)


def asked(questions: int) -> None:
    """Count what is put to a model; runners call it."""
    meter = _active.get()
    if meter is not None:
        meter.ask(questions)


def plan(name: str, units: int, each: float | None = None, *, steady: bool = True) -> None:
    """Announce a stage that comes later, so that the time left is about all of the work."""
    meter = _active.get()
    if meter is not None and meter.current is None:
        meter.stages.setdefault(name, Stage(units, each, steady))


def expect(name: str, each: float) -> None:
    """Say of a stage that was planned, and has not begun, how many questions a unit of it takes, once that is known."""
    meter = _active.get()
    planned = meter.stages.get(name) if meter is not None else None
    if planned is not None and not planned.asked:
        planned.each = each


@contextmanager
def stage(name: str, units: int, each: float | None = None, *, steady: bool = True) -> Iterator[Callable[[int], None]]:
    """A stage, from now on; yields what to call with the number of units finished so far.

    One inside another is a part of it: its units are some of the other's. One that was planned, or left before, goes
    on with so many units more, and with what is known of them by now.
    """
    meter = _active.get()
    if meter is None:
        yield lambda done: None
        return
    outer = meter.current
    own = meter.current = outer or meter.stages.setdefault(name, Stage(units, each, steady))
    before = own.finished
    own.units = max(own.units, before + units)
    own.each = each if own.each is None and outer is None else own.each
    own.steady = own.steady and steady
    try:
        yield lambda done: meter.finish(before + done)
        meter.finish(before + units)  # the last ones may have been skipped
    finally:
        meter.current = outer


def counted(batches: Iterable[Batch], name: str, units: int, each: float | None = None) -> Iterator[Batch]:
    """Batches of images, as a stage: those of a batch are finished when the next one is asked for."""
    with stage(name, units, each) as finished:
        for batch in batches:
            yield batch
            finished(int(batch.index[-1]) + 1)


def reports(what: str) -> Callable[[Function], Function]:
    """A function that shows how far it is when it is called with ``progress=True``, an argument that it must have."""

    def decorate(function: Function) -> Function:
        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            with reporting(kwargs.get("progress", False), what):
                return function(*args, **kwargs)

        return called  # type: ignore[return-value]

    return decorate


@contextmanager
def reporting(wanted: bool, what: str, console: Console | None = None) -> Iterator[None]:
    """Show the progress of the work inside: on the terminal, below the cell of a notebook, or as lines of a log.

    Args:
        wanted: Whether to show it; within another report it becomes part of that one.
        what: Is being done, such as ``"Explaining"``.
        console: Of a command, on which the line does not stay; default: standard error, on which it does.
    """
    if not wanted or _active.get() is not None:
        yield
        return
    with _display(console) as show:
        meter = Meter(what, show)
        token = _active.set(meter)
        try:
            yield
        finally:
            _active.reset(token)
            meter.close()


@contextmanager
def watching(show: Callable[[Meter], None], what: str = "") -> Iterator[None]:
    """Tell a function how far the work inside is, ten times a second at most; an error that it raises ends the work.

    Example:
        >>> said = []
        >>> with watching(lambda meter: said.append(meter.text)), stage("rise", units=1):
        ...     time.sleep(2 * OFTEN)
        ...     asked(600)
        >>> said[0].partition(" ·")[0]
        '600 questions'
    """
    token = _active.set(Meter(what, lambda meter, last: show(meter)))
    try:
        yield
    finally:
        _active.reset(token)


@contextmanager
def _display(console: Console | None) -> Iterator[Callable[[Meter, bool], None]]:
    """What shows a meter, where people look."""
    if console is None and "ipykernel" in sys.modules:
        display: Any = import_module("IPython.display")
        handle = display.display(display.HTML(""), display_id=True)
        if handle is not None:  # or the package was imported, and no notebook is there
            yield lambda meter, last: handle.update(display.HTML(_html(meter)))
            return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    where = console or Console(stderr=True, highlight=False)
    if not where.is_terminal:
        yield _log()
        return
    bar_width = 24 if where.width >= 100 else 10
    what, how_far = (TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[text]}"))
    with Progress(
        what, BarColumn(bar_width), how_far, console=where, transient=console is not None, refresh_per_second=5
    ) as bar:
        task = bar.add_task("", total=None, text="")
        yield lambda meter, last: bar.update(
            task, description=meter.what, completed=meter.asked, total=meter.whole, text=meter.text
        )


def _log() -> Callable[[Meter, bool], None]:
    """Shows a meter as a line now and then."""
    next_line = time.monotonic() + OFTEN

    def show(meter: Meter, last: bool) -> None:
        nonlocal next_line
        if last or time.monotonic() >= next_line:
            next_line = time.monotonic() + LOG_EVERY
            print(f"{meter.what}: {meter.text}", file=sys.stderr, flush=True)

    return show


def _html(meter: Meter) -> str:
    """A meter as a line of a notebook."""
    from html import escape

    share = "" if not meter.whole else f" value='{min(meter.asked / meter.whole, 1):.3f}'"
    return f"<div>{escape(meter.what)} <progress{share}></progress> {escape(meter.text)}</div>"


def clock_time(seconds: float) -> str:
    """A time as a clock shows it: ``1:27``, ``2:03:00``."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
