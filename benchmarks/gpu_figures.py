"""Measure the figures of docs/performance.md that need a GPU, one after the other, in a limited time.

    SUFFICE_ASSETS=assets python benchmarks/gpu_figures.py --minutes 9 --out figures
    SUFFICE_ASSETS=assets python benchmarks/gpu_figures.py --minutes 9 --out figures --jobs cross,igos
    SUFFICE_ASSETS=assets python benchmarks/gpu_figures.py --list

Machines with a GPU are often lent for a short time only. Each job is a command of this repository with a limit of its
own; what no longer fits into the time that is left is skipped, and said. ``figures.log`` has all that the jobs print,
and ``jobs.jsonl`` what became of each, so that the same command later goes on with what is not done. ``--tiny`` runs
every job at the smallest size that says whether it works, on a CPU, too.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from benchmarks.real_models import ASSETS

ROOT = Path(__file__).parents[1]
PATIENCE = 15.0  # seconds in which an interrupted job may end by itself


@dataclass(frozen=True)
class Job:
    """A command whose output is a figure.

    Attributes:
        script: The script or module, with the options that hold at any size.
        full: Options of the real measurement, on a GPU.
        tiny: Options instead of these, to see whether it works.
        seconds: After which it is interrupted; the job is begun only where so much time is left.
        says: What is learned from it.
    """

    script: str
    full: str
    tiny: str
    seconds: int
    says: str


PHOTOGRAPHS = ASSETS.resolve() / "imagenet_val_1000" / "images"
THIRTEEN = "-m suffice study run {study} --dry-run --random-weights --forwards 1800 --only evidence --json"
SIZES = "--images 5000 --images 50000 --devices 1 --devices 8"
SMALL = "--batch 16 --device cpu"
JOBS = {
    "thirteen": Job(
        THIRTEEN, f"{SIZES} --precision fp16 --batch 1024 --calibrate 32", "--calibrate 1 --device cpu", 400,
        "hours that Table 1 of the CVPR 2024 paper takes, thirteen architectures with random weights",
    ),
    "cross": Job(
        "benchmarks/cross_speed.py", "--images 500 --batch 1024 --precision fp16 --compile",
        f"--images 10 --steps 2 --maps 1 2 {SMALL}", 300, "curves of a cross-test against the bare models",
    ),
    "cross-uncompiled": Job(
        "benchmarks/cross_speed.py", "--images 250 --batch 512 --precision fp16",
        f"--images 9 --steps 2 --maps 1 2 {SMALL}", 150, "the same as it is without compiling",
    ),
    "confirming": Job(
        "benchmarks/precision.py --without-exact --models vit --out agreement",
        "--images 500 --batch 1024 --compile --runs fp16:none,fp16:doubtful",
        "--images 1 --grid 3 --max-size 2 --runs bf16:doubtful --batch 16 --device cpu", 240,
        "what confirming a search in fp32 costs, and certificates",
    ),
    "evidence-vit": Job(
        "benchmarks/evidence_speed.py --models vit --twin-images 0",
        "--images 1000 --batch 1024 --precision fp16 --compile", f"--images 1 --max-size 1 {SMALL}", 240,
        "a search of a thousand photographs against the bare ViT-Ti",
    ),
    "evidence-resnet50": Job(
        "benchmarks/evidence_speed.py --models resnet50 --twin-images 0",
        "--images 1000 --batch 1024 --precision fp16 --compile", f"--images 1 --max-size 1 {SMALL}", 480,
        "the same with ResNet-50",
    ),
    "igos": Job(
        "benchmarks/igos_speed.py --real --twin-images 0",
        "--images 128 --batch 640 --precision fp16 --compile --variants usual cudnn", f"--images 1 {SMALL}", 240,
        "images a second of iGOS++",
    ),
    "tokens": Job(
        "benchmarks/token_speed.py", "--images 64 --batch 512 --precision bf16 --compile",
        f"--images 2 --model timm/test_vit --masks 8 --rounds 1 {SMALL}", 300, "speed of methods for transformers",
    ),
    "presets": Job(
        "benchmarks/evidence_speed.py --models resnet50 --presets default,cvpr2024 --twin-images 0",
        "--images 128 --batch 1024 --precision fp16 --compile", f"--images 1 --max-size 1 {SMALL}", 300,
        "what seed maps cost",
    ),
    "overhead": Job(
        "benchmarks/study_scale.py --model benchmarks.real_models:resnet50_v1 --only overhead --images {photographs}",
        "--count 1000 --device cuda --precision fp16 --batch 1024 --grid 7 --max-size 3 --deletion-orders 0 --steps 56 "
        "--rounds 2",
        "--count 4 --device cpu --batch 16 --grid 3 --max-size 1 --deletion-orders 0 --steps 2 --rounds 1", 280,
        "what a study adds to the functions it calls",
    ),
}  # fmt: skip


def command(job: Job, tiny: bool, folder: Path) -> list[str]:
    """The words of a job's command."""
    names = {"study": str(folder / "thirteen.toml"), "photographs": str(PHOTOGRAPHS)}
    words = f"{job.script} {job.tiny if tiny else job.full}".split()
    words = [str(ROOT / words[0]) if words[0].endswith(".py") else words[0], *words[1:]]
    return [sys.executable, *(word.format(**names) for word in words)]


def run(words: list[str], seconds: float, log: IO[bytes], folder: str) -> tuple[int, bool]:
    """Run a command in a folder for as long as it may take; its exit code, and whether it was interrupted."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        "PYTHONUNBUFFERED": "1",
        "SUFFICE_ASSETS": str(ASSETS.resolve()),
    }
    process = subprocess.Popen(
        words, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
    )  # fmt: skip
    for sign, wait in ((None, seconds), (signal.SIGINT, PATIENCE), (signal.SIGKILL, None)):
        if sign is not None:
            os.killpg(process.pid, sign)
        try:
            return process.wait(wait), sign is not None
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("A killed process ends.")


def finished(file: Path) -> set[str]:
    """The jobs that have ended well before."""
    rows = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
    return {row["job"] for row in rows if row["exit"] == 0}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", default=",".join(JOBS), help="names, in the order in which to do them")
    parser.add_argument("--minutes", type=float, default=9.0, help="in which all has to end")
    parser.add_argument("--out", type=Path, default=Path("gpu-figures"))
    parser.add_argument("--tiny", action="store_true", help="the smallest sizes, on a CPU")
    parser.add_argument("--list", action="store_true", help="only list the jobs")
    options = parser.parse_args(arguments)
    names = options.jobs.split(",")
    if unknown := [name for name in names if name not in JOBS]:
        parser.error(f"there is no job {unknown[0]!r}; there are {', '.join(JOBS)}")
    if options.list:
        print("\n".join(f"{name:18} {job.seconds:4} s  {job.says}" for name, job in JOBS.items()))
        return 0

    end, folder = time.monotonic() + 60 * options.minutes, options.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    write_study(folder / "thirteen.toml")
    done = finished(folder / "jobs.jsonl")
    for name in names:
        job, left = JOBS[name], end - time.monotonic()
        limit = left - PATIENCE if options.tiny else job.seconds  # how long a CPU takes says nothing
        if name in done or not 0 < limit <= left - PATIENCE:
            print(f"{name}: {'done before' if name in done else f'skipped, {left:.0f} s are left'}", flush=True)
            continue
        started = time.monotonic()
        with (folder / "figures.log").open("ab") as log, TemporaryDirectory() as elsewhere:
            words = command(job, options.tiny, folder)
            log.write(f"\n== {name}: {' '.join(words)}\n".encode())
            log.flush()
            code, cut = run(words, limit, log, elsewhere)
        row = {"job": name, "exit": code, "interrupted": cut, "seconds": round(time.monotonic() - started, 1)}
        with (folder / "jobs.jsonl").open("a") as file:
            print(json.dumps(row), file=file)
        print(json.dumps(row), flush=True)
    return 0 if set(names) <= finished(folder / "jobs.jsonl") else 1


def write_study(file: Path) -> None:
    """The study of the paper's Table 1, with the photographs that are there instead of ImageNet's."""
    text = (ROOT / "studies" / "jiang-table-1.toml").read_text()
    asked = 'images = { source = "$IMAGENET/val", every = 10 }'
    if asked not in text:
        raise ValueError(f"studies/jiang-table-1.toml no longer has the line {asked!r}.")
    file.write_text(text.replace(asked, f'images = "{PHOTOGRAPHS}"'))


if __name__ == "__main__":
    sys.exit(main())
