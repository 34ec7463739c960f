"""The explorer behind its page: it takes messages, has them answered by the right thread, and sends what comes of it.

A message has a ``kind`` and ``data``. ``ask`` goes to the quick lanes, searches and maps to the slow ones, and the rest
(lists of images, tables of a study) to a few threads of their own, so that nothing waits for anything longer than it
has to. The page sends messages over a web socket, the notebook over its own channel, and scripts over HTTP.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol

from suffice.errors import SufficeError
from suffice.explorer.errors import Busy, Cancelled, Unknown
from suffice.explorer.lanes import Job, QuickLane, SlowLane
from suffice.explorer.pictures import MOST_BYTES, Pictures
from suffice.explorer.plain import PLAIN
from suffice.explorer.reading import Fields, Question
from suffice.explorer.seats import Seat, seats_of
from suffice.explorer.tables import Tables
from suffice.explorer.tasks import TASKS
from suffice.progress import Meter, watching
from suffice.study import Study
from suffice.vision import Classifier, Images

PLAIN_WAITING = 64  # lists and tables that may wait
Message = dict[str, Any]


class Channel(Protocol):
    """A way back to who asked; may be called from any thread."""

    def send(self, message: Message) -> None:
        """Send a message: ``id`` of the question, and ``data``, ``part``, ``error`` or ``dropped``."""


class Explorer:
    """Everything behind the page.

    Args:
        nets: The models.
        images: The images.
        study: A study whose tables and figures are shown, if any.

    Attributes:
        seats: The models by name.
        pictures: The images by key.
        failures: Errors that nobody foresaw, as text, for tests; the page shows that there was one.
    """

    def __init__(self, nets: Sequence[Classifier], images: Images, study: Study | None = None) -> None:
        self.pictures = Pictures(images)
        self.seats = seats_of(list(nets), self.pictures)
        self.study = None if study is None else Tables(study)
        devices = dict.fromkeys(seat.device for seat in self.seats.values())
        self._quick = {device: QuickLane(f"quick on {device}") for device in devices}
        self._slow = {device: SlowLane(f"slow on {device}") for device in devices}
        self._pool = ThreadPoolExecutor(2, "suffice plain")
        self._room = threading.BoundedSemaphore(PLAIN_WAITING)
        self._jobs: dict[tuple[Hashable, Any], tuple[SlowLane, Job]] = {}
        self._lock = threading.Lock()
        self.failures: list[str] = []

    def handle(self, channel: Channel, message: Any) -> None:
        """Take a message, and see to it that it is answered, some time; never raises, never waits."""
        number = message.get("id") if isinstance(message, dict) else None
        if not isinstance(number, (int, str)) or isinstance(number, bool):
            number = None
        try:
            fields = Fields(message)
            kind, data = fields.text("kind", longest=40), Fields(message.get("data", {}))
            if kind == "ask":
                self._ask(channel, number, data)
            elif kind == "cancel":
                self._cancel(channel, number, message.get("data", {}).get("id"))
            elif kind in TASKS:
                self._start(channel, number, kind, data)
            elif kind in PLAIN:
                self._look_up(channel, number, kind, data)
            else:
                raise Unknown(f"There is no question of the kind {kind!r}.")
        except Exception as error:
            self._send_error(channel, number, error)

    def add_picture(self, data: bytes, name: str) -> Message:
        """Take in an image file; returns what the page has to know of it."""
        return self.pictures.about(self.pictures.add(data, name))

    def leave(self, channel: Channel) -> None:
        """Somebody is gone: what was to be done for them need not be."""
        for lane in self._slow.values():
            lane.cancel_all(id(channel))

    def close(self) -> None:
        """End all threads."""
        for quick in self._quick.values():
            quick.close()
        for slow in self._slow.values():
            slow.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
        if self.study is not None:
            self.study.close()

    def seat(self, name: str) -> Seat:
        """A model by name."""
        if name not in self.seats:
            raise Unknown(f"There is no model {name[:60]!r}; there are {', '.join(self.seats) or 'none'}.")
        return self.seats[name]

    @property
    def limits(self) -> dict[str, int]:
        """What the page must keep to."""
        return {"upload_bytes": MOST_BYTES}

    def _ask(self, channel: Channel, number: Any, fields: Fields) -> None:
        """Ask models about a region, each as soon as its device is free; answers come one by one, then all at once."""
        asked = Question.read(fields)
        self.pictures[asked.image]
        named = [str(name) for name in fields.some("models", 64)] or list(self.seats)
        seats = [self.seat(name) for name in dict.fromkeys(named)]
        answers: dict[str, Any] = {}
        lock, dropped = threading.Lock(), threading.Event()

        def done(name: str, answer: Message) -> None:
            with lock:
                answers[name] = answer
                last = len(answers) == len(seats)
            if not dropped.is_set() or not last:
                channel.send({"id": number, "part": {"model": name, **answer}})
            if last:
                channel.send({"id": number, "dropped": True} if dropped.is_set() else {"id": number, "data": answers})

        def work(seat: Seat) -> None:
            try:
                answer = seat.quick.answer(asked)
            except Exception as error:
                answer = {"error": self.words_of(error)}
            done(seat.name, answer)

        def drop(seat: Seat) -> None:
            dropped.set()
            done(seat.name, {"dropped": True})

        if not seats:
            channel.send({"id": number, "data": {}})
        for seat in seats:
            self._quick[seat.device].put((id(channel), seat.name), partial(work, seat), partial(drop, seat))

    def _start(self, channel: Channel, number: Any, kind: str, fields: Fields) -> None:
        """Begin long work with a model; how far it is comes as parts."""
        asked, seat = Question.read(fields), self.seat(fields.text("model"))
        self.pictures[asked.image]
        task = TASKS[kind](fields, seat)
        key = (id(channel), number)

        def show(meter: Meter, job: Job) -> None:
            job.check()
            whole = meter.whole
            share = None if not whole else min(meter.asked / whole, 1.0)
            channel.send({"id": number, "part": {"asked": meter.asked, "share": share, "text": meter.text}})

        def run(job: Job) -> None:
            try:
                job.check()
                with watching(lambda meter: show(meter, job)):
                    result = task(seat.slow, asked, job.check)
                channel.send({"id": number, "data": result})
            except Cancelled:
                channel.send({"id": number, "cancelled": True})
            except Exception as error:
                self._send_error(channel, number, error)
            finally:
                with self._lock:
                    self._jobs.pop(key, None)

        job, lane = Job(id(channel), run), self._slow[seat.device]
        with self._lock:
            self._jobs[key] = (lane, job)
        try:
            lane.put(job)
        except Busy:
            with self._lock:
                self._jobs.pop(key, None)
            raise

    def _cancel(self, channel: Channel, number: Any, wanted: Any) -> None:
        key = (id(channel), wanted if isinstance(wanted, (int, str)) else None)
        with self._lock:
            found = self._jobs.get(key)
        if found is not None:
            found[0].cancel(found[1])
        channel.send({"id": number, "data": {"cancelled": found is not None}})

    def _look_up(self, channel: Channel, number: Any, kind: str, fields: Fields) -> None:
        """Answer from a few threads of their own."""
        if not self._room.acquire(blocking=False):
            raise Busy("Too many questions wait already; ask again in a moment.")

        def work() -> None:
            try:
                answer = PLAIN[kind](self, fields)
                # Models are asked by the thread of their device alone.
                if callable(answer):
                    seat, look = answer.args[0], answer
                    self._quick[seat.device].put(
                        (id(channel), seat.name, kind, number),
                        lambda: self._answer(channel, number, look),
                        lambda: channel.send({"id": number, "dropped": True}),
                    )
                else:
                    channel.send({"id": number, "data": answer})
            except Exception as error:
                self._send_error(channel, number, error)
            finally:
                self._room.release()

        self._pool.submit(work)

    def _answer(self, channel: Channel, number: Any, look: Callable[[], Any]) -> None:
        try:
            channel.send({"id": number, "data": look()})
        except Exception as error:
            self._send_error(channel, number, error)

    def _send_error(self, channel: Channel, number: Any, error: Exception) -> None:
        channel.send({"id": number, "error": self.words_of(error)})

    def words_of(self, error: Exception) -> dict[str, str]:
        """An error for the page: its kind, and what to read. Those that nobody foresaw are kept, and not shown."""
        if isinstance(error, SufficeError):
            return {"kind": type(error).__name__, "message": str(error)}
        self.failures = [*self.failures[-19:], "".join(traceback.format_exception(error))]
        return {"kind": "Failure", "message": f"Something went wrong that should not: {type(error).__name__}."}
