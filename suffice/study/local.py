"""The engine that works in this process; any number of processes can work on one folder at the same time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from itertools import zip_longest

from suffice.progress import expect
from suffice.progress import plan as announce
from suffice.study.ahead import DecodedAhead
from suffice.study.interrupt import noticing_interrupts
from suffice.study.plan import Plan, Shard
from suffice.study.shard import Loaded, do_shard, is_failed, is_outgrown
from suffice.study.store import Store
from suffice.vision import Images

PATIENCE = 0.5  # seconds between two looks at shards that others work on


class Worker:
    """Does shards one after the other; keeps the model of the last one, and decodes the images of the next.

    Args:
        plan: What has to be done.
        store: Where results go.
        device: Instead of the first GPU if there is one.
    """

    def __init__(self, plan: Plan, store: Store, device: str | None = None) -> None:
        self.plan, self.store, self.device = plan, store, device
        self._loaded: Loaded | None = None
        self._ahead: tuple[range, DecodedAhead] | None = None

    def do(self, shard: Shard, then: Shard | None = None) -> bool | None:
        """Do a shard, unless it is done; returns whether it failed, None where another process works on it.

        Args:
            shard: What is to be done.
            then: What will probably be done next; its images are decoded meanwhile.
        """
        with self.store.lock(shard.name) as mine:
            if not mine:
                return None
            if self.store.exists(shard.table):  # another process has just finished it
                return is_failed(self.store, shard)
            self.store.sweep(shard.table)
            self.store.sweep(shard.maps)
            loaded, images = self._model(shard.model), self._images(shard)
            if then is not None:
                rows = self.plan.rows(then)
                self._ahead = rows, DecodedAhead(self.plan.images[rows.start : rows.stop])
            return not do_shard(self.plan, self.store, shard, loaded, images)

    def close(self) -> None:
        """Leave off what is done ahead."""
        if self._ahead is not None:
            self._ahead[1].close()
            self._ahead = None

    def _images(self, shard: Shard) -> Images:
        """The images of a shard, decoded already where that was foreseen."""
        rows = self.plan.rows(shard)
        if self._ahead is not None and self._ahead[0] == rows:
            images, self._ahead = self._ahead[1].images, None
            return images
        self.close()
        return self.plan.images[rows.start : rows.stop]

    def _model(self, label: str) -> Loaded:
        if self._loaded is None or self._loaded.model.label != label:
            self._loaded = None  # two models at once may be too much for the memory
            self._loaded = Loaded.of(self.plan, label, self.device)
            expect_questions(self.plan, self._loaded)
        return self._loaded


def run_here(plan: Plan, store: Store, *, only: Sequence[str] = (), device: str | None = None) -> int:
    """Do all shards that are not done; returns how many failed.

    Each is taken under a lock. Those that another process works on, or that read maps which it has not written yet,
    are looked at again once there is nothing else to do.
    """
    _ = plan.images  # others than those that the study began with are said before anything is done
    waiting = [shard for shard in plan.shards(only) if not store.exists(shard.table)]
    announce_all(plan, waiting)
    worker = Worker(plan, store, device)
    failed = 0
    with noticing_interrupts() as check, closing(worker):
        while waiting:
            later: list[Shard] = []
            for shard, then in zip_longest(waiting, waiting[1:]):
                ready = all(store.exists(read.table) for read in plan.inputs(shard))
                outcome = worker.do(shard, then) if ready else None
                check()
                if outcome is None:
                    later.append(shard)
                else:
                    failed += outcome
            if len(later) == len(waiting):
                time.sleep(PATIENCE)
            waiting = later
    return failed


def announce_all(plan: Plan, waiting: Sequence[Shard]) -> None:
    """Say how much there is to do, for the time left."""
    images: dict[tuple[str, str], int] = {}
    for shard in waiting:
        key = (shard.measurement, shard.model)
        images[key] = images.get(key, 0) + len(plan.rows(shard))
    for (measurement, model), count in images.items():
        announce(f"{measurement} of {model}", count, None)


def expect_questions(plan: Plan, loaded: Loaded) -> None:
    """Say how many questions an image takes, now that a model is there; of models that come later, about as many."""
    for name, measurement in plan.measurements.items():
        each = None if name in (loaded.model.misfits or {}) else measurement.questions(loaded.net)
        if each is not None:
            makers = sum(plan.measured(name, model) for model in plan.models) if measurement.crosses else 1
            for model in plan.models:
                expect(f"{name} of {model.label}", each * makers)


def forget_failed(plan: Plan, store: Store, only: Sequence[str] = ()) -> int:
    """Remove the shards that failed, and those that read their maps, so that they are done again; returns how many."""
    gone: set[Shard] = set()
    # What reads maps comes last: they may be those of another model.
    for shard in sorted(plan.shards(only), key=lambda one: bool(plan.measurements[one.measurement].reads)):
        with store.lock(shard.name) as mine:  # or another process does it again already
            if mine and store.exists(shard.table) and (is_failed(store, shard) or gone & set(plan.inputs(shard))):
                store.remove(shard.table)
                store.remove(shard.maps)
                gone.add(shard)
    return len(gone)


def forget_outgrown(plan: Plan, store: Store, only: Sequence[str] = ()) -> int:
    """Remove the shards that lack maps of models that joined the study since; returns how many."""
    crossing = [shard for shard in plan.shards(only) if plan.measurements[shard.measurement].crosses]
    outgrown = [shard for shard in crossing if store.exists(shard.table) and is_outgrown(plan, store, shard)]
    for shard in outgrown:
        store.remove(shard.table)
    return len(outgrown)
