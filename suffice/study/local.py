"""The engine that works in this process; any number of processes can work on one folder at the same time."""

from __future__ import annotations

import time
from collections.abc import Sequence

from suffice.progress import plan as announce
from suffice.study.plan import Plan, Shard
from suffice.study.shard import Loaded, do_shard, is_failed
from suffice.study.store import Store

PATIENCE = 0.5  # seconds between two looks at shards that others work on


def run_here(plan: Plan, store: Store, *, only: Sequence[str] = (), device: str | None = None) -> int:
    """Do all shards that are not done; returns how many failed.

    Each is taken under a lock. Those that another process works on, or that read maps which it has not written yet,
    are looked at again once there is nothing else to do.
    """
    _ = plan.images  # others than those that the study began with are said before anything is done
    waiting = [shard for shard in plan.shards(only) if not store.exists(shard.table)]
    _announce(plan, waiting)
    loaded: Loaded | None = None
    failed = 0
    while waiting:
        later: list[Shard] = []
        for shard in waiting:
            if any(not store.exists(read.table) for read in plan.inputs(shard)):
                later.append(shard)
                continue
            with store.lock(shard.name) as mine:
                if not mine:
                    later.append(shard)
                elif not store.exists(shard.table):  # or else another process has just finished it
                    store.sweep(shard.table)
                    store.sweep(shard.maps)
                    if loaded is None or loaded.model.label != shard.model:
                        loaded = None  # two models at once may be too much for the memory
                        loaded = Loaded.of(plan, shard.model, device)
                    failed += not do_shard(plan, store, shard, loaded)
        if len(later) == len(waiting):
            time.sleep(PATIENCE)
        waiting = later
    return failed


def _announce(plan: Plan, waiting: Sequence[Shard]) -> None:
    """Say how much there is to do, for the time left."""
    images: dict[tuple[str, str], int] = {}
    for shard in waiting:
        key = (shard.measurement, shard.model)
        images[key] = images.get(key, 0) + len(plan.rows(shard))
    for (measurement, model), count in images.items():
        announce(f"{measurement} of {model}", count, None)


def forget_failed(plan: Plan, store: Store, only: Sequence[str] = ()) -> int:
    """Remove the shards that failed, and those that read their maps, so that they are done again; returns how many."""
    gone: set[Shard] = set()
    for shard in plan.shards(only):
        if store.exists(shard.table) and (is_failed(store, shard) or gone & set(plan.inputs(shard))):
            store.remove(shard.table)
            store.remove(shard.maps)
            gone.add(shard)
    return len(gone)
