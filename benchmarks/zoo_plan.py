"""What benchmarks/train_zoo.py is to train, with which recipes, and whether that can be."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from suffice.errors import OptionError, SufficeError
from suffice.zoo.training import Recipe, TrainingData, load_teacher, read_facts, recipe_for
from suffice.zoo.training.networks import hints
from suffice.zoo.training.weights import weights_path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TEACHER = "resnet"


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


def tables_of(file: Path) -> dict[str, Any]:
    """All that a file of recipes says."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise OptionError(f"Cannot read the recipes {str(file)!r}: {error}") from None


def read_recipes(text: str) -> dict[str, dict[str, Any]]:
    """Fields of recipes by the name of the network, from the tables ``[TABLE.NAME]`` of FILE:TABLE.

    ``[TABLE.all]`` is for every network, the others add to it.
    """
    file, _, table = text.rpartition(":")
    tables = tables_of(Path(file)).get(table)
    if tables is None:
        raise OptionError(f"There are no recipes {table!r} in {file!r}.")
    every = tables.pop("all", {})
    return {name: every | own for name, own in tables.items()}


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


def check_same(path: Path, recipe: Recipe) -> None:
    """Raise where weights that are there already were trained by another recipe: they would pass for what is asked."""
    stored = Recipe(**read_facts(path)["recipe"])
    if different := replace(stored, compile=recipe.compile).differences(recipe):
        raise OptionError(
            f"{path} was trained by another recipe (there and here): {'; '.join(different)}. Remove it to train it "
            "again, or give another --out."
        )


def check_teachers(recipes: Mapping[Run, Recipe], data: TrainingData, options: argparse.Namespace) -> None:
    """Raise, before anything is trained, where a network is to learn from one that is not there, or not the right one.

    Raises:
        OptionError: With the names of all of these, and what is wrong.
    """
    planned = {(run.name, run.seed): recipe for run, recipe in recipes.items()}
    wrong = []
    for run, recipe in recipes.items():
        if recipe.teacher is None or weights_path(options.out, run.name, run.seed).exists():
            continue
        path, own = weights_path(options.out, recipe.teacher, run.seed), planned.get((recipe.teacher, run.seed))
        try:
            if not path.exists():
                if own is None and not options.wait_minutes:
                    raise OptionError(f"its teacher's weights {path} do not exist. Add {recipe.teacher} to --names.")
                continue
            if (name := read_facts(path)["name"]) != recipe.teacher:
                raise OptionError(f"{path} is of {name}, not of its teacher {recipe.teacher}.")
            load_teacher(path).check(data)
            if own is not None:
                check_same(path, own)
        except SufficeError as error:
            wrong.append(f"{run.name}, seed {run.seed}: {error}")
    if wrong:
        raise OptionError("\n  ".join(["Nothing was trained, as some networks have no teacher to learn from:", *wrong]))
