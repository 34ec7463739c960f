"""A study as commands run it: what is in its folder is taken up, and Ctrl-C keeps what is finished."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from suffice.errors import StudyError
from suffice.study.plan import IMAGES, PLAN, Plan
from suffice.study.reading import read_shard
from suffice.study.shard import is_failed
from suffice.study.store import LOG, Store
from suffice.study.study import Study

OWN = (PLAN, IMAGES, LOG, "study.json", "tables", "maps", "locks", "export")
BESIDE = (
    "figures",
    "comparison",
    "subexplanations.parquet",
    *(f"scores.{kind}" for kind in ("md", "tex", "csv", "json", "parquet")),
)


@dataclass(frozen=True)
class Taken:
    """A study that was run, perhaps not to its end.

    Attributes:
        plan: What was to be done.
        store: Where what was found lies.
        earlier: Images that were finished before.
        stopped: Whether Ctrl-C ended it.
    """

    plan: Plan
    store: Store
    earlier: int
    stopped: bool


def take_up(study: Study, out: str | Path, *, device: str | None = None, overwrite: bool = False) -> Taken:
    """Run a study in a folder, from where it ended before; what failed then is done again.

    Args:
        study: What is asked.
        out: The folder.
        device: Instead of the first GPU if there is one.
        overwrite: Remove the study that is in the folder first.

    Raises:
        StudyError: The folder has another study; nothing was done then. Or something failed.
    """
    store, stopped = Store(out), False
    if overwrite and store.exists(PLAN):
        _remove(store)
    earlier = _finished(study, store) if store.exists(PLAN) else 0
    try:
        study.run(out, device=device, retry_failed=True)
    except KeyboardInterrupt:
        if not store.exists(PLAN):
            raise
        stopped = True
    plan = Plan.load(store)
    for shard in plan.shards():
        if store.exists(shard.table) and is_failed(store, shard):
            why = read_shard(store, shard, ["error"])["error"][0].as_py()
            raise StudyError(f"{shard} failed: {why} What is finished is in {out}; the same command goes on.")
    return Taken(plan, store, earlier, stopped)


def _remove(store: Store) -> None:
    """Remove a study, and what commands write beside it; where there is something else, nothing."""
    files = store.files()
    if others := [name for name in files if name.partition("/")[0] not in (*OWN, *BESIDE)]:
        raise StudyError(f"{store} has something else than a study: {others[0]}. Choose another folder.")
    for name in files:
        store.remove(name)


def _finished(study: Study, store: Store) -> int:
    """Images that are finished; a folder with measurements that are not asked for would lose them from its plan."""
    before = Study.open(str(store))
    if other := [name for name in before.asked.measure if name not in study.asked.measure]:
        has = f"it has {', '.join(other)}, too"
        raise StudyError(f"The study in {store} was begun in another way: {has}. Take another folder.")
    if len(before.asked.measure) < len(study.asked.measure):
        return 0
    labels = [model.label or model.name for model in study.asked.models]
    return min((line.images_done for line in before.status().lines if line.model in labels), default=0)
