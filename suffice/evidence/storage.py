"""Evidence in Parquet files: the table that everybody can read, and beside it all that brings evidence back."""

from __future__ import annotations

import json
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from suffice.draw import from_png, to_png
from suffice.errors import OptionError
from suffice.evidence.result import MSE, Evidence, EvidenceSet
from suffice.evidence.settings import Settings
from suffice.evidence.statistics import evidence_table, table_schema
from suffice.perturb import Counters, Grid
from suffice.vision.stream import Skip

if TYPE_CHECKING:
    import pyarrow

FORMAT = "suffice.evidence/1"
KEY = b"suffice"


def save_evidence(evidence: EvidenceSet, path: str | Path) -> Path:
    """Write evidence to a Parquet file, and return its path.

    To the columns of :func:`suffice.evidence.statistics.evidence_table` come ``image_id``; ``mse_cells``,
    ``mse_ratios``, ``mse_certified`` (of each MSE); ``region_words`` (int64, the words of all regions in a row),
    ``region_ratios``; and ``picture`` (PNG). The schema's metadata has, under ``suffice``, JSON with the model, the
    settings, images that were skipped, and counters.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = evidence_table(evidence)
    columns: dict[str, tuple[Any, list[Any]]] = {
        "image_id": (pa.string(), [e.image_id for e in evidence]),
        "mse_cells": (pa.list_(pa.list_(pa.int32())), [[m.cells for m in e.mses] for e in evidence]),
        "mse_ratios": (pa.list_(pa.float64()), [[m.ratio for m in e.mses] for e in evidence]),
        "mse_certified": (pa.list_(pa.bool_()), [[m.certified for m in e.mses] for e in evidence]),
        "region_words": (pa.list_(pa.int64()), [e.regions.flatten().numpy() for e in evidence]),
        "region_ratios": (pa.list_(pa.float32()), [e.ratios.float().numpy() for e in evidence]),
        "picture": (pa.binary(), [None if e.picture is None else to_png(e.picture) for e in evidence]),
    }
    for name, (kind, values) in columns.items():
        table = table.append_column(name, pa.array(values, kind))
    about = {
        "format": FORMAT,
        "model": evidence.model,
        "family": evidence.family,
        "settings": evidence[0].settings.to_dict() if len(evidence) else None,
        "skipped": [asdict(skip) for skip in evidence.skipped],
        "counters": asdict(evidence.counters),
    }
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table.replace_schema_metadata({KEY: json.dumps(about)}), file, compression="zstd")
    return file


def load_evidence(path: str | Path) -> EvidenceSet:
    """Read the file that :func:`save_evidence` wrote; another file is an error."""
    import pyarrow.parquet as pq

    if not Path(path).exists():
        raise OptionError(f"There is no evidence at {path}.")
    table = pq.read_table(path)
    about = json.loads((table.schema.metadata or {}).get(KEY, b"{}"))
    if about.get("format") != FORMAT:
        raise OptionError(
            f"{path} has the format {about.get('format')!r}; expected {FORMAT!r}, as EvidenceSet.save() writes."
        )
    settings = Settings(**about["settings"]) if about["settings"] else Settings()
    evidence = [_evidence(row, settings) for batch in table.to_batches(256) for row in batch.to_pylist()]
    skipped = [Skip(**skip) for skip in about["skipped"]]
    return EvidenceSet(evidence, about["model"], about["family"], skipped, Counters(**about["counters"]))


def _evidence(row: dict[str, Any], settings: Settings) -> Evidence:
    grid = Grid(settings.grid)
    words = torch.tensor(row["region_words"], dtype=torch.long)
    mses = zip(row["mse_cells"], row["mse_ratios"], row["mse_certified"], strict=True)
    stored = {
        "name": row["image"],
        "mses": tuple(MSE(tuple(cells), ratio, certified) for cells, ratio, certified in mses),
        "regions": words if grid.words == 1 else words.view(-1, grid.words),
        "ratios": torch.tensor(row["region_ratios"], dtype=torch.float32),
        "grid": grid,
        "settings": settings,
        "picture": None if row["picture"] is None else from_png(row["picture"]),
    }
    return Evidence(**{field.name: row[field.name] for field in fields(Evidence) if field.name in row} | stored)


class TableWriter:
    """Makes rows of evidence block by block, in a thread beside the search, and writes them to a Parquet file.

    A context manager: it closes the file also on an error or on Ctrl-C, with all rows so far.

    Args:
        model: Name of the model.
        family: Its family.
        path: The Parquet file; None to keep no file, just the rows.
        block: Images per block.

    Attributes:
        rows: Images taken in so far.
    """

    def __init__(self, model: str, family: str, path: str | Path | None = None, block: int = 64) -> None:
        self._names, self._path, self._block = (model, family), path, block
        self._waiting: list[Evidence] = []
        self._tables: list[Future[pyarrow.Table]] = []
        self._thread = ThreadPoolExecutor(1)
        self._file: Any = None
        self.rows = 0

    def __enter__(self) -> TableWriter:
        if self._path is not None:
            import pyarrow.parquet as pq

            self._file = pq.ParquetWriter(self._path, table_schema())
        return self

    def add(self, evidence: Evidence) -> None:
        """Take in the evidence of one image."""
        self.rows += 1
        self._waiting.append(evidence)
        if len(self._waiting) == self._block:
            self._hand_over()

    def to_arrow(self) -> pyarrow.Table:
        """All rows, once the work is over."""
        import pyarrow as pa

        return pa.concat_tables([t.result() for t in self._tables] or [table_schema().empty_table()])

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._waiting:
            self._hand_over()
        self._thread.shutdown(wait=True)
        if self._file is not None:
            self._file.close()
        if error is None:
            for table in self._tables:
                table.result()  # an error in the thread is an error of the work

    def _hand_over(self) -> None:
        self._tables.append(self._thread.submit(self._make, self._waiting))
        self._waiting = []

    def _make(self, block: list[Evidence]) -> pyarrow.Table:
        table = evidence_table(block, *self._names)
        if self._file is not None:
            self._file.write_table(table)
        return table
