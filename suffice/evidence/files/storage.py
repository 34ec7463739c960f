"""Evidence in Parquet files: the table that everybody can read, with all that brings evidence back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.errors import OptionError
from suffice.evidence.files.table import evidence_of_table, evidence_table, table_schema
from suffice.evidence.settings import Settings
from suffice.perturb import Counters
from suffice.vision.stream import Skip

if TYPE_CHECKING:
    import pyarrow

    from suffice.evidence.result import Evidence, EvidenceSet

FORMAT = "suffice.evidence/3"
KEY = b"suffice"
BLOCK = 64  # rows that are in memory at once


def save_evidence(evidence: EvidenceSet, path: str | Path, *, regions: bool = True) -> Path:
    """Write evidence to a Parquet file, whole or not at all, and return its path.

    The columns are those of :func:`~suffice.evidence.files.table.evidence_table`, with pictures, and with regions
    unless told otherwise. The schema's metadata has, under ``suffice``, JSON with :attr:`EvidenceSet.about`, the images
    that were skipped, and counters.

    Args:
        evidence: What was found.
        path: The file; folders that are not there are made.
        regions: Also all regions evaluated below the MSEs, up to ``max_regions`` an image. Without them, evidence that
            is loaded keeps its counts, but its graphs show MSEs only.
    """
    about = {
        **evidence.about,
        "model": evidence.model,
        "family": evidence.family,
        "settings": evidence[0].settings.to_dict() if len(evidence) else evidence.about.get("settings"),
    }
    blocks = (
        evidence_table(evidence[start : start + BLOCK], pictures=True, regions=regions)
        for start in range(0, len(evidence), BLOCK)
    )
    return write_blocks(path, file_schema(regions, about, evidence.skipped, evidence.counters), blocks)


def load_evidence(path: str | Path) -> EvidenceSet:
    """Read a file that :func:`save_evidence` wrote."""
    from suffice.evidence.result import EvidenceSet

    about = read_about(Path(path))
    evidence = sorted(_stored(Path(path), read_settings(about)), key=lambda e: e.index)
    skipped = [Skip(**skip) for skip in about.pop("skipped")]
    counters = Counters(**about.pop("counters"))
    return EvidenceSet(evidence, about["model"], about["family"], skipped, counters, about)


def _stored(file: Path, settings: Settings) -> Iterator[Evidence]:
    """The evidence in a Parquet file, block by block."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(file) as opened:
        for group in range(opened.num_row_groups):
            yield from evidence_of_table(opened.read_row_group(group), settings)


def read_about(file: Path) -> dict[str, Any]:
    """What a Parquet file says about itself; one of another format is an error."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if file.is_dir():
        raise OptionError(f"{file} is a folder; suffice.Study.open({str(file)!r}).evidence() reads that of a study.")
    if not file.exists():
        raise OptionError(f"There is no evidence at {file}.")
    try:
        metadata = pq.read_schema(file).metadata or {}
    except pa.ArrowInvalid as error:
        raise OptionError(f"{file} is not a Parquet file: {error}") from error
    about: dict[str, Any] = json.loads(metadata.get(KEY, b"{}"))
    if file.parent.parent.name.startswith("measurement="):
        raise OptionError(
            f"{file} is a part of a study; suffice.Study.open({str(file.parents[3])!r}).evidence() reads all of it."
        )
    if (seen := about.pop("format", None)) != FORMAT:
        if seen is None:
            raise OptionError(f"{file} is a Parquet file, but not one that EvidenceSet.save() wrote.")
        raise OptionError(
            f"{file} has the format {seen!r}; expected {FORMAT!r}, as EvidenceSet.save() writes. "
            "Evidence of another version has to be searched again."
        )
    return about


def read_settings(about: Mapping[str, Any]) -> Settings:
    """The settings in what a file says about itself."""
    stored: dict[str, Any] = about["settings"] or {}
    return Settings(**stored | {"refine": tuple(stored.get("refine", ()))})


def file_schema(
    regions: bool, about: Mapping[str, Any], skipped: Iterable[Skip] = (), counters: Counters | None = None
) -> pyarrow.Schema:
    """The schema of a file: its columns, and in JSON what it says about itself."""
    own = {"skipped": [asdict(skip) for skip in skipped], "counters": asdict(counters or Counters())}
    text = json.dumps({"format": FORMAT, **about, **own}, ensure_ascii=False)
    return table_schema(pictures=True, regions=regions).with_metadata({KEY: text.encode()})


def write_blocks(path: str | Path, schema: pyarrow.Schema, blocks: Iterable[pyarrow.Table]) -> Path:
    """Write tables as the row groups of one Parquet file: the whole file appears at once, or nothing."""
    import pyarrow.parquet as pq

    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    try:
        with pq.ParquetWriter(unfinished, schema, compression="zstd") as writer:
            for table in blocks:
                writer.write_table(table)
        os.replace(unfinished, file)
    finally:
        unfinished.unlink(missing_ok=True)
    return file
