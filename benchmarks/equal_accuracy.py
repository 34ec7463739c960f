"""Which trained networks to compare, such that the kinds that a study compares are equally accurate.

    python benchmarks/train_zoo.py … --stops 0.5,0.6,0.7,0.8,0.85,0.9,0.95 --out weights
    python benchmarks/equal_accuracy.py weights --study studies/normalization.toml --out matched --recipes again.toml:a
    python benchmarks/train_zoo.py … --recipes again.toml:a --seeds 10,11,12 --out matched

For each kind the mean accuracy of its trainings, those below --least left out and listed; for each contrast of the
study the difference, and whether it is more than half a point. Where it is, the better kind is to stop earlier: of all
choices of a step for each kind, of those at which networks were kept (--stops), the one that leaves every contrast
within half a point and the networks as accurate as possible; steps before --least-steps, and those at which a training
would not count, are no choice. With --out these are copied there, all trainings of a kind from the same step; with
--recipes a file is written by which further trainings stop there at once. 1 if no choice does.

All trainings of a family, which is what contrasts link, must have one recipe: only what a kind is about (modern
augmentation, a teacher) may differ between kinds. Trainings with seeds from 100 to 199 are pilots, by which recipes are
found; they are left out, or with --pilot the only ones that are looked at.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from benchmarks.train_zoo import STOPS
from benchmarks.zoo_plan import tables_of
from suffice.errors import OptionError, SufficeError
from suffice.study.asked import read_file
from suffice.study.choices import Contrast
from suffice.zoo.architectures import ARCHITECTURES
from suffice.zoo.training import Recipe, read_facts
from suffice.zoo.training.recipe import MODERN
from suffice.zoo.training.weights import weights_path

PILOTS = range(100, 200)  # seeds
# What may differ between trainings of one kind, and what with a teacher.
FREE, TAUGHT = {"seed", "stop", "compile"}, {"teacher", "distillation", "distill_weight", "temperature"}
HEAD = "# Written by benchmarks/equal_accuracy.py: the recipes of networks that are equally accurate.\n"


@dataclass(frozen=True)
class Kept:
    """The trainings of a kind as they were after one step, their accuracies and files by seed."""

    step: int | None  # None is the last
    accuracies: Mapping[int, float]
    files: Mapping[int, Path]

    @property
    def mean(self) -> float:
        """Of the accuracies."""
        return fmean(self.accuracies.values())


@dataclass(frozen=True)
class Kind:
    """A kind of network: what its trainings ended with, what they were on the way, and which do not count."""

    ends: Kept
    earlier: tuple[Kept, ...]
    poor: Mapping[int, float]


def kind_of(folder: Path, name: str, least: float, least_steps: int = 0, pilot: bool = False) -> Kind | None:
    """What there is of a kind; None where no training counts."""
    facts = {file: read_facts(file) for file in sorted(folder.glob(f"{name}-seed*.safetensors"))}
    facts = {file: own for file, own in facts.items() if (own["seed"] in PILOTS) == pilot}
    poor = {own["seed"]: own["accuracy"] for own in facts.values() if own["accuracy"] < least}
    counted = {own["seed"]: (file, own["accuracy"]) for file, own in facts.items() if own["seed"] not in poor}
    if not counted:
        return None
    by_step: dict[int, dict[int, tuple[Path, float]]] = {}
    for file in sorted((folder / STOPS).glob(f"{name}-seed*-step*.safetensors")):
        own = read_facts(file)
        if own["seed"] in counted and own["recipe"]["stop"] >= least_steps:
            by_step.setdefault(own["recipe"]["stop"], {})[own["seed"]] = file, own["accuracy"]
    earlier = [
        _kept(step, own)
        for step, own in sorted(by_step.items())
        if own.keys() == counted.keys() and all(accuracy >= least for _, accuracy in own.values())
    ]
    return Kind(_kept(None, counted), tuple(earlier), poor)


def _kept(step: int | None, own: Mapping[int, tuple[Path, float]]) -> Kept:
    return Kept(step, {seed: a for seed, (_, a) in own.items()}, {seed: file for seed, (file, _) in own.items()})


def matched(kinds: Mapping[str, Kind], contrasts: Sequence[tuple[str, str]], limit: float) -> dict[str, Kept]:
    """For each kind when to stop, such that contrasts differ by at most the limit and accuracy is highest.

    Where nothing does, the largest difference is as small as it can be.
    """
    chosen: dict[str, Kept] = {}
    for group in linked(kinds, contrasts):
        own = [pair for pair in contrasts if set(pair) <= set(group)]

        def worth(some: Sequence[Kept], group=group, own=own) -> tuple[float, float, int]:
            there = dict(zip(group, some, strict=True))
            worst = max((abs(there[a].mean - there[b].mean) for a, b in own), default=0.0)
            return -max(worst, limit), sum(one.mean for one in some), sum(one.step is None for one in some)

        choices = product(*((*kinds[name].earlier, kinds[name].ends) for name in group))
        chosen |= dict(zip(group, max(choices, key=worth), strict=True))
    return chosen


def linked(names: Mapping[str, Kind], contrasts: Sequence[tuple[str, str]]) -> list[list[str]]:
    """The names in groups: those that contrasts link, directly or through others, are in one.

    Example:
        >>> linked(dict.fromkeys("abcd"), [("a", "b"), ("b", "d")])
        [['a', 'b', 'd'], ['c']]
    """
    groups = [[name] for name in names]
    for pair in contrasts:
        together = [group for group in groups if set(group) & set(pair)]
        groups = [group for group in groups if group not in together]
        groups.append([name for name in names if any(name in group for group in together)])
    return sorted(groups, key=lambda group: list(names).index(group[0]))


def check_one_recipe(kinds: Mapping[str, Kind], contrasts: Sequence[tuple[str, str]]) -> None:
    """Raise where trainings that are to be compared had recipes that differ in more than what is compared.

    Raises:
        OptionError: With the names of all that differ from the first of their family.
    """
    wrong = []
    for group in linked(kinds, contrasts):
        firsts = []
        for name in group:
            first, *others = (file for kept in (kinds[name].ends, *kinds[name].earlier) for file in kept.files.values())
            firsts.append(first)
            wrong += _differences(first, others, FREE)
        for name, file in zip(group[1:], firsts[1:], strict=True):
            (taught, modern), (other_taught, other_modern) = _about(group[0]), _about(name)
            free = FREE | (TAUGHT if taught != other_taught else set())
            free |= set(MODERN) if modern != other_modern else set()
            wrong += _differences(firsts[0], [file], free)
    if wrong:
        raise OptionError(
            "\n  ".join(["Trainings of several recipes in one family; leave those of one in the folder:", *wrong])
        )


def _differences(first: Path, others: Sequence[Path], free: Set[str]) -> Iterator[str]:
    """Which trainings were not as the first one, but for some fields of their recipes."""
    here = _conditions(first)
    for file in others:
        there = _conditions(file)
        keys = sorted(key for key in here.keys() | there.keys() if key not in free and here.get(key) != there.get(key))
        if keys:
            said = "; ".join(f"{key}: {there.get(key)} and {here.get(key)}" for key in keys)
            yield f"{file.stem} was not trained as {first.stem} (there and here): {said}."


def _conditions(file: Path) -> dict[str, Any]:
    """The recipe of a training, and what it was trained on."""
    facts = read_facts(file)
    return {**facts["recipe"], "classes": facts.get("classes"), "size": facts.get("size")}


def _about(name: str) -> tuple[bool, bool]:
    """Whether a kind is about learning from a teacher, and about modern augmentation."""
    known = ARCHITECTURES.get(name)
    return known is not None and bool(known.distilled), known is not None and bool(known.augmented)


def recipes_of(folder: Path, chosen: Mapping[str, Kept]) -> Iterator[tuple[str, dict[str, Any]]]:
    """By name, the fields of the recipes of what was chosen, and of those whom these learn from."""
    teachers: dict[str, list[Path]] = {}
    for name, kept in chosen.items():
        for seed, file in kept.files.items():
            recipe = read_facts(file)["recipe"]
            if (teacher := recipe.get("teacher")) is not None:
                teachers.setdefault(teacher, []).append(weights_path(folder, teacher, seed))
        yield name, _fields(recipe)
    for teacher, files in teachers.items():
        there = [file for file in files if file.exists()]
        if not there:
            print(f"{files[0]} does not exist, and with it how {teacher} was trained.", file=sys.stderr)
        elif wrong := list(_differences(there[0], there[1:], FREE)):
            raise OptionError("\n  ".join(["Teachers of several recipes:", *wrong]))
        elif teacher not in chosen:
            yield teacher, _fields(read_facts(there[0])["recipe"])


def _fields(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """What a file of recipes says: TOML has no None, which is the default but of few fields."""
    if lost := [key for key, value in recipe.items() if value is None and getattr(Recipe(), key) is not None]:
        raise OptionError(f"A file of recipes cannot say {lost[0]}=None.")
    return {key: value for key, value in recipe.items() if value is not None and key not in ("seed", "compile")}


def write_recipes(place: str, recipes: Mapping[str, Mapping[str, Any]]) -> None:
    """Put recipes into FILE:TABLE, for benchmarks/train_zoo.py; other tables of the file stay.

    Raises:
        OptionError: The file was written by somebody else.
    """
    name, _, table = place.rpartition(":")
    file = Path(name)
    if file.exists() and not file.read_text(encoding="utf-8").startswith(HEAD):
        raise OptionError(f"{file} was not written by this script; give another file to --recipes.")
    tables = {**(tables_of(file) if file.exists() else {}), table: recipes}
    text = HEAD
    for own, every in tables.items():
        for kind, fields in every.items():
            lines = [f"{key} = {json.dumps(value)}\n" for key, value in fields.items()]
            text += f"\n[{json.dumps(own)}.{json.dumps(kind)}]\n{''.join(lines)}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def written(kinds: Mapping[str, Kind], contrasts: Sequence[Contrast], chosen: Mapping[str, Kept], limit: float) -> str:
    """Two tables in Markdown."""
    lines = [
        "| kind | trainings | accuracy | lowest | deviation | stop | accuracy then |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, kind in kinds.items():
        all_of_them = list(kind.ends.accuracies.values())
        spread = f"{100 * stdev(all_of_them):.2f}" if len(all_of_them) > 1 else "–"
        stop = chosen[name].step or "–"
        lines.append(
            f"| {name} | {len(all_of_them)} | {kind.ends.mean:.2%} | {min(all_of_them):.2%} | {spread} | {stop} "
            f"| {chosen[name].mean:.2%} |"
        )
    lines += ["", "| contrast | points apart | | then | |", "|---|---|---|---|---|"]
    for one in contrasts:
        first = kinds[one.of].ends.mean - kinds[one.against].ends.mean
        then = chosen[one.of].mean - chosen[one.against].mean
        said = ["" if abs(d) <= limit else "**too far**" for d in (first, then)]
        lines.append(f"| {one.of} – {one.against} | {100 * first:+.2f} | {said[0]} | {100 * then:+.2f} | {said[1]} |")
    poor = [f"{name}, seed {seed}: {a:.2%}" for name, kind in kinds.items() for seed, a in kind.poor.items()]
    if poor:
        lines += ["", f"Not counted, to be trained again with other seeds: {'; '.join(poor)}."]
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("--study", type=Path, required=True, help="whose contrasts are meant")
    parser.add_argument("--out", type=Path, default=None, help="folder for the networks that are chosen")
    parser.add_argument("--least", type=float, default=0.75, help="accuracy from which on a training counts")
    parser.add_argument("--least-steps", type=int, default=0, help="no kind stops before so many")
    parser.add_argument("--pilot", action="store_true", help="look at trainings with seeds from 100 to 199 alone")
    parser.add_argument("--recipes", default=None, metavar="FILE:TABLE", help="file of recipes to write")
    parser.add_argument("--limit", type=float, default=0.005, help="greatest difference of the accuracies of two kinds")
    options = parser.parse_args(arguments)

    try:
        return compare(options)
    except SufficeError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2


def compare(options: argparse.Namespace) -> int:
    """Choose, tell and write; 1 where no choice makes them equally accurate."""
    asked, _ = read_file(options.study)
    names = dict.fromkeys(name for one in asked.contrasts for name in (one.of, one.against))
    every = {n: kind_of(options.weights, n, options.least, options.least_steps, options.pilot) for n in names}
    kinds = {name: kind for name, kind in every.items() if kind is not None}
    if missing := [name for name in every if name not in kinds]:
        print(f"No training counts of: {', '.join(missing)}.", file=sys.stderr)
    contrasts = [one for one in asked.contrasts if {one.of, one.against} <= kinds.keys()]
    check_one_recipe(kinds, [(one.of, one.against) for one in contrasts])
    # Differences of shares of a few thousand photographs: rounding must not decide.
    limit = options.limit + 1e-9
    chosen = matched(kinds, [(one.of, one.against) for one in contrasts], limit)
    print(written(kinds, contrasts, chosen, limit))
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        for name, kept in chosen.items():
            for seed, file in kept.files.items():
                shutil.copyfile(file, options.out / f"{name}-seed{seed}.safetensors")
    if options.recipes is not None:
        write_recipes(options.recipes, dict(recipes_of(options.weights, chosen)))
    worst = max((abs(chosen[one.of].mean - chosen[one.against].mean) for one in contrasts), default=math.inf)
    return 0 if worst <= limit and not missing else 1


if __name__ == "__main__":
    sys.exit(main())
