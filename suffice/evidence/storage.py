"""Evidence in one Parquet file: the table that everybody can read, and beside it all that brings evidence back."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from suffice.draw import from_png, to_png
from suffice.errors import OptionError
from suffice.evidence.finding import MSE
from suffice.evidence.result import Evidence, EvidenceSet
from suffice.evidence.settings import Settings
from suffice.evidence.statistics import FACTS, evidence_table
from suffice.perturb import Counters, Grid
from suffice.vision.stream import Skip

FORMAT = "suffice.evidence/1"
KEY = b"suffice"


def save_evidence(evidence: EvidenceSet, path: str | Path) -> Path:
    """Write evidence to a Parquet file.

    To the columns of :func:`suffice.evidence.statistics.evidence_table` come ``image_id``; ``mse_cells``,
    ``mse_ratios``, ``mse_certified`` (of each MSE); ``region_words`` (int64, the words of all regions in a row),
    ``region_ratios``; and ``picture`` (PNG). The schema's metadata has, under ``suffice``, JSON with the model, the
    settings, images that were skipped, and counters.

    Args:
        evidence: What was found.
        path: Of the file.

    Returns:
        The same path.
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
    """Read the file that :func:`save_evidence` wrote.

    Raises:
        OptionError: The file is something else.
    """
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
    return Evidence(
        **{name: row[name] for name in FACTS},
        name=row["image"],
        image_id=row["image_id"],
        mses=tuple(MSE(tuple(cells), ratio, certified) for cells, ratio, certified in mses),
        regions=words if grid.words == 1 else words.view(-1, grid.words),
        ratios=torch.tensor(row["region_ratios"], dtype=torch.float32),
        grid=grid,
        settings=settings,
        picture=None if row["picture"] is None else from_png(row["picture"]),
    )
