"""The folder of a study: files that appear whole or not at all, and locks that a dead process gives up.

It is any place that fsspec knows: a folder, ``s3://…``, ``memory://…``. Locks are those of the operating system, and
so are for folders that processes of one machine share; elsewhere one engine has to give out the work.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from filelock import FileLock, Timeout

from suffice.errors import StoreError, SufficeWarning
from suffice.study.elsewhere import UNFINISHED, layers, open_place, protocols, write_elsewhere

LOG = "log.jsonl"


class Store:
    """The files of a study.

    Args:
        place: A folder, or an address that fsspec knows.

    Example:
        >>> store = Store("memory://study-of-an-example")
        >>> store.write("a/b.txt", b"whole")
        >>> store.read("a/b.txt"), store.files("a"), store.exists("a/c.txt")
        (b'whole', ['a/b.txt'], False)
    """

    def __init__(self, place: str | Path) -> None:
        self.place = str(place)
        self._fs, self.root = open_place(self.place)
        self.local = Path(self.root) if "file" in protocols(self._fs) else None
        self._log: list[str] = []
        self._log_name = f"log-{socket.gethostname()}-{os.getpid()}.jsonl"

    def __reduce__(self) -> tuple[type[Store], tuple[str]]:
        return Store, (self.place,)

    def __str__(self) -> str:
        return self.place

    @property
    def fs(self) -> Any:
        """The file system, which remembers nothing of what it saw before: other processes write, too."""
        if self.local is None:
            self._fs.invalidate_cache()
        return self._fs

    @property
    def of_this_process(self) -> bool:
        """Whether it is in the memory of this process, which others do not see."""
        return any("memory" in protocols(fs) for fs in layers(self._fs))

    def path(self, name: str) -> str:
        """Where a file lies, for the file system."""
        return f"{self.root}/{name}"

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        return bool(self.fs.exists(self.path(name)))

    def read(self, name: str) -> bytes:
        """The content of a file."""
        return bytes(self.fs.cat_file(self.path(name)))

    def write(self, name: str, content: bytes) -> None:
        """Write a file: afterwards the whole of it is on the disk, whatever happens; before, nothing is seen of it."""
        with self._saying_what_cannot_be_written(name):
            if self.local is None:
                write_elsewhere(self.fs, self.path(name), content)
            else:
                _write_whole(self.local / name, content)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with contextlib.suppress(FileNotFoundError):  # perhaps since a moment ago: several processes may see to it
            self.fs.rm_file(self.path(name))

    def files(self, folder: str = "") -> list[str]:
        """Names of all finished files in a folder and below, sorted."""
        where = self.path(folder) if folder else self.root
        if not self.fs.exists(where):
            return []
        found = self.fs.find(where)
        return sorted(f[len(self.root) + 1 :] for f in found if not f.endswith(UNFINISHED))

    def log(self, event: Mapping[str, Any]) -> None:
        """Add a line to the log; each is written at once, so that lines of several processes do not mix.

        Results do not depend on it: a log that cannot be written is a warning.
        """
        line = json.dumps(event, ensure_ascii=False, default=str) + "\n"
        try:
            if self.local is not None:
                _append(self.local / LOG, line.encode())
            else:
                self._log.append(line)
                self.write(self._log_name, "".join(self._log).encode())
        except OSError as error:
            warnings.warn(SufficeWarning(f"The log of {self} cannot be written: {error}"), stacklevel=2)

    def events(self) -> Iterator[dict[str, Any]]:
        """The lines of the log; half a line, of a process that was killed, is left out."""
        for name in self.files():
            if name == LOG or (name.startswith("log-") and "/" not in name):
                for line in self.read(name).decode(errors="replace").split("\n"):
                    try:
                        yield json.loads(line)
                    except ValueError:
                        continue

    @contextlib.contextmanager
    def lock(self, name: str, *, wait: bool = False) -> Iterator[bool]:
        """Hold a lock while inside; yields whether one has it. The operating system frees those of dead processes."""
        if self.local is None:
            yield True
            return
        file = self.local / "locks" / f"{name}.lock"
        held = FileLock(file, timeout=-1 if wait else 0)
        try:
            with self._saying_what_cannot_be_written(f"locks/{name}.lock"):
                _make_folder(file.parent)
                held.acquire()
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            held.release()

    def locked(self, name: str) -> bool:
        """Whether some process holds a lock, or may hold it where one may not try."""
        if self.local is None or not (self.local / "locks" / f"{name}.lock").exists():
            return False
        try:
            with self.lock(name) as free:
                return not free
        except StoreError:  # a folder that may only be read: nobody knows
            return True

    def sweep(self, name: str) -> None:
        """Remove what a process that was killed left of a file, or of all files that fit a pattern in their folder.

        Only for whoever holds their lock.
        """
        if self.local is not None:
            file = self.local / name
            for left in file.parent.glob(f"{file.name}.*{UNFINISHED}"):
                left.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _saying_what_cannot_be_written(self, name: str) -> Iterator[None]:
        try:
            yield
        except Timeout:  # which is an OSError, too: the lock is another's
            raise
        except OSError as error:
            raise StoreError(f"{name} cannot be written in {self}: {error.strerror or error}.") from error


def _write_whole(file: Path, content: bytes) -> None:
    _make_folder(file.parent)
    unfinished = file.with_name(f"{file.name}.{uuid4().hex}{UNFINISHED}")
    try:
        with open(unfinished, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(unfinished, file)
    finally:
        unfinished.unlink(missing_ok=True)
    _sync_folder(file.parent)


def _append(file: Path, line: bytes) -> None:
    """Add a line, at once; after half a one, of a process that was killed, a new one is begun."""
    with open(file, "a+b", buffering=0) as opened:
        if opened.seek(0, os.SEEK_END) and os.pread(opened.fileno(), 1, opened.tell() - 1) != b"\n":
            line = b"\n" + line
        opened.write(line)


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it that are not there, such that they are on the disk, too."""
    new = [part for part in (folder, *folder.parents) if not part.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for part in new:
        _sync_folder(part.parent)


def _sync_folder(folder: Path) -> None:
    """Make sure that the name of a new file is on the disk, too; where the system cannot, it is not needed."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(opened)
    except OSError:
        pass
    finally:
        os.close(opened)
