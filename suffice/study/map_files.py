"""Maps as the bytes of a safetensors file, as :meth:`suffice.attribution.Attribution.save` writes it."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from suffice.attribution import Attribution


def to_bytes(maps: Attribution, *, half: bool = False) -> bytes:
    """The file of some maps; with ``half``, their values in fp16."""
    kept = replace(maps, maps=maps.maps.half()) if half else maps
    with tempfile.TemporaryDirectory() as folder:
        return kept.save(Path(folder) / "maps").read_bytes()


def from_bytes(content: bytes) -> Attribution:
    """The maps of a file, in fp32."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "maps.safetensors"
        file.write_bytes(content)
        found = Attribution.load(file)
    return replace(found, maps=found.maps.float())
