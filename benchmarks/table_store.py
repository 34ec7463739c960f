"""What tables are made of, kept: rows on disk, and maps in memory."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from suffice.attribution import Method
from suffice.metrics import Entry
from suffice.metrics.score_table import TableRow
from suffice.perturb import Batch


class Rows:
    """The rows of a table on disk, one line each, so that no interruption loses one.

    Args:
        folder: Of the table. Rows of tables beside it are known too, since tables have rows in common.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / "rows.jsonl"
        files = sorted(folder.parent.glob("*/rows.jsonl"))
        lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
        self.stored = [found for found in map(_parsed, lines) if found is not None]

    def find(self, key: Mapping[str, Any]) -> TableRow | None:
        """The row that was made under just these conditions."""
        for found in reversed(self.stored):
            if found["key"] == key:
                values = {name: torch.tensor(_numbers(column)) for name, column in found["values"].items()}
                return TableRow(key["model"], key["label"], values, found["seconds"], found["facts"])
        return None

    def add(self, key: Mapping[str, Any], row: TableRow, made: Mapping[str, Any]) -> None:
        """Write a row."""
        values = {name: [None if math.isnan(v) else v for v in column.tolist()] for name, column in row.values.items()}
        found = {"key": key, "seconds": row.seconds, "facts": dict(row.facts), "made": made, "values": values}
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.stored.append(json.loads(json.dumps(found)))


class Maps:
    """Maps that were made before, so that tables of one run make each only once; they are small and stay in memory."""

    def __init__(self) -> None:
        self.made: dict[tuple[Any, ...], tuple[torch.Tensor, float]] = {}
        self.seconds = 0.0  # of the maps that were used since this was last set to 0, whenever they were made

    def remembered(self, entry: Entry) -> Entry:
        """The same entry, whose method looks here first; its options are part of the method."""
        method, options = entry.found, entry.options

        def function(batch: Batch) -> torch.Tensor:
            how = (batch.net.name, method.name, json.dumps(options, default=str, sort_keys=True), batch.seed)
            keys = [(*how, *which) for which in zip(batch.ids, batch.targets.tolist(), strict=True)]
            missing = [i for i, key in enumerate(keys) if key not in self.made]
            if missing:
                rows = torch.tensor(missing, device=batch.pixels.device)
                part = replace(
                    batch, pixels=batch.pixels[rows], targets=batch.targets[rows], ids=[batch.ids[i] for i in missing]
                )
                begun = time.perf_counter()
                maps = method.function(part, **options).float().cpu()
                seconds = (time.perf_counter() - begun) / len(missing)
                self.made.update({keys[i]: (one, seconds) for i, one in zip(missing, maps, strict=True)})
            found = [self.made[key] for key in keys]
            self.seconds += sum(seconds for _, seconds in found)
            return torch.stack([one for one, _ in found]).to(batch.pixels.device)

        bound = Method(method.name, function, needs=method.needs, incompatible=method.incompatible, cost=method.cost)
        return Entry(bound, label=entry.name)


def _parsed(line: str) -> dict[str, Any] | None:
    """A line of the file; None for one that an interruption cut off."""
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None


def _numbers(column: Sequence[float | None]) -> list[float]:
    return [math.nan if value is None else value for value in column]
