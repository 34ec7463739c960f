"""Folders that are not of this machine's file system: any place that fsspec knows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import fsspec
from fsspec.implementations.cached import CachingFileSystem

from suffice.errors import StoreError

# Object stores: a file is seen when all of it is there, and there are no folders to be made.
WHOLE = {"memory", "s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oss", "oci"}
UNFINISHED = ".unfinished"


def open_place(place: str) -> tuple[Any, str]:
    """The file system of an address, and the folder in it."""
    try:
        fs, root = fsspec.core.url_to_fs(place)
    except (ValueError, TypeError, ImportError, OSError) as error:  # unknown, incomplete, not installed, no answer
        said = str(error).splitlines() or [type(error).__name__]
        raise StoreError(f"{place} cannot be opened: {said[0]}") from error
    if any(isinstance(one, CachingFileSystem) for one in layers(fs)):
        raise StoreError(f"{place} cannot keep a study: it reads copies of files, which others may have written since.")
    return fs, str(root).rstrip("/")


def layers(fs: Any) -> Iterator[Any]:
    """A file system and, where it is another's view such as ``dir::…``, those below it."""
    while fs is not None:
        yield fs
        fs = getattr(fs, "fs", None)


def protocols(fs: Any) -> tuple[str, ...]:
    """The names that a file system has in addresses."""
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)


def write_elsewhere(fs: Any, path: str, content: bytes) -> None:
    """Write a file such that nobody sees half of it."""
    if WHOLE & set(protocols(fs)):
        fs.pipe_file(path, content)
        return
    unfinished = f"{path}.{uuid4().hex}{UNFINISHED}"
    try:
        fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        fs.pipe_file(unfinished, content)
        try:
            fs.mv(unfinished, path)
        except FileExistsError:  # where a new name may not be one that is taken
            fs.rm_file(path)
            fs.mv(unfinished, path)
    except BaseException:
        with contextlib.suppress(OSError):
            fs.rm_file(unfinished)
        raise
