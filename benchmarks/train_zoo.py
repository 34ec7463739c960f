"""Train the zoo: every architecture with several seeds, on scenes that are rendered once.

python benchmarks/train_zoo.py --out weights --seeds 0,1,2 --max-minutes 25
python benchmarks/train_zoo.py --out weights --workers 6   # six processes share one GPU and the images on it
python benchmarks/train_zoo.py --out weights --data train.npz --validation val.npz --set zoom=0.35 --set mixup=0.2
python benchmarks/train_zoo.py --out weights --data train.npz --validation val.npz --seeds 0,1,2,3,4 --workers 8 \
    --compile --recipes benchmarks/normalization_recipes.toml:imagenette

Each run writes NAME-seedS.safetensors and a line of table.jsonl; runs that are there already are skipped, and one that
was stopped goes on from its checkpoint. A file of recipes names its architectures, table by table. With --stops 0.5,0.9
there is also, in the folder stops, what shorter runs would have ended with (benchmarks/equal_accuracy.py chooses).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch

from suffice.errors import OptionError, SufficeError
from suffice.zoo.training import Recipe, Trained, TrainingData, load_teacher, open_data, read_facts, recipe_for, train
from suffice.zoo.training.networks import hints
from suffice.zoo.training.weights import checkpoint_path, save_trained, weights_path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

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
TEACHER = "resnet"
STOPS = "stops"  # folder beside the weights
POLL = 2.0  # seconds between two looks for a teacher that another process is training


@dataclass(frozen=True)
class Run:
    """One network with one seed."""

    name: str
    seed: int
    distilled: bool
    augmented: bool


def planned(names: list[str], seeds: list[int], teachers: Collection[str]) -> list[Run]:
    """All runs: teachers first, those who learn from them last."""
    runs = [Run(name, seed, *hints(name)) for seed in seeds for name in names]
    return sorted(runs, key=lambda run: (run.distilled, run.name not in teachers))


def read_recipes(text: str) -> dict[str, dict[str, Any]]:
    """Fields of recipes by the name of the network, from the tables ``[TABLE.NAME]`` of FILE:TABLE.

    ``[TABLE.all]`` is for every network, the others add to it.
    """
    file, _, table = text.rpartition(":")
    try:
        tables = tomllib.loads(Path(file).read_text(encoding="utf-8"))[table]
    except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
        raise OptionError(f"There are no recipes {table!r} in {file!r}: {error}") from None
    every = tables.pop("all", {})
    return {name: every | own for name, own in tables.items()}


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


def wait_for(path: Path, seconds: float) -> None:
    """Wait for the weights of a teacher that another process is training."""
    end = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() > end:
            raise OptionError(
                f"The teacher's weights {path} do not exist after {seconds / 60:.1f} minutes of waiting. Train the "
                "teacher first, or add it to --names."
            )
        time.sleep(min(POLL, max(seconds, 0.01)))


def recipe_of(run: Run, data: TrainingData, options: argparse.Namespace) -> Recipe:
    """How a network is to be trained: by the file, by what is typed, and by what its kind asks for."""
    typed = {"steps": options.steps, "batch": options.batch, "lr": options.lr, "compile": options.compile or None}
    given = options.recipes.get(run.name, {}) | {name: value for name, value in typed.items() if value is not None}
    given |= {**dict(options.set), "seed": run.seed}
    teacher = teacher_of(run.name, options) if run.distilled else "none"
    given["teacher"] = None if teacher == "none" else teacher
    return recipe_for(photographs=data.photographs, augmented=run.augmented, **given)


def teacher_of(name: str, options: argparse.Namespace) -> str:
    """Whom a distilled network learns from: as typed, else as its recipe says."""
    return options.teacher or options.recipes.get(name, {}).get("teacher", TEACHER)


def run_one(run: Run, recipe: Recipe, data: TrainingData, options: argparse.Namespace) -> dict[str, Any]:
    """Train, save, and tell."""
    teacher = None
    if recipe.teacher is not None:
        path = weights_path(options.out, recipe.teacher, run.seed)
        wait_for(path, 60 * options.wait_minutes)
        teacher = load_teacher(path, data.device)
    checkpoint = checkpoint_path(options.out, run.name, run.seed)
    total = recipe.total_steps(len(data.train))

    def keep(earlier: Trained) -> None:
        stopped = weights_path(options.out / STOPS, run.name, run.seed)
        save_trained(earlier, stopped.with_stem(f"{stopped.stem}-step{earlier.recipe.stop}"))

    trained = train(
        run.name, data, recipe, teacher=teacher, checkpoint=checkpoint, resume=checkpoint.exists(),
        stops={round(share * total) for share in options.stops} - {recipe.stop or total}, on_stop=keep,
    )  # fmt: skip
    path = weights_path(options.out, run.name, run.seed)
    save_trained(trained, path)
    if checkpoint.exists():
        checkpoint.unlink()
        checkpoint.parent.rmdir()
    on_the_way = [round(row.validation, 4) for row in trained.history if row.validation is not None]
    return {**row_of(read_facts(path)), "on_the_way": on_the_way}


def check_same(path: Path, recipe: Recipe) -> None:
    """Raise where weights that are there already were trained by another recipe: they would pass for what is asked."""
    stored = Recipe(**read_facts(path)["recipe"])
    if different := replace(stored, compile=recipe.compile).differences(recipe):
        raise OptionError(
            f"{path} was trained by another recipe (there and here): {'; '.join(different)}. Remove it to train it "
            "again, or give another --out."
        )


def train_all(runs: Iterable[Run], data: TrainingData, options: argparse.Namespace, began: float) -> list[str]:
    """Do the runs that are not done yet, as long as there is time; return what failed and why."""
    table = options.out / "table.jsonl"
    failed: list[str] = []
    longest = 0.0
    for run in runs:
        path = weights_path(options.out, run.name, run.seed)
        start = time.time()
        spent = start - began
        try:
            recipe = recipe_of(run, data, options)
            if path.exists():
                check_same(path, recipe)
                if (run.name, run.seed) not in listed(table):  # stopped between the weights and the line
                    append(table, row_of(read_facts(path)))
                continue
            if options.max_minutes is not None and spent + longest > 60 * options.max_minutes:
                print(f"Stopped before {run.name}, seed {run.seed}: {spent / 60:.1f} minutes are spent.", flush=True)
                continue
            row = run_one(run, recipe, data, options)
        except SufficeError as error:
            failed.append(f"{run.name}, seed {run.seed}: {error}")
            print(f"FAILED {failed[-1]}", flush=True)
            continue
        append(table, row)
        longest = max(longest, time.time() - start)
        print(
            f"{time.time() - began:6.0f} s  {run.name:16} seed {run.seed}  accuracy {row['accuracy']:.4f}  "
            f"train {row['training_accuracy']:.4f}  {row['parameters']:,} parameters  {row['seconds']:.1f} s  "
            f"on the way {' '.join(f'{share:.3f}' for share in row['on_the_way'])}",
            flush=True,
        )
        torch.compiler.reset()
    return failed


def work(queue: Any, failures: Any, data: TrainingData, options: argparse.Namespace, began: float) -> None:
    """One of several processes: take runs from the queue until it ends."""
    torch.set_num_threads(1)
    for failure in train_all(iter(queue.get, None), data, options, began):
        failures.put(failure)


def train_side_by_side(runs: list[Run], data: TrainingData, options: argparse.Namespace, began: float) -> list[str]:
    """The same by several processes, which share the images on the device."""
    context = torch.multiprocessing.get_context("spawn")
    queue, failures = context.Queue(), context.Queue()
    for run in [*runs, *[None] * options.workers]:
        queue.put(run)
    arguments = (queue, failures, data, options, began)
    workers = [context.Process(target=work, args=arguments) for _ in range(options.workers)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
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
    made.add_argument("--max-minutes", type=float, default=None)
    made.add_argument("--wait-minutes", type=float, default=10.0, help="longest wait for a teacher in training")
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
        print(f"{len(runs)} runs on {len(data.train):,} images, ready after {time.time() - began:.1f} s", flush=True)
        failed = (train_all if options.workers == 1 else train_side_by_side)(runs, data, options, began)
    except SufficeError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
