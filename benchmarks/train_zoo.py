"""Train the zoo: every architecture with several seeds, on scenes that are rendered once.

python benchmarks/train_zoo.py --out weights --seeds 0,1,2 --max-minutes 25
python benchmarks/train_zoo.py --out weights --workers 6   # six processes share one GPU and the images on it
python benchmarks/train_zoo.py --out weights --data train.npz --validation val.npz --set zoom=0.35 --set mixup=0.2
python benchmarks/train_zoo.py --out weights --data train.npz --validation val.npz --seeds 0,1,2,3,4 --workers 8 \
    --compile --recipes benchmarks/normalization_recipes.toml:imagenette

Each run writes NAME-seedS.safetensors and a line of table.jsonl; runs that are there already are skipped, and one that
was stopped goes on from its checkpoint. A file of recipes names its architectures, table by table. With --stops 0.5,0.9
there is also, in the folder stops, what shorter runs would have ended with (benchmarks/equal_accuracy.py chooses).

After --max-minutes, or Ctrl-C, what is in training is saved, and the same command goes on with it; with --whole no run
is begun that would be cut off. Exit codes: 0 all is trained, 1 some failed, 2 the command asks for what cannot be and
nothing was trained, 3 not all is trained yet.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from benchmarks.limited_time import Limit, lines
from benchmarks.zoo_plan import TEACHER, Run, check_same, check_teachers, planned, read_recipes, recipe_of, teacher_of
from suffice.errors import OptionError, SufficeError
from suffice.zoo.training import Recipe, Trained, TrainingData, load_teacher, open_data, read_facts, train
from suffice.zoo.training.networks import hints
from suffice.zoo.training.weights import checkpoint_path, save_trained, weights_path

ROW = (
    "name",
    "seed",
    "accuracy",
    "validation_accuracy",
    "training_accuracy",
    "parameters",
    "seconds",
    "data",
    "recipe",
)
STOPS = "stops"  # folder beside the weights
POLL = 2.0  # seconds between two looks for a teacher that another process is training


def row_of(facts: dict[str, Any]) -> dict[str, Any]:
    """The line of the table, from the facts beside the weights."""
    return {key: facts[key] for key in ROW}


def listed(table: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """The lines of the table by name and seed."""
    rows = [json.loads(line) for line in table.read_text().splitlines()] if table.exists() else []
    return {(row["name"], row["seed"]): row for row in rows}


def append(table: Path, row: dict[str, Any]) -> None:
    """Add a line to the table, in one piece: several processes write to it."""
    with table.open("a") as file:
        file.write(json.dumps(row) + "\n")


class NotNow(Exception):
    """A run has to wait for another time; what there is of it is saved."""


def wait_for(path: Path, trained: Any, minutes: float, limit: Limit) -> None:
    """Wait for the weights of a teacher: another worker trains it, as long as it takes, or another command.

    Args:
        path: The weights.
        trained: Event of the run that makes them, which is set when it ends; None if it is not one of this command.
        minutes: How long to wait for another command.
        limit: Until when at all.
    """
    end = time.monotonic() + 60 * minutes
    while not path.exists():
        if limit.over():
            raise NotNow("time is up")
        if trained is not None and trained.is_set() and not path.exists():
            raise NotNow(f"its teacher was not trained, {path} does not exist")
        if trained is None and time.monotonic() > end:
            raise OptionError(f"The teacher's weights {path} do not exist after {minutes:.1f} minutes of waiting.")
        time.sleep(POLL)


def run_one(
    run: Run, recipe: Recipe, data: TrainingData, options: argparse.Namespace, limit: Limit, teachers: Mapping[Any, Any]
) -> dict[str, Any]:
    """Train, save, and tell.

    Raises:
        NotNow: The state is saved, or nothing was begun.
    """
    teacher = None
    if recipe.teacher is not None:
        path = weights_path(options.out, recipe.teacher, run.seed)
        wait_for(path, teachers.get((recipe.teacher, run.seed)), options.wait_minutes, limit)
        teacher = load_teacher(path, data.device)
    checkpoint = checkpoint_path(options.out, run.name, run.seed)
    total = recipe.total_steps(len(data.train))

    def keep(earlier: Trained) -> None:
        stopped = weights_path(options.out / STOPS, run.name, run.seed)
        save_trained(earlier, stopped.with_stem(f"{stopped.stem}-step{earlier.recipe.stop}"))

    try:
        trained = train(
            run.name, data, recipe, teacher=teacher, checkpoint=checkpoint, resume=checkpoint.exists(),
            stops={round(share * total) for share in options.stops} - {recipe.stop or total}, on_stop=keep,
            on_progress=lines(f"{run.name} seed {run.seed}", limit.began, options.progress), pause=limit.over,
        )  # fmt: skip
    except KeyboardInterrupt:
        if not limit.over():  # it was Ctrl-C
            limit.stop.set()
        raise NotNow("the state is saved") from None
    path = weights_path(options.out, run.name, run.seed)
    save_trained(trained, path)
    if checkpoint.exists():
        checkpoint.unlink()
        checkpoint.parent.rmdir()
    on_the_way = [round(row.validation, 4) for row in trained.history if row.validation is not None]
    return {**row_of(read_facts(path)), "on_the_way": on_the_way}


def train_all(
    runs: Iterable[Run], data: TrainingData, options: argparse.Namespace, limit: Limit, teachers: Mapping[Any, Any]
) -> list[str]:
    """Do the runs that are not done yet, as long as there is time; return what failed and why."""
    table = options.out / "table.jsonl"
    failed: list[str] = []
    longest = 0.0
    for run in runs:
        start = time.time()
        try:
            recipe = recipe_of(run, data, options)
            path = weights_path(options.out, run.name, run.seed)
            if path.exists():
                check_same(path, recipe)
                if (run.name, run.seed) not in listed(table):  # stopped between the weights and the line
                    append(table, row_of(read_facts(path)))
                continue
            if limit.over() or (options.whole and longest > limit.left()):
                raise NotNow("not enough time is left to begin")
            row = run_one(run, recipe, data, options, limit, teachers)
        except SufficeError as error:
            failed.append(f"{run.name}, seed {run.seed}: {error}")
            print(f"FAILED {failed[-1]}", flush=True)
            continue
        except NotNow as reason:
            print(f"Stopped: {run.name}, seed {run.seed}: {reason}.", flush=True)
            continue
        finally:
            if (run.name, run.seed) in teachers:
                teachers[run.name, run.seed].set()
        append(table, row)
        longest = max(longest, time.time() - start, row["seconds"])
        print(
            f"{time.time() - limit.began:6.0f} s  {run.name:16} seed {run.seed}  accuracy {row['accuracy']:.4f}  "
            f"train {row['training_accuracy']:.4f}  {row['parameters']:,} parameters  {row['seconds']:.1f} s  "
            f"on the way {' '.join(f'{share:.3f}' for share in row['on_the_way'])}",
            flush=True,
        )
        torch.compiler.reset()
    return failed


def work(
    queue: Any,
    failures: Any,
    teachers: Mapping[Any, Any],
    limit: Limit,
    data: TrainingData,
    options: argparse.Namespace,
) -> None:
    """One of several processes: take runs from the queue until it ends."""
    torch.set_num_threads(1)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # between two runs; in one it is saved
        signal.signal(signal.SIGTERM, interrupted)
    for failure in train_all(iter(queue.get, None), data, options, limit, teachers):
        failures.put(failure)


def train_side_by_side(
    runs: list[Run], data: TrainingData, options: argparse.Namespace, began: float, students: Collection[Any]
) -> list[str]:
    """The same by several processes, which share the images on the device."""
    context = torch.multiprocessing.get_context("spawn")
    queue, failures = context.Queue(), context.Queue()
    for run in [*runs, *[None] * options.workers]:
        queue.put(run)
    limit = Limit(began, options.max_minutes, context.Event())
    teachers = {key: context.Event() for key in students}
    arguments = (queue, failures, teachers, limit, data, options)
    workers = [context.Process(target=work, args=arguments) for _ in range(options.workers)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        try:
            for worker in workers:
                worker.join()
        except KeyboardInterrupt:  # they save what they are at
            limit.stop.set()
    failed = [failures.get() for _ in range(failures.qsize())]
    return failed + [f"a worker ended with {w.exitcode}" for w in workers if w.exitcode]


def chosen(text: str) -> tuple[str, Any]:
    """A field of the recipe and its value, which is JSON."""
    name, _, value = text.partition("=")
    if name not in {field.name for field in fields(Recipe)}:
        raise argparse.ArgumentTypeError(f"a recipe has no {name!r}")
    return name, json.loads(value)


def shares(text: str) -> tuple[float, ...]:
    """Numbers from 0 to 1, separated by commas."""
    found = tuple(float(part) for part in text.split(","))
    if not all(0 < share <= 1 for share in found):
        raise argparse.ArgumentTypeError(f"{text} are not shares between 0 and 1")
    return found


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--names", default="all", help="architectures, separated by commas")
    made.add_argument("--recipes", default=None, metavar="FILE:TABLE", help="recipes of each, in TOML")
    made.add_argument("--seeds", default="0,1,2")
    made.add_argument("--out", type=Path, required=True)
    made.add_argument("--steps", type=int, default=None)
    made.add_argument("--batch", type=int, default=None)
    made.add_argument("--lr", type=float, default=None)
    made.add_argument("--images", type=int, default=None, help="training images")
    made.add_argument("--data", default="scenes")
    made.add_argument("--validation", default=None)
    made.add_argument("--size", type=int, default=None)
    made.add_argument("--detail", type=int, default=1, help="training images are kept so many times as large")
    made.add_argument("--teacher", default=None, help=f"of the distilled networks, or none; default: {TEACHER}")
    made.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    made.add_argument("--compile", action="store_true")
    made.add_argument("--max-minutes", type=float, default=None, help="then save what is in training, and end")
    made.add_argument("--whole", action="store_true", help="begin no run that would not end in these minutes")
    made.add_argument("--progress", type=float, default=20.0, metavar="SECONDS", help="between two lines of a run")
    made.add_argument(
        "--wait-minutes", type=float, default=0.0, help="longest wait for a teacher that another command is training"
    )
    made.add_argument(
        "--set", action="append", default=[], type=chosen, metavar="NAME=VALUE", help="a field of the recipe, for all"
    )
    made.add_argument("--stops", type=shares, default=(), help="shares of the steps after which networks are kept")
    made.add_argument("--workers", type=int, default=1, help="processes that train side by side")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Train what the options say; 1 if a run failed."""
    began = time.time()
    options = parser().parse_args(arguments)
    from suffice.zoo.architectures import ARCHITECTURES

    seeds = [int(seed) for seed in options.seeds.split(",")]
    try:
        options.recipes = {} if options.recipes is None else read_recipes(options.recipes)
        names = list(options.recipes or ARCHITECTURES) if options.names == "all" else options.names.split(",")
        runs = planned(names, seeds, {teacher_of(name, options) for name in names if hints(name)[0]})
        options.out.mkdir(parents=True, exist_ok=True)
        data = open_data(
            options.data, validation=options.validation, size=options.size, images=options.images,
            detail=options.detail, device=options.device,
        )  # fmt: skip
        recipes = {run: recipe_of(run, data, options) for run in runs}
        check_teachers(recipes, data, options)
        print(f"{len(runs)} runs on {len(data.train):,} images, ready after {time.time() - began:.1f} s", flush=True)
        taught = {(recipe.teacher, run.seed) for run, recipe in recipes.items()} & {(r.name, r.seed) for r in runs}
        if options.workers == 1:
            limit = Limit(began, options.max_minutes, threading.Event())
            failed = train_all(runs, data, options, limit, {key: threading.Event() for key in taught})
        else:
            failed = train_side_by_side(runs, data, options, began, taught)
    except SufficeError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    missing = [run for run in runs if not weights_path(options.out, run.name, run.seed).exists()]
    print(f"{len(runs) - len(missing)} of {len(runs)} runs are there after {time.time() - began:.1f} s.", flush=True)
    if failed:
        return 1
    if missing:
        print("The same command goes on with the others.", flush=True)
    return 3 if missing else 0


def interrupted(number: int, frame: Any) -> None:
    """What is told to end by SIGTERM, as `timeout` does it, ends as by Ctrl-C."""
    signal.raise_signal(signal.SIGINT)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, interrupted)
    sys.exit(main())
