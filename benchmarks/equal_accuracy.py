"""Which trained networks to compare, such that the kinds that a study compares are equally accurate.

    python benchmarks/train_zoo.py … --stops 0.5,0.6,0.7,0.8,0.85,0.9,0.95 --out weights
    python benchmarks/equal_accuracy.py weights --study studies/normalization.toml --out matched

For each kind the mean accuracy of its trainings, those below --least left out and listed; for each contrast of the
study the difference, and whether it is more than half a point. Where it is, the better kind is to stop earlier: of all
choices of a step for each kind, of those at which networks were kept (--stops), the one that leaves every contrast
within half a point and the networks as accurate as possible. With --out these are copied there, all trainings of a kind
from the same step. A line for the file of recipes says how further trainings stop there at once. 1 if no choice does.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean, stdev

from benchmarks.train_zoo import STOPS
from suffice.study.asked import read_file
from suffice.study.choices import Contrast
from suffice.zoo.training import read_facts


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


def kind_of(folder: Path, name: str, least: float) -> Kind | None:
    """What there is of a kind; None where no training counts."""
    facts = {file: read_facts(file) for file in sorted(folder.glob(f"{name}-seed*.safetensors"))}
    poor = {own["seed"]: own["accuracy"] for own in facts.values() if own["accuracy"] < least}
    counted = {own["seed"]: (file, own["accuracy"]) for file, own in facts.items() if own["seed"] not in poor}
    if not counted:
        return None
    by_step: dict[int, dict[int, tuple[Path, float]]] = {}
    for file in sorted((folder / STOPS).glob(f"{name}-seed*-step*.safetensors")):
        own = read_facts(file)
        if own["seed"] in counted:
            by_step.setdefault(own["recipe"]["stop"], {})[own["seed"]] = file, own["accuracy"]
    whole = {step: own for step, own in by_step.items() if own.keys() == counted.keys()}
    return Kind(_kept(None, counted), tuple(_kept(step, whole[step]) for step in sorted(whole)), poor)


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


def written(kinds: Mapping[str, Kind], contrasts: Sequence[Contrast], chosen: Mapping[str, Kept], limit: float) -> str:
    """Two tables in Markdown, and lines for the file of recipes."""
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
    stops = {name: kept.step for name, kept in chosen.items() if kept.step is not None}
    if stops:
        lines += ["", "For the file of recipes, so that further trainings stop there:", ""]
        lines += [f"    {name}: stop = {step}" for name, step in stops.items()]
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("--study", type=Path, required=True, help="whose contrasts are meant")
    parser.add_argument("--out", type=Path, default=None, help="folder for the networks that are chosen")
    parser.add_argument("--least", type=float, default=0.75, help="accuracy from which on a training counts")
    parser.add_argument("--limit", type=float, default=0.005, help="greatest difference of the accuracies of two kinds")
    options = parser.parse_args(arguments)

    asked, _ = read_file(options.study)
    every = {name: kind_of(options.weights, name, options.least) for c in asked.contrasts for name in (c.of, c.against)}
    kinds = {name: kind for name, kind in every.items() if kind is not None}
    if missing := [name for name in every if name not in kinds]:
        print(f"No training counts of: {', '.join(missing)}.", file=sys.stderr)
    contrasts = [one for one in asked.contrasts if {one.of, one.against} <= kinds.keys()]
    # Differences of shares of a few thousand photographs: rounding must not decide.
    limit = options.limit + 1e-9
    chosen = matched(kinds, [(one.of, one.against) for one in contrasts], limit)
    print(written(kinds, contrasts, chosen, limit))
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        for name, kept in chosen.items():
            for seed, file in kept.files.items():
                shutil.copyfile(file, options.out / f"{name}-seed{seed}.safetensors")
    worst = max((abs(chosen[one.of].mean - chosen[one.against].mean) for one in contrasts), default=math.inf)
    return 0 if worst <= limit and not missing else 1


if __name__ == "__main__":
    sys.exit(main())
