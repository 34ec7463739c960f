"""A folder of images as a list of files, in an order that never changes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from suffice.errors import ImageError
from suffice.vision.images.picture import Picture
from suffice.vision.images.sources import FileSource

SUFFIXES = (".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".dib", ".tif", ".tiff", ".gif")


def has_image_suffix(name: str) -> bool:
    """Whether a file name ends as one of the supported formats does."""
    return name.lower().endswith(SUFFIXES)


def open_folder(folder: Path, max_pixels: int | None) -> list[Picture]:
    """Every image in a folder and below, sorted by the bytes of its relative path; hidden ones are left out.

    Where every image lies in a sub-folder, the name of the first-level sub-folder is its label.

    Args:
        folder: The folder.
        max_pixels: As for :func:`~suffice.vision.images.decode.decode`.

    Returns:
        Pictures named by their relative path, with forward slashes.

    Raises:
        ImageError: There is no image, or a sub-folder cannot be listed.
    """
    names = sorted(_walk(str(folder), "", frozenset()), key=os.fsencode)
    if not names:
        raise ImageError(
            f"There is no image in the folder {folder} or below; looked for files that are not hidden and "
            f"end in {' '.join(SUFFIXES)}."
        )
    one_folder_per_class = all("/" in name for name in names)
    return [
        Picture(
            name,
            FileSource(os.path.join(folder, name), max_pixels),
            stored_label=name.partition("/")[0] if one_folder_per_class else None,
        )
        for name in names
    ]


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
        elif has_image_suffix(name):
            yield prefix + name
