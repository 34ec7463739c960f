"""The tables of the papers, from one command.

    python benchmarks/tables.py zoo-methods vit-cx-ablations --images 200 --out tables

Every table becomes NAME.md, as docs/notebook/methods.md shows it, and a folder: scores.md with tests of significance,
scores.csv, scores.tex, scores.parquet with the value of every image, and facts.json with everything that the numbers
depend on. They are written anew whenever a row is done. Start the same command again after an interruption: rows that
are there are not made again.

Networks of the zoo and scenes come with the package. Real weights and photographs, for real-cnn and real-vit, lie in
the folder named in SUFFICE_ASSETS.
"""

from __future__ import annotations

import argparse
import json
import platform
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

import suffice
from benchmarks.table_plans import QUICK, TABLES, Plan, changed, images_for, load
from benchmarks.table_store import Maps, Rows
from suffice.cli.options import method_options
from suffice.metrics import CurveChoices, Entry, Protocol, ScoreTable, find_protocol, score_table
from suffice.metrics.score_table import TableRow


@dataclass(frozen=True)
class Settings:
    """How tables are made, whatever they show.

    Attributes:
        images: How many.
        device: Of the models.
        batch: Inputs per forward; None chooses.
        precision: Of the models, for methods and metrics.
        compile: Compile the models where nothing looks inside.
        seed: Of everything random.
        quick: Do so little work that everything can be tried.
        steps: Of curves, where protocols have steps; None: as the protocol has it.
        models: Instead of those of the plan.
        methods: Only these, by the names of methods.
        options: Of methods, by name, instead of the plan's.
        command: What was typed, less the names of tables and folder.
    """

    images: int = 200
    device: str = "cpu"
    batch: int | None = None
    precision: Any = "fp32"
    compile: bool = False
    seed: int = 0
    quick: bool = False
    steps: int | None = None
    models: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    options: Mapping[str, Mapping[str, Any]] | None = None
    command: str = ""


def make_table(name: str, plan: Plan, settings: Settings, out: Path, maps: Maps | None = None) -> ScoreTable | None:
    """Make one table, row by row, and write it after every row; None where it has no rows."""
    maps = maps or Maps()
    title = "-".join(filter(None, (name, plan.name)))
    folder = out / title
    rows = Rows(folder)
    protocol = with_steps(plan.protocol, settings.steps)
    done: dict[tuple[str, str], TableRow] = {}
    keys: dict[tuple[str, str], dict[str, Any]] = {}
    for model in settings.models or plan.models:
        net = load(model, settings.device)
        images = images_for(model, settings.images)
        entries = {entry.name: entry for entry in entries_for(plan, net, settings)}
        for label, entry in entries.items():
            keys[net.name, label] = conditions(plan, protocol, net, entry, images, settings)
            if row := rows.find(keys[net.name, label]):
                done[net.name, label] = row

        def finished(row: TableRow) -> None:
            entry, pair = entries[row.method], (row.model, row.method)  # noqa: B023
            row = replace(row, seconds=maps.seconds / len(images))  # noqa: B023
            if plan.facts is not None:
                row = replace(row, facts=plan.facts(net, images, entry))  # noqa: B023
            maps.seconds = 0.0
            done[pair] = row
            rows.add(keys[pair], row, made_by(settings))
            print(f"{time.strftime('%X')} {title}: {row.model}, {row.method}", file=sys.stderr, flush=True)
            write(name, plan, protocol, {k: keys[k] for k in keys if k in done}, done, settings, folder)

        missing = [maps.remembered(entry) for label, entry in entries.items() if (net.name, label) not in done]
        maps.seconds = 0.0
        if missing:
            score_table(
                [net],
                images,
                missing,
                plan.metrics,
                protocol,
                target_class=plan.target_class,
                seed=settings.seed,
                batch_size=settings.batch or "auto",
                precision=settings.precision,
                compile=settings.compile,
                on_row=finished,
            )
    if not done:
        print(f"{title}: none of the methods asked for", file=sys.stderr, flush=True)
        return None
    return write(name, plan, protocol, keys, done, settings, folder)


def entries_for(plan: Plan, net: suffice.Classifier, settings: Settings) -> list[Entry]:
    """The methods of a plan that fit a model, with changed options where the settings say so."""
    fitting = [entry for entry in plan.entries(net) if entry.found.incompatibility(net) is None]
    chosen = [entry for entry in fitting if not settings.methods or entry.found.name in settings.methods]
    changed_entries = []
    for entry in chosen:
        name, label = entry.found.name, entry.name
        options = dict(entry.options)
        if settings.quick and name in QUICK:
            options, label = {**options, **QUICK[name]}, f"{label} (quick)"
        if own := (settings.options or {}).get(name, {}):
            options, label = {**options, **own}, " ".join([label, *(f"{k}={v}" for k, v in own.items())])
        changed_entries.append(Entry(entry.method, options, label))
    return changed_entries


def with_steps(protocol: str | Protocol, steps: int | None) -> Protocol:
    """A protocol with another number of steps for the curves that go in steps."""
    found = find_protocol(protocol) if isinstance(protocol, str) else protocol
    curves = set(CurveChoices.__dataclass_fields__)
    stepped = [metric for metric, options in found.choices.items() if curves <= set(options) and options["steps"]]
    if steps is None or not stepped:
        return found
    base = found if found.chosen is not None else replace(found, chosen={metric: {} for metric in found.metrics})
    return changed(base, f"{found.name}, {steps} steps", {metric: {"steps": steps} for metric in stepped})


def conditions(
    plan: Plan, protocol: Protocol, net: suffice.Classifier, entry: Entry, images: suffice.Images, settings: Settings
) -> dict[str, Any]:
    """All that the numbers of a row depend on, as JSON."""
    found = {
        "model": net.name,
        "label": entry.name,
        "method": entry.found.name,
        "options": {**entry.found.options, **entry.options},
        "metrics": plan.metrics,
        "protocol": protocol.name,
        "choices": {m: protocol.options(m) for m in dict.fromkeys(c.partition("/")[0] for c in plan.metrics)},
        "target_class": plan.target_class or protocol.target_class,
        "images": len(images),
        "first": images[0].id,
        "last": images[-1].id,
        "precision": settings.precision,
        "seed": settings.seed,
    }
    return json.loads(json.dumps(found, default=str))


def made_by(settings: Settings) -> dict[str, Any]:
    """What only the seconds depend on."""
    cuda = settings.device.startswith("cuda")
    return {
        "device": torch.cuda.get_device_name(settings.device) if cuda else platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
        "batch": settings.batch,
        "compile": settings.compile,
        "torch": torch.__version__,
        "suffice": suffice.__version__,
    }


def write(
    name: str,
    plan: Plan,
    protocol: Protocol,
    keys: Mapping[tuple[str, str], Mapping[str, Any]],
    done: Mapping[tuple[str, str], TableRow],
    settings: Settings,
    folder: Path,
) -> ScoreTable:
    """The table as it is so far, and what it depends on."""
    table = ScoreTable(tuple(done[pair] for pair in keys), plan.metrics, protocol.name, settings.images)
    table = table if plan.order is None else table.ordered(plan.order)
    table.write(folder)
    made = made_by(settings)
    page = (
        f"{table.to_markdown(notes=False)}\n"
        f"    python benchmarks/tables.py {name} {settings.command}\n\n"
        f"{made['device']}, {made['threads']} threads, {settings.precision}.\n"
    )
    folder.with_suffix(".md").write_text(page, encoding="utf-8")
    facts = {
        "images": table.images,
        "protocol": table.protocol,
        "made": made,
        "rows": [{**key, "seconds_per_image": done[pair].seconds, **done[pair].facts} for pair, key in keys.items()],
    }
    (folder / "facts.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
    return table


def typed(given: argparse.Namespace, parser: argparse.ArgumentParser) -> str:
    """The options that are not as they are by default, as one would type them."""
    words: list[str] = []
    for name, value in vars(given).items():
        if name in ("tables", "out", "device") or value == parser.get_default(name):
            continue
        for one in value if isinstance(value, list) else [value]:
            words += [f"--{name}"] if one is True else [f"--{name}", str(one)]
    return shlex.join(words)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="+", choices=list(TABLES), metavar="NAME", help=", ".join(TABLES))
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--out", type=Path, required=True, help="folder for the tables")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, help="inputs per forward")
    parser.add_argument("--precision", default="fp32", choices=["fp32", "tf32", "bf16", "fp16"])
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="few masks and steps, to try everything")
    parser.add_argument("--steps", type=int, help="of insertion and deletion, instead of the protocol's")
    parser.add_argument("--model", default="", help="instead of the table's own, separated by commas")
    parser.add_argument("--method", default="", help="only these, separated by commas")
    parser.add_argument("--option", action="append", default=[], help="METHOD.NAME=VALUE, instead of the table's own")
    given = parser.parse_args(arguments)
    settings = Settings(
        images=given.images,
        device=given.device,
        batch=given.batch,
        precision=given.precision,
        compile=given.compile,
        seed=given.seed,
        quick=given.quick,
        steps=given.steps,
        models=tuple(filter(None, given.model.split(","))),
        methods=tuple(filter(None, given.method.split(","))),
        options=method_options(given.option, suffice.list_methods()),
        command=typed(given, parser),
    )
    maps = Maps()
    for name in given.tables:
        for plan in TABLES[name]:
            table = make_table(name, plan, settings, given.out, maps)
            if table is not None:
                print(table.to_markdown())


if __name__ == "__main__":
    main()
