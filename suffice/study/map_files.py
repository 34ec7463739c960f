"""Maps as the bytes of a safetensors file, as :meth:`suffice.attribution.Attribution.save` writes it."""

from __future__ import annotations

from dataclasses import replace

from suffice.attribution import Attribution


def to_bytes(maps: Attribution, *, half: bool = False) -> bytes:
    """The file of some maps; with ``half``, their values in fp16."""
    return (replace(maps, maps=maps.maps.half()) if half else maps).to_bytes()


def from_bytes(content: bytes) -> Attribution:
    """The maps of a file, in fp32."""
    found = Attribution.from_bytes(content)
    return replace(found, maps=found.maps.float())
