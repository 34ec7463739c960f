"""How far a study is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from suffice.study.plan import Plan, Shard
from suffice.study.shard import is_failed, problem_of
from suffice.study.store import Store


@dataclass(frozen=True)
class Line:
    """How far a measurement is with a model.

    Attributes:
        measurement: Its name.
        model: The label of the model.
        shards: How many there are.
        done: Of these, finished; also those that failed.
        running: That some process is at now.
        failed: Of those done, without results.
        images: How many there are.
        images_done: In shards that are done.
        seconds: That an image took, for one worker; None as long as that is not known.
    """

    measurement: str
    model: str
    shards: int
    done: int
    running: int
    failed: int
    images: int
    images_done: int
    seconds: float | None

    @property
    def rate(self) -> float | None:
        """Images a second, for one worker."""
        return 1 / self.seconds if self.seconds else None

    def left(self, like: float | None = None) -> float | None:
        """Seconds that the rest takes one worker, where an image takes as long as those before, or else ``like``."""
        seconds = like if self.seconds is None else self.seconds
        remaining = self.images - self.images_done
        return 0.0 if not remaining else None if seconds is None else remaining * seconds


@dataclass(frozen=True)
class Status:
    """How far a study is: a line for each measurement of each model.

    Attributes:
        name: Of the study.
        lines: Measurement by measurement, and model by model.
        workers: Processes that are at a shard now.
    """

    name: str
    lines: tuple[Line, ...]
    workers: int

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do."""
        return all(line.done == line.shards for line in self.lines)

    @property
    def failed(self) -> int:
        """How many shards failed."""
        return sum(line.failed for line in self.lines)

    def left(self, line: Line) -> float | None:
        """Seconds that the rest of a line takes one worker; before any of it is done, as with the other models."""
        alike = [other.seconds for other in self.lines if other.measurement == line.measurement]
        known = [seconds for seconds in alike if seconds is not None]
        return line.left(sum(known) / len(known) if known else None)

    @property
    def time_left(self) -> float | None:
        """Seconds that the rest takes all workers together; None as long as some measurement was never made."""
        parts = [self.left(line) for line in self.lines]
        known = [part for part in parts if part is not None]
        return sum(known) / max(1, self.workers) if len(known) == len(parts) else None

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        lines = [{**asdict(line), "seconds_left": self.left(line)} for line in self.lines]
        whole = {"finished": self.finished, "workers": self.workers, "seconds_left": self.time_left}
        return {"study": self.name, **whole, "lines": lines}


def status_of(plan: Plan, store: Store) -> Status:
    """Look how far a study is: at the names of its files, and at its log.

    Shards are running that a process holds the lock of; in a place without locks, those that were begun and not ended.
    """
    there = set(store.files("tables"))
    shards: dict[tuple[str, str], list[Shard]] = {}
    for shard in plan.shards():
        shards.setdefault((shard.measurement, shard.model), []).append(shard)
    owners = {shard.name: owner for owner, own in shards.items() for shard in own}
    last: dict[str, dict[str, Any]] = {}
    spent: dict[tuple[str, str], tuple[float, int]] = {}
    for event in store.events():
        if (owner := owners.get(event.get("shard", ""))) is None:
            continue
        last[event["shard"]] = event
        if event["event"] == "finished":
            seconds, images = spent.get(owner, (0.0, 0))
            spent[owner] = seconds + event["seconds"], images + event["images"]

    def failed(shard: Shard) -> bool:
        event = last.get(shard.name, {}).get("event")
        # A process that was killed may have written a table, and not that it did.
        return event == "failed" if event in ("finished", "failed") else is_failed(store, shard)

    def running(shard: Shard) -> bool:
        begun = shard.table not in there and last.get(shard.name, {}).get("event") == "began"
        return begun and (store.local is None or store.locked(shard.name))

    lines, workers = [], set()
    for name, model in ((name, model.label) for name in plan.measurements for model in plan.models):
        own = shards.get((name, model), [])
        done = [shard for shard in own if shard.table in there]
        at_work = [shard for shard in own if running(shard)]
        workers |= {(last[shard.name]["host"], last[shard.name]["process"]) for shard in at_work}
        seconds, images = spent.get((name, model), (0.0, 0))
        line = Line(
            name,
            model,
            shards=len(own),
            done=len(done),
            running=len(at_work),
            failed=sum(map(failed, done)),
            images=sum(len(plan.rows(shard)) for shard in own),
            images_done=sum(len(plan.rows(shard)) for shard in done),
            seconds=seconds / images if images else None,
        )
        lines += [line] if own else []
    return Status(plan.asked.name, tuple(lines), len(workers))


def reasons_of_failures(plan: Plan, store: Store, status: Status, most: int = 3) -> list[str]:
    """Why shards failed: the first reasons that differ, each with the measurement and model where it was met first.

    What failed because there are no maps for it to read is left out where these failed, too: their reason is said.

    Args:
        plan: Of the study.
        store: Where it is.
        status: How far it is.
        most: So many reasons at most.
    """
    lines = {(line.measurement, line.model) for line in status.lines if line.failed}
    looked_at = [shard for shard in plan.shards() if (shard.measurement, shard.model) in lines]
    failed: set[Shard] = set()
    found: dict[str, str] = {}
    # What reads maps comes last: they may be those of another model.
    for shard in sorted(looked_at, key=lambda one: bool(plan.measurements[one.measurement].reads)):
        problem = problem_of(store, shard) if store.exists(shard.table) else None
        if problem is None:
            continue
        failed.add(shard)
        if not failed & set(plan.inputs(shard)):
            reason = problem.partition("\n")[0]
            found.setdefault(reason, f"{shard.measurement} of {shard.model}: {reason}")
        if len(found) == most:
            break
    return list(found.values())
