"""Files on disk: the images of a folder, or those that a manifest (CSV or JSONL) lists with labels, boxes, masks."""

from __future__ import annotations

import csv
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from suffice.errors import ImageError, ManifestError
from suffice.strangers import parse_json
from suffice.vision.images.picture import Box, Boxes, Images, Label, Picture, as_label
from suffice.vision.images.sources import FileMask, FileSource

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".dib", ".tif", ".tiff", ".gif")
MANIFEST_SUFFIXES = (".csv", ".jsonl")

# Names that a column may have, the first one present wins.
PATH_COLUMNS = ("path", "file", "filename", "image")
LABEL_COLUMNS = ("label", "class_index", "class", "wnid")
BOXES_COLUMNS = ("boxes", "boxes_xyxy")
MASK_COLUMNS = ("mask",)


def open_folder(folder: Path, max_pixels: int | None) -> list[Picture]:
    """Every image in a folder and below, sorted by the bytes of its relative path; hidden ones are left out.

    Pictures are named by that path, with forward slashes. Where every image lies in a sub-folder, the name of the
    first-level sub-folder is its label.
    """
    names = sorted(_walk(str(folder), "", frozenset()), key=os.fsencode)
    if not names:
        looked_for = f"files that are not hidden and end in {' '.join(IMAGE_SUFFIXES)}"
        raise ImageError(f"There is no image in the folder {folder} or below; looked for {looked_for}.")
    one_folder_per_class = all("/" in name for name in names)

    def picture(name: str) -> Picture:
        label = name.partition("/")[0] if one_folder_per_class else None
        return Picture(name, FileSource(os.path.join(folder, name), max_pixels), stored_label=label)

    return [picture(name) for name in names]


def _walk(folder: str, prefix: str, above: frozenset[tuple[int, int]]) -> Iterator[str]:
    """Relative paths of the images below a folder. Links to folders are followed, but never in a circle."""
    try:
        status = os.stat(folder)
        with os.scandir(folder) as entries:
            # The kind of an entry comes with the listing, so no file is touched.
            listed = [(entry.name, entry.is_dir()) for entry in entries if not entry.name.startswith(".")]
    except OSError as error:
        raise ImageError(f"Cannot list the folder {folder}: {error.strerror}.") from error
    identity = (status.st_dev, status.st_ino)
    if identity in above:
        return
    for name, is_folder in listed:
        if is_folder:
            yield from _walk(os.path.join(folder, name), f"{prefix}{name}/", above | {identity})
        elif name.lower().endswith(IMAGE_SUFFIXES):
            yield prefix + name


def open_manifest(manifest: Path, root: str | os.PathLike[str] | None, max_pixels: int | None) -> list[Picture]:
    """The pictures that a manifest lists, in its order, named by their path as written.

    It is a ``.csv`` file with a header, or a ``.jsonl`` file with one object a line; UTF-8. Columns: ``path`` (or
    ``file``, ``filename``, ``image``), and optionally ``label`` (or ``class_index``, ``class``, ``wnid``; an integer
    where it looks like one), ``boxes`` (or ``boxes_xyxy``; JSON, one ``[x0, y0, x1, y1]`` or a list of them), and
    ``mask`` (the path of an image of the same size, black where there is no object). Others are ignored. Paths are
    relative to ``root``, by default the folder of the manifest, and must stay in it.
    """
    folder = os.path.abspath(root if root is not None else manifest.parent)
    pictures = [_picture(row, where, folder, max_pixels) for where, row in _rows(manifest)]
    if not pictures:
        header = ", after a header such as path,label" if _is_csv(manifest) else ""
        raise ManifestError(f"{manifest} lists no image; expected one a line{header}.")
    return pictures


def with_boxes(images: Images, manifest: str | os.PathLike[str]) -> Images:
    """Images with the boxes that a manifest has for them, instead of boxes and masks of their own.

    They are found by name, or by the last part of it where that is unique. See :func:`open_manifest` for what it looks
    like; its paths need not lead anywhere.
    """
    file = Path(manifest)
    if file.suffix.lower() not in MANIFEST_SUFFIXES:
        raise ManifestError(f"Boxes are read from a .csv or .jsonl file, not from {file}.")
    known = {str(_first(row, PATH_COLUMNS)): _boxes(_first(row, BOXES_COLUMNS), where) for where, row in _rows(file)}
    short = Counter(os.path.basename(name) for name in known)
    by_file = {os.path.basename(n): boxes for n, boxes in known.items() if short[os.path.basename(n)] == 1}
    found = [known.get(p.name, by_file.get(os.path.basename(p.name))) for p in images]
    if not any(found):
        raise ManifestError(f"{file} has boxes of none of the images; the first of them is {images[0].name}.")
    return Images(
        replace(p, boxes=boxes, read_mask=None) if boxes else p for p, boxes in zip(images, found, strict=True)
    )


def _is_csv(manifest: Path) -> bool:
    return manifest.suffix.lower() == ".csv"


def _rows(manifest: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each row of a manifest with where it stands; whatever is wrong with the file is one kind of error."""
    try:
        yield from _csv_rows(manifest) if _is_csv(manifest) else _jsonl_rows(manifest)
    except UnicodeDecodeError as error:
        raise ManifestError(f"{manifest} is not UTF-8 text: {error.reason} at byte {error.start}.") from error
    except OSError as error:
        raise ManifestError(f"Cannot read the manifest {manifest}: {error.strerror}.") from error


def _csv_rows(manifest: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each row with where it stands, such as ``list.csv, line 3``."""
    with open(manifest, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        header: list[str] | None = None
        try:
            for fields in filter(None, reader):
                where = f"{manifest}, line {reader.line_num}"
                if header is None:
                    header = [column.strip() for column in fields]
                    _check_columns(header, where)
                elif len(fields) != len(header):
                    raise ManifestError(
                        f"{where}: {len(fields)} fields, but the header has {len(header)}. "
                        'Put quotes around fields that contain a comma: "[1, 2, 3, 4]".'
                    )
                else:
                    yield where, dict(zip(header, fields, strict=True))
        except csv.Error as error:
            raise ManifestError(f"{manifest}, line {reader.line_num}: not valid CSV: {error}.") from error


def _jsonl_rows(manifest: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    with open(manifest, encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            where = f"{manifest}, line {number}"
            row = _json(line, where)
            if not isinstance(row, dict):
                raise ManifestError(f'{where}: expected an object such as {{"path": "a.jpg"}}, not {line.strip()[:60]}')
            _check_columns(row, where)
            yield where, row


def _json(text: str, where: str) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise ManifestError(f"{where}: not valid JSON: {error}.") from error


def _check_columns(columns: list[str] | Mapping[str, Any], where: str) -> None:
    if not any(column in columns for column in PATH_COLUMNS):
        seen, expected = ", ".join(columns) or "none", ", ".join(PATH_COLUMNS)
        raise ManifestError(f"{where}: no column holds the path; the columns are {seen}, expected one of {expected}.")


def _first(row: Mapping[str, Any], columns: tuple[str, ...]) -> Any:
    return next((row[column] for column in columns if column in row), None)


def _picture(row: Mapping[str, Any], where: str, folder: str, max_pixels: int | None) -> Picture:
    name = _first(row, PATH_COLUMNS)
    return Picture(
        name,
        FileSource(_path(name, where, folder), max_pixels),
        boxes=_boxes(_first(row, BOXES_COLUMNS), where),
        stored_label=_label(_first(row, LABEL_COLUMNS), where),
        read_mask=_mask(_first(row, MASK_COLUMNS), where, folder, max_pixels),
    )


def _mask(path: Any, where: str, folder: str, max_pixels: int | None) -> FileMask | None:
    return None if path is None or path == "" else FileMask(_path(path, f"{where}, mask", folder), max_pixels)


def _path(name: Any, where: str, folder: str) -> str:
    """The full path, if it stays in the folder. Links inside the folder are the owner's business."""
    if not isinstance(name, str) or not name.strip():
        raise ManifestError(f"{where}: the path is {name!r}; expected the name of a file.")
    path = os.path.normpath(os.path.join(folder, name))
    if not path.startswith(os.path.join(folder, "")):
        raise ManifestError(f"{where}: {name!r} points outside {folder}. Give the folder of all images as root=.")
    return path


def _label(value: Any, where: str) -> Label | None:
    if isinstance(value, str):
        value = value.strip()
        if re.fullmatch(r"[+-]?[0-9]{1,18}", value):  # longer ones are serial numbers, not classes
            return int(value)
        return value or None
    try:
        return as_label(value, where)
    except ImageError as error:
        raise ManifestError(f"{where}: the label is {value!r}; expected an integer or a text.") from error


def _boxes(value: Any, where: str) -> Boxes | None:
    if isinstance(value, str):
        value = _json(value, f"{where}, boxes") if value.strip() else None
    if value is None:
        return None
    if isinstance(value, list) and value and not isinstance(value[0], list):
        value = [value]
    if not isinstance(value, list):
        raise ManifestError(f"{where}: the boxes are {value!r}; expected [x0, y0, x1, y1], or a list of these.")
    return tuple(_box(box, where) for box in value)


def _box(box: Any, where: str) -> Box:
    numbers = isinstance(box, list) and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in box)
    if not numbers or len(box) != 4 or not all(abs(v) < math.inf for v in box):
        raise ManifestError(f"{where}: the box {box!r} is not 4 numbers [x0, y0, x1, y1].")
    try:
        x0, y0, x1, y1 = (float(v) for v in box)
    except OverflowError as error:
        raise ManifestError(f"{where}: the box {box!r} has numbers too large for pixels.") from error
    if x1 < x0 or y1 < y0:
        raise ManifestError(f"{where}: the box {box!r} ends before it begins; expected [x0, y0, x1, y1].")
    return x0, y0, x1, y1
