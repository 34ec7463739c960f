"""Drawings as files: SVG as it is, PNG and PDF by a converter that is asked for only then."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from suffice.draw.svg import escaped
from suffice.errors import MissingExtra, OptionError

Format = Literal["svg", "png", "pdf"]
PICTURES = (".svg", ".png", ".pdf")
SHARPNESS = 2.0  # pixels for each unit of a drawing


def is_picture(path: str | Path) -> bool:
    """Whether a file, by its ending, is a picture that :func:`save_picture` can write."""
    return Path(path).suffix.lower() in PICTURES


def save_picture(markup: str, path: str | Path, about: str = "") -> Path:
    """Write a drawing to a file, as SVG, PNG or PDF by its ending; returns its path.

    Args:
        markup: A whole SVG document.
        path: Of the file; its folder is made where it is missing.
        about: What the picture comes from, for the metadata of an SVG; the others do without.

    Raises:
        OptionError: The ending is another one.
        MissingExtra: PNG and PDF need vl-convert-python.
    """
    file = Path(path)
    if not is_picture(file):
        raise OptionError(f"A picture is saved as {', '.join(PICTURES)}; got {file.name!r}.")
    kind = file.suffix.lower()
    data = _with_metadata(markup, about).encode() if kind == ".svg" else _converted(markup, kind)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def check_format(format: Format) -> None:
    """Raise an error, before any work, where pictures cannot be written in a format."""
    if f".{format}" not in PICTURES:
        raise OptionError(f"format={format!r}; it can be {', '.join(repr(kind[1:]) for kind in PICTURES)}.")
    if format != "svg":
        _converter()


def _with_metadata(markup: str, about: str) -> str:
    """An SVG document that says what it comes from, where no viewer shows it."""
    start = markup.index("<svg")
    inside = markup.index(">", start) + 1
    return f"{markup[:inside]}<metadata>{escaped(about)}</metadata>{markup[inside:]}" if about else markup


def _converted(markup: str, kind: str) -> bytes:
    convert = _converter()
    return convert.svg_to_pdf(markup) if kind == ".pdf" else convert.svg_to_png(markup, scale=SHARPNESS)


def _converter() -> Any:
    """The package that converts; an error that says how to get it where it is missing."""
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtra(
            "PNG and PDF need vl-convert-python: pip install 'suffice[report]'. SVG needs nothing."
        ) from error
    return vl_convert
