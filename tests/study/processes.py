"""Studies in processes of their own, which can be killed; what they import was imported once, so they start at once."""

from __future__ import annotations

import os
import signal
import stat
import sys
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

from suffice.study import Study
from suffice.study.plan import Shard
from suffice.study.shard import read_maps
from tests.forks import CONTEXT


def run(file: Path, out: Path, before: Callable[..., None] | None = None, *args: object) -> None:
    """Run a study in this process, after something was done to it."""
    import torch

    torch.set_num_threads(1)
    if before is not None:
        before(*args)
    Study.open(file).run(out, device="cpu")


def start(file: Path, out: Path, before: Callable[..., None] | None = None, *args: object) -> BaseProcess:
    """Run a study in another process, after something was done to that."""
    process = CONTEXT.Process(target=run, args=(file, out, before, *args), daemon=True)
    process.start()
    return process


def ended(process: BaseProcess, seconds: float = 120) -> int | None:
    """How a process ended."""
    process.join(seconds)
    return process.exitcode


def wait_for(fact: Callable[[], object], process: BaseProcess | None = None, seconds: float = 600) -> bool:
    """Wait until something is so, or a process has ended; returns whether it is so."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and (process is None or process.is_alive()):
        if fact():
            return True
        time.sleep(0.002)
    return bool(fact())


def die_at(step: int) -> None:
    """Let the process be killed at a step of its writing: when a file is to be synced, or renamed."""
    steps = 0

    def deadly(function: Callable[..., object]) -> Callable[..., object]:
        def called(*args: object, **kwargs: object) -> object:
            nonlocal steps
            steps += not (isinstance(args[0], int) and stat.S_ISDIR(os.fstat(args[0]).st_mode))
            if steps == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)

        return called

    os.fsync, os.replace = deadly(os.fsync), deadly(os.replace)


def die_after(shards: int, calls: int) -> None:
    """Let the process be killed so many calls of functions after it has done so many shards."""
    replace, left = os.replace, shards

    def count_down(*_: object) -> None:
        nonlocal calls
        calls -= 1
        if calls < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def renamed(source: object, target: object) -> None:
        nonlocal left
        replace(source, target)
        left -= "tables" in Path(str(target)).parts
        if left == 0:
            sys.setprofile(count_down)

    os.replace = renamed
    if not shards:
        sys.setprofile(count_down)


def contents(folder: Path) -> dict[str, object]:
    """All that a study found: every column of every table, and every map."""
    study = Study.open(folder)
    found: dict[str, object] = {name: study.table(name).to_pydict() for name in study.tables}
    for shard in study.plan.shards():
        assert study.store is not None
        if study.store.exists(shard.maps):
            maps = read_maps(study.plan, study.store, Shard(shard.measurement, shard.model, shard.number))
            found[shard.maps] = (maps.maps.tolist(), maps.targets.tolist(), maps.settings, maps.skipped)
    return found


def done(folder: Path) -> int:
    """How many shards are done."""
    return len([*folder.glob("tables/*/*/*.parquet")])


def finished(folder: Path) -> list[str]:
    """The shards that were finished, as often as they were."""
    store = Study.open(folder).store
    assert store is not None
    return [event["shard"] for event in store.events() if event["event"] == "finished"]


def unfinished(folder: Path) -> list[Path]:
    """Files that were begun only."""
    return sorted(folder.rglob("*.unfinished"))
