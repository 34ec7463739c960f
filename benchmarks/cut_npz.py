"""Cut a file, such as an npz of photographs, into parts below a size, and join them again, bit for bit.

    python benchmarks/cut_npz.py cut train.npz --size 24 --out parts      # parts/train.npz.part-1-of-2, …
    python benchmarks/cut_npz.py join parts/train.npz.part-* --out train.npz

For machines that take or give back only so much at a time. Each part says which part of which file it is, and has a
hash of what is in it: parts that are missing, damaged or of another file are refused by name, and the file appears as a
whole or not at all. However large it is, a few megabytes of memory are enough.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from suffice.errors import OptionError, SufficeError

BLOCK = 2**20  # bytes read at a time
HEAD = 1024  # bytes kept free for the line that a part begins with
MARK = "suffice-part"
MIB = 2**20


@dataclass(frozen=True)
class Part:
    """What a part says of itself, on its first line.

    Attributes:
        file: Name of the file that it is a part of.
        number: Which, from 1.
        of: How many there are.
        bytes: How many of the file's are in it.
        sha256: Of these.
        whole: The sha256 of the file.
    """

    file: str
    number: int
    of: int
    bytes: int
    sha256: str
    whole: str

    @property
    def name(self) -> str:
        """Its own file's name."""
        return f"{self.file}.part-{self.number}-of-{self.of}"


def cut(file: Path, out: Path, size: int) -> list[Path]:
    """Write the parts of a file.

    Args:
        file: Any file.
        out: Folder for the parts.
        size: The most bytes a part's file may have.

    Returns:
        The parts' files, in order.
    """
    if size <= HEAD:
        raise OptionError(f"A part of {size:,} bytes is too small; expected more than {HEAD:,}.")
    room = size - HEAD
    starts = range(0, max(file.stat().st_size, 1), room)
    whole, hashes = hashlib.sha256(), []
    with file.open("rb") as source:
        for _ in starts:
            own = hashlib.sha256()
            for block in _blocks(source, room):
                own.update(block)
                whole.update(block)
            hashes.append(own.hexdigest())
        out.mkdir(parents=True, exist_ok=True)
        paths = []
        for number, (start, sha256) in enumerate(zip(starts, hashes, strict=True), 1):
            count = min(room, file.stat().st_size - start)
            part = Part(file.name, number, len(starts), count, sha256, whole.hexdigest())
            source.seek(start)
            paths.append(out / part.name)
            with paths[-1].open("wb") as target:
                target.write(json.dumps({MARK: 1, **asdict(part)}).encode() + b"\n")
                for block in _blocks(source, room):
                    target.write(block)
    return paths


def join(parts: Sequence[Path], out: Path) -> Path:
    """Put a file together from its parts, given in any order.

    Args:
        parts: All of its parts' files.
        out: The file to write, or a folder in which it gets its own name.

    Returns:
        The file.

    Raises:
        OptionError: Parts are missing, damaged or of several files, with their names; nothing is written then.
    """
    found = {path: _read(path) for path in parts}
    if not found:
        raise OptionError("There are no parts to join.")
    first = next(iter(found.values()))
    wrong = [
        f"{p} is a part of another file"
        for p, part in found.items()
        if (part.whole, part.of) != (first.whole, first.of)
    ]
    by_number = {part.number: path for path, part in found.items()}
    names = [Part(first.file, number, first.of, 0, "", "").name for number in range(1, first.of + 1)]
    wrong += [f"{name} is missing" for number, name in enumerate(names, 1) if number not in by_number]
    wrong += [f"{path} is damaged" for path, part in found.items() if not _is_whole(path, part)]
    if wrong:
        raise OptionError(f"{first.file} cannot be joined: {'; '.join(wrong)}.")
    target = out / first.file if out.is_dir() else out
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f"{target.name}.{os.getpid()}.unfinished")
    whole = hashlib.sha256()
    try:
        with unfinished.open("wb") as joined:
            for number in range(1, first.of + 1):
                with by_number[number].open("rb") as source:
                    source.readline()
                    for block in _blocks(source):
                        whole.update(block)
                        joined.write(block)
        if whole.hexdigest() != first.whole:
            raise OptionError(f"{first.file} is not what it was when it was cut.")
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)
    return target


def _blocks(source: IO[bytes], count: int | None = None) -> Iterator[bytes]:
    """The next bytes, so many or all, some at a time."""
    while block := source.read(BLOCK if count is None else min(BLOCK, count)):
        count = None if count is None else count - len(block)
        yield block


def _read(path: Path) -> Part:
    """What a part says of itself."""
    try:
        with path.open("rb") as source:
            said = json.loads(source.readline(HEAD))
        del said[MARK]
        return Part(**said)
    except OSError as error:
        raise OptionError(f"Cannot read {path}: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError):
        raise OptionError(f"{path} is damaged, or not a part that this script wrote.") from None


def _is_whole(path: Path, part: Part) -> bool:
    """Whether a part has what it says."""
    own, count = hashlib.sha256(), 0
    with path.open("rb") as source:
        source.readline()
        for block in _blocks(source):
            own.update(block)
            count += len(block)
    return (count, own.hexdigest()) == (part.bytes, part.sha256)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    cutting = commands.add_parser("cut")
    cutting.add_argument("files", nargs="+", type=Path)
    cutting.add_argument("--size", type=float, default=24.0, help="the most MiB of a part")
    cutting.add_argument("--out", type=Path, required=True, help="folder for the parts")
    joining = commands.add_parser("join")
    joining.add_argument("files", nargs="+", type=Path, help="all parts of one file")
    joining.add_argument("--out", type=Path, required=True, help="file, or folder in which it gets its own name")
    options = parser.parse_args(arguments)
    try:
        if options.command == "join":
            made = [join(options.files, options.out)]
        else:
            made = [part for file in options.files for part in cut(file, options.out, int(options.size * MIB))]
    except SufficeError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    for path in made:
        print(f"{path}  {path.stat().st_size / MIB:.1f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
