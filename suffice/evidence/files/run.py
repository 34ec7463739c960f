"""A search that is kept in a folder while it goes on, and goes on where an earlier one ended."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from suffice.evidence.files.folder import EvidenceFolder
from suffice.evidence.files.provenance import search_provenance
from suffice.evidence.files.writer import EvidenceWriter
from suffice.evidence.result import Evidence
from suffice.evidence.settings import Settings
from suffice.evidence.stream import EvidenceStream
from suffice.options import Count
from suffice.perturb import Counters, Runner
from suffice.vision import Model, as_classifier, open_images
from suffice.vision.classifier import Targets, targets_of
from suffice.vision.stream import OnError, Skip

if TYPE_CHECKING:
    import pyarrow


class EvidenceRun:
    """Evidence of images, kept in a folder as it is found; images that are in the folder already are not searched.

    It takes the arguments of :class:`suffice.evidence.EvidenceStream`, and

    Args:
        out: The folder; None to keep nothing.
        regions: Keep the regions below the MSEs, too.
        overwrite: Remove earlier evidence from the folder first.

    Attributes:
        about: All that has to be known to find the same again.
        waiting: Positions of the images that are not in the folder yet, when the run is made.

    Raises:
        OptionError: The folder has evidence of other images, or found in another way; nothing was changed then.

    Example:
        >>> import tempfile
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(4,)], grid=3)
        >>> net, image, settings = oracle.classifier(12), oracle.image(12), Settings(grid=3, baseline="black")
        >>> with tempfile.TemporaryDirectory() as out:
        ...     for _ in range(2):
        ...         run = EvidenceRun(net, image, 1, settings, out=out)
        ...         print(run.waiting, [found.mses[0].cells for found in run.search()])
        [0] [(4,)]
        [] [(4,)]
    """

    def __init__(
        self,
        net: Model,
        images: Any,
        targets: Targets = None,
        settings: Settings | None = None,
        runner: Runner | None = None,
        *,
        out: str | Path | None = None,
        regions: bool = True,
        overwrite: bool = False,
        images_at_once: Count | Literal["auto"] = "auto",
        on_error: OnError = "raise",
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.net, self.images, chosen = as_classifier(net), open_images(images), settings or Settings()
        runner = runner or Runner(self.net)
        self.about = search_provenance(runner, chosen, targets)
        every = range(len(self.images))
        wanted = targets_of(targets, every, len(self.images))
        self._folder: EvidenceFolder | None = None
        if out is not None:
            of_each = [self.net.class_index(one) for one in wanted] if isinstance(wanted, list) else None
            how = {"regions": regions, "overwrite": overwrite}
            self._folder = EvidenceFolder(out, self.about, self.images, of_each, **how)
        self.waiting = [*every] if self._folder is None else self._folder.waiting
        self._writer = EvidenceWriter(self.about, self._folder)
        self._work = EvidenceStream(
            self.net,
            self.images[self.waiting],
            targets_of(wanted, self.waiting, len(self.images)),
            chosen,
            runner,
            images_at_once=images_at_once,
            on_error=on_error,
            on_progress=on_progress and (lambda done, _: on_progress(self.earlier + done, len(self.images))),
        )

    def search(self, *, earlier: bool = True) -> Generator[Evidence, None, None]:
        """The evidence, that of earlier runs first if it is wanted, then that of each image as soon as it is finished.

        When the iteration ends, also by an error, Ctrl-C or ``close()``, all that was finished is in one file.
        """
        with self._writer:
            if earlier and self._folder is not None:
                yield from self._folder.evidence()
            try:
                for found in self._work:
                    placed = replace(found, index=self.waiting[found.index])
                    self._writer.add(placed)
                    yield placed
            finally:
                self._writer.skipped, self._writer.counters = self.skipped, self.counters

    @property
    def earlier(self) -> int:
        """Number of images that were in the folder before."""
        return len(self.images) - len(self.waiting)

    @property
    def kept(self) -> int:
        """Number of images with evidence, so far; those that were in the folder before included."""
        return self.earlier + self._writer.rows

    @property
    def skipped(self) -> Sequence[Skip]:
        """Images that could not be read, so far."""
        return [replace(skip, index=self.waiting[skip.index]) for skip in self._work.skipped]

    @property
    def counters(self) -> Counters:
        """What the runner did, so far."""
        return self._work.counters

    def to_arrow(self) -> pyarrow.Table:
        """All rows, those of earlier runs included, once the search is over."""
        return self._writer.to_arrow()
