"""Rows of evidence, made while the search goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any

from suffice.evidence.files.folder import EvidenceFolder
from suffice.evidence.files.storage import BLOCK
from suffice.evidence.files.table import evidence_table, table_schema
from suffice.perturb import Counters
from suffice.vision.stream import Skip

if TYPE_CHECKING:
    import pyarrow

    from suffice.evidence.result import Evidence

SECONDS = 20.0  # no finished image waits longer than this to be written: what is not is lost with the process


class EvidenceWriter:
    """Makes rows of evidence block by block, in a thread beside the search, and writes them to a folder.

    A context manager: at the end, also by an error or Ctrl-C, all rows so far are in one file. Where the process is
    killed, the blocks that were complete are in the folder, and can be loaded or taken up.

    Args:
        about: The provenance of the search, at least ``model`` and ``family``.
        folder: Where rows are written; None to write nothing, and just have the table.
        block: Images per block.

    Attributes:
        rows: Images taken in so far.
        skipped: To be set by the user: images that could not be read.
        counters: Likewise: what the runner did.
    """

    def __init__(self, about: Mapping[str, Any], folder: EvidenceFolder | None = None, block: int = BLOCK) -> None:
        self._names, self._folder, self._block = (about["model"], about["family"]), folder, block
        self._waiting: list[Evidence] = []
        self._lock = Lock()  # the timer hands over from a thread of its own
        self._timer: Timer | None = None
        self._tables: list[Future[pyarrow.Table]] = []
        self._thread = ThreadPoolExecutor(1)
        self._earlier: list[pyarrow.Table] = []
        self.rows = 0
        self.skipped: Sequence[Skip] = ()
        self.counters = Counters()

    def __enter__(self) -> EvidenceWriter:
        if self._folder is not None and self._folder.done:
            self._earlier = [self._folder.to_arrow()]
        return self

    def add(self, evidence: Evidence) -> None:
        """Take in the evidence of one image."""
        self.rows += 1
        with self._lock:
            self._waiting.append(evidence)
            first = len(self._waiting) == 1
        if len(self._waiting) >= self._block:
            self._hand_over()
        elif first:
            self._timer = Timer(SECONDS, self._hand_over)
            self._timer.daemon = True
            self._timer.start()

    def to_arrow(self) -> pyarrow.Table:
        """All rows, those that were in the folder before included, once the work is over."""
        import pyarrow as pa

        made = [table.result() for table in self._tables]
        return pa.concat_tables([table_schema().empty_table(), *self._earlier, *made])

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._hand_over()
        self._thread.shutdown(wait=True)
        if self._folder is not None and (error is None or self._folder.done):
            self._folder.merge(self.skipped, self.counters)
        elif self._folder is not None:
            self._folder.discard()
        if error is None:
            for table in self._tables:
                table.result()  # an error in the thread is an error of the work

    def _hand_over(self) -> None:
        """Let the thread make a block of what is waiting, if anything is."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            if self._waiting:
                self._tables.append(self._thread.submit(self._make, self._waiting))
                self._waiting = []

    def _make(self, block: list[Evidence]) -> pyarrow.Table:
        if self._folder is None:
            return evidence_table(block, *self._names)
        table = evidence_table(block, *self._names, pictures=True, regions=self._folder.regions)
        self._folder.add(table)
        return table.select(table_schema().names)
