"""The two ways in which ``suffice evidence`` searches: image by image, or as a study in a folder."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from suffice.cli import output

if TYPE_CHECKING:
    import pyarrow

    from suffice.evidence import Evidence, EvidenceStream
    from suffice.study.taking_up import Taken
    from suffice.vision.stream import Skip


class Search(Protocol):
    """What the command needs of a search."""

    @property
    def about(self) -> Mapping[str, Any]:
        """All that has to be known to find the same again."""
        ...

    @property
    def skipped(self) -> Sequence[Skip]:
        """Images that could not be read."""
        ...

    @property
    def table(self) -> pyarrow.Table:
        """One row an image, without regions, of all that were found."""
        ...

    def each(self) -> Generator[Evidence, None, None]:
        """The evidence, one image after the other."""
        ...


@dataclass
class PassingSearch:
    """A search of which nothing is kept but rows; memory does not grow by more."""

    stream: EvidenceStream
    about: Mapping[str, Any]
    _tables: list[pyarrow.Table] = field(default_factory=list)

    def each(self) -> Generator[Evidence, None, None]:
        """The evidence of each image as soon as it is finished."""
        from suffice.evidence.files.storage import BLOCK

        block: list[Evidence] = []
        try:
            with output.asking("Searching"):
                for found in self.stream:
                    block.append(found)
                    yield found
                    if len(block) == BLOCK:
                        self._tables.append(self._table(block))
                        block = []
        finally:
            self._tables.append(self._table(block))

    @property
    def skipped(self) -> Sequence[Skip]:
        """Images that could not be read."""
        return self.stream.skipped

    @property
    def table(self) -> pyarrow.Table:
        """One row an image."""
        import pyarrow as pa

        return pa.concat_tables(self._tables)

    def _table(self, block: Sequence[Evidence]) -> pyarrow.Table:
        from suffice.evidence.files.table import evidence_table

        return evidence_table(block, self.stream.net.name, self.stream.net.family)


@dataclass(frozen=True)
class KeptSearch:
    """A search that was made as a study, by the model of this name."""

    taken: Taken
    model: str

    def each(self) -> Generator[Evidence, None, None]:
        """The evidence in order of the images."""
        from suffice.study.reading import evidence_parts

        for part in evidence_parts(*self._where):
            yield from part

    @property
    def about(self) -> Mapping[str, Any]:
        """All that has to be known to find the same again."""
        from suffice.study.reading import read_about

        return read_about(*self._where)

    @property
    def skipped(self) -> Sequence[Skip]:
        """Images that could not be read."""
        from suffice.study.reading import read_skipped

        return read_skipped(*self._where)

    @property
    def table(self) -> pyarrow.Table:
        """One row an image."""
        from suffice.study.reading import evidence_rows

        return evidence_rows(*self._where)

    @property
    def _where(self) -> tuple[Any, ...]:
        return self.taken.plan, self.taken.store, "evidence", self.model
