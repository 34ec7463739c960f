"""The built-in study: seventeen small networks that come with the package, and what is enough for each of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from suffice.errors import StudyError
from suffice.options import Count, check_options
from suffice.report.page.questions import tables_by_kind
from suffice.report.page.wording import counted
from suffice.study import Study
from suffice.study.export import failures_table
from suffice.vision import list_models

FILE = Path(__file__).with_name("demo.toml")
MOST = 4  # processes: each has PyTorch and a network in its memory
PATIENCE = 0.2  # seconds between two looks at what is done


def demo_study(*, images: Count | None = None, networks: Sequence[str] = ()) -> Study:
    """The built-in study, or a smaller one of the same kind.

    Args:
        images: How many scenes; default: as in the file.
        networks: Names of networks of the zoo; default: all.

    Example:
        >>> study = demo_study(images=4, networks=["resnet", "resnet-aug"])
        >>> [one.name for one in study.asked.models], len(study.asked.contrasts)
        (['zoo/resnet', 'zoo/resnet-aug'], 1)
    """
    check_options({"images": images}, demo_study)
    content = Study.open(FILE).asked.to_dict()
    if images is not None:
        content["images"] = f"scenes:test[:{images}]"
    if networks:
        content |= _only(content, [name if name.startswith("zoo/") else f"zoo/{name}" for name in networks])
        content["name"] = f"What is enough for {counted(len(networks), 'small network')}?"
    return Study(**content)


def _only(content: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """The parts of a study that are about some of its models."""
    known = list_models("zoo/*")
    if unknown := [name for name in names if name not in known]:
        raise StudyError(f"There is no network {unknown[0]!r}. There are {', '.join(known)}.")
    measure = {
        name: one
        for name, one in content["measure"].items()
        if any(fnmatchcase(label, pattern) for label in names for pattern in one.get("models", ["*"]))
    }
    measure = {name: one for name, one in measure.items() if one.get("maps", name) in (*measure, None)}
    contrasts = [one for one in content["contrasts"] if {one["of"], one["against"]} <= set(names)]
    return {"models": names, "measure": measure, "contrasts": contrasts}


def run_on_all_cores(
    study: Study,
    out: Path,
    *,
    processes: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    on_trouble: Callable[[str], None] | None = None,
) -> Study:
    """Run a study of small networks with a process a core: threads would wait for each other most of the time.

    Processes share the work of one folder by themselves; what one of them has done is done when another one dies.

    Args:
        study: Which was not run yet.
        out: The folder of its results.
        processes: How many; default: one a core, four at most.
        on_progress: Gets (shards done, in all), now and then.
        on_trouble: Gets what failed, or was not done, in words; there are results of the rest.

    Returns:
        The study of that folder.

    Raises:
        StudyError: There are no results at all; with the last words of a process that could not go on.
    """
    out.mkdir(parents=True, exist_ok=True)
    file = out / "study.json"
    file.write_text(json.dumps(study.asked.to_dict(), indent=1), encoding="utf-8")
    command = [sys.executable, "-m", "suffice", "study", "run", str(file), "--out", str(out / "run"), "--device", "cpu"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    running = [
        subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for _ in range(processes or min(MOST, _cores()))
    ]
    try:
        while any(process.poll() is None for process in running):
            if on_progress is not None and (out / "run" / "plan.json").exists():
                on_progress(*_done(out / "run"))
            time.sleep(PATIENCE)
    finally:  # an interruption has reached them, too: they end their shards
        said = [process.communicate()[1] for process in running]
    last = next((words.strip() for words in said if words.strip()), "no reason was given")
    if not (out / "run" / "plan.json").exists():
        raise StudyError(f"The study did not end: {last}")
    done = Study.open(out / "run")
    if not tables_by_kind(done):
        raise StudyError(f"The study did not end: {_first_failure(done) or last}")
    if on_trouble is not None and (trouble := _trouble(done, last)):
        on_trouble(trouble)
    return done


def _trouble(study: Study, last: str) -> str:
    """What failed, and what is not done; nothing where all is well."""
    assert study.store is not None
    status = study.status()
    shards, done = (sum(getattr(line, name) for line in status.lines) for name in ("shards", "done"))
    words = []
    if status.failed:
        words.append(
            f"{status.failed} of {shards} parts of the study failed and are left out: {_first_failure(study)}. To do "
            f"them again: suffice study run {study.store.place} --retry-failed"
        )
    if done < shards:
        words.append(f"{shards - done} of {shards} parts are not done, as a process ended: {last}")
    return "\n".join(words)


def _first_failure(study: Study) -> str:
    """The first error of a shard, with what it was about."""
    assert study.store is not None
    failed = [row for row in failures_table(study.plan, study.store).to_pylist() if row["shard_failed"]]
    return f"{failed[0]['measurement']} of {failed[0]['model']}, {failed[0]['error']}" if failed else ""


def _done(folder: Path) -> tuple[int, int]:
    """Shards that are done, and all."""
    study = Study.open(folder)
    assert study.store is not None
    return len(study.store.files("tables")), len(study.plan.shards())


def _cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
