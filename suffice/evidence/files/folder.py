"""The folder of a search: finished rows lie in parts, each written whole or not at all, and in one file at the end.

While a search goes on, there is ``evidence.parts/`` and no ``evidence.parquet``. So a file that is there is complete,
and parts beside it are left over from the moment before they would have been removed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.errors import ImageError, OptionError
from suffice.evidence.files.storage import (
    BLOCK,
    FILE,
    PARTS,
    file_schema,
    files_of,
    read_about,
    read_settings,
    write_blocks,
)
from suffice.evidence.files.table import WORDS, evidence_of_table, table_schema
from suffice.perturb import Counters
from suffice.vision import Images
from suffice.vision.images import Picture
from suffice.vision.provenance import differences
from suffice.vision.stream import Skip

if TYPE_CHECKING:
    import pyarrow

    from suffice.evidence.result import Evidence


@dataclass(frozen=True)
class _Row:
    """Where a finished image lies: which part, and which row of which row group of it."""

    file: Path
    group: int
    row: int


class EvidenceFolder:
    """A folder that a search writes to, and that a later one with the same settings takes up.

    Args:
        path: The folder; made where it is not there.
        about: The provenance of the search; see :func:`suffice.evidence.files.provenance.search_provenance`.
        images: The images of the search.
        targets: The class asked about in each of them; None where ``about`` says it.
        regions: Whether rows have the regions below the MSEs.
        overwrite: Remove earlier evidence from the folder first.

    Attributes:
        waiting: Positions of the images that are not there yet.

    Raises:
        OptionError: There is evidence of other images, or found in another way; nothing was changed then.
    """

    def __init__(
        self,
        path: str | Path,
        about: Mapping[str, Any],
        images: Images,
        targets: Sequence[int] | None = None,
        *,
        regions: bool = True,
        overwrite: bool = False,
    ) -> None:
        self.path, self.about, self.images, self.regions = Path(path), dict(about), images, regions
        self._targets = targets
        self._parts = self.path / PARTS
        self._counters = Counters()
        if overwrite:
            (self.path / FILE).unlink(missing_ok=True)
            shutil.rmtree(self._parts, ignore_errors=True)
        earlier = self._check()
        self._rows = self._found(earlier) if earlier else {}
        self.waiting = [position for position in range(len(images)) if position not in self._rows]
        self._take_up()

    @property
    def done(self) -> int:
        """Number of images that are there."""
        return len(self._rows)

    def add(self, table: pyarrow.Table) -> None:
        """Write the rows of some images as one more part."""
        self._last += 1
        schema = file_schema(self.regions, self.about)
        file = write_blocks(self._parts / f"{self._last:06d}.parquet", schema, [table])
        self._rows |= {index: _Row(file, 0, row) for row, index in enumerate(table["index"].to_pylist())}

    def evidence(self) -> Iterator[Evidence]:
        """The evidence that is there, in order of the images."""
        settings = read_settings(self.about)
        for block in self._blocks():
            yield from evidence_of_table(block, settings)

    def to_arrow(self) -> pyarrow.Table:
        """The rows that are there, without regions and pictures."""
        import pyarrow as pa

        return pa.concat_tables([table_schema().empty_table(), *self._blocks(table_schema().names)])

    def discard(self) -> None:
        """Leave no trace of a search that found nothing yet."""
        shutil.rmtree(self._parts)

    def merge(self, skipped: Iterable[Skip] = (), counters: Counters | None = None) -> Path:
        """Put all parts together, in order of the images, and remove them."""
        spent = vars(counters or Counters())
        total = Counters(**{name: before + spent[name] for name, before in vars(self._counters).items()})
        schema = file_schema(self.regions, self.about, skipped, total)
        file = write_blocks(self.path / FILE, schema, self._blocks())
        shutil.rmtree(self._parts)
        return file

    def _check(self) -> list[Path]:
        """The files of an earlier search, which must have been the same."""
        import pyarrow.parquet as pq

        files = files_of(self.path)
        for file in files:
            earlier = read_about(file)
            counters = Counters(**earlier.pop("counters"))
            self._counters = replace(counters, **{n: v + vars(counters)[n] for n, v in vars(self._counters).items()})
            del earlier["skipped"]
            other = differences(earlier, self.about)
            if (WORDS in pq.read_schema(file).names) != self.regions:
                other.append(f"regions are {'stored' if self.regions else 'left out'}, were not")
            if other:
                raise self._refused(f"was found in another way: {'; '.join(other)}")
        return files

    def _found(self, files: Iterable[Path]) -> dict[int, _Row]:
        """Which images of the search are in some files, by their content, and where."""
        import pyarrow.parquet as pq

        stored: dict[str | None, list[tuple[_Row, int]]] = {}
        for file in files:
            with pq.ParquetFile(file) as opened:
                for group in range(opened.num_row_groups):
                    some = opened.read_row_group(group, ["image_id", "target"]).to_pylist()
                    for row, of in enumerate(some):
                        stored.setdefault(of["image_id"], []).append((_Row(file, group, row), of["target"]))
        found = {}
        for position, picture in enumerate(self.images):
            image_id = _id(picture)
            if image_id is not None and stored.get(image_id):
                found[position], target = stored[image_id].pop(0)  # the same content may be there under two names
                if self._targets is not None and self._targets[position] != target:
                    raise self._refused(f"is about other classes: of {picture.name}, class {target}")
        left = sum(map(len, stored.values()))
        if left:
            raise self._refused(f"is of {left} other image{'' if left == 1 else 's'}, too")
        return found

    def _refused(self, why: str) -> OptionError:
        return OptionError(
            f"The evidence in {self.path} {why}. Write to another folder, or remove what is there: overwrite=True."
        )

    def _take_up(self) -> None:
        """From now on all rows lie in parts."""
        finished = self.path / FILE
        if finished.exists():
            shutil.rmtree(self._parts, ignore_errors=True)
        self._parts.mkdir(parents=True, exist_ok=True)
        if finished.exists():
            moved = self._parts / "000000.parquet"
            os.replace(finished, moved)
            self._rows = {position: replace(row, file=moved) for position, row in self._rows.items()}
        self._last = max((int(file.stem) for file in self._parts.glob("*.parquet")), default=0)

    def _blocks(self, columns: list[str] | None = None) -> Iterator[pyarrow.Table]:
        """The rows that are there in order of the images, some at a time, with name and position as they are now."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        # Rows come nearly in order, so the next ones mostly lie in a group that was just read.
        @lru_cache(maxsize=4)
        def read(file: Path, group: int) -> pyarrow.Table:
            with pq.ParquetFile(file) as opened:
                return opened.read_row_group(group, columns).replace_schema_metadata()

        order = sorted(self._rows)
        for start in range(0, len(order), BLOCK):
            some = order[start : start + BLOCK]
            rows = [self._rows[position] for position in some]
            block = pa.concat_tables([read(row.file, row.group).slice(row.row, 1) for row in rows])
            for name, values in (("index", some), ("image", [self.images[position].name for position in some])):
                place = block.schema.get_field_index(name)
                block = block.set_column(place, block.schema.field(place), pa.array(values))
            yield block


def _id(picture: Picture) -> str | None:
    """Identity of an image; None where it cannot be read, which the search will say."""
    try:
        return picture.id
    except ImageError:
        return None
