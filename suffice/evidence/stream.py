"""From a classifier and images to evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from suffice.errors import OptionError
from suffice.evidence.presets import settings_of
from suffice.evidence.result import MSE, Evidence, EvidenceSet
from suffice.evidence.search import Finding, Searcher
from suffice.evidence.settings import Settings
from suffice.perturb.forwarder import Forwarder, Precision
from suffice.perturb.probe import Counters, Probe
from suffice.vision.classifier import Classifier, Targets, targets_of
from suffice.vision.images import Images, open_images
from suffice.vision.stream import OnError, Skip, stream

Progress = Callable[[int, int], None]


def find_evidence(
    net: Classifier,
    images: Any,
    targets: Targets = None,
    *,
    preset: str | None = None,
    batch_size: int | Literal["auto"] = "auto",
    precision: Precision = "fp32",
    compile: bool = False,
    images_at_once: int | Literal["auto"] = "auto",
    on_error: OnError = "raise",
    on_progress: Progress | None = None,
    **settings: Any,
) -> EvidenceSet:
    """Find, in each image, the smallest regions that are enough for the model to decide.

    Args:
        net: The classifier; its score must be a probability (softmax or sigmoid).
        images: Anything that :func:`suffice.open_images` takes.
        targets: The classes asked about: None (predicted on the whole image), an index or label for all, or one per
            image.
        preset: Start from a named set of choices instead of the defaults; see :func:`suffice.evidence.presets`.
        batch_size: Masked images per forward.
        precision: ``"fp32"``, ``"tf32"``, ``"bf16"`` or ``"fp16"``.
        compile: Compile the model; worth it for long work on a GPU.
        images_at_once: Images searched side by side; more fill larger batches.
        on_error: ``"raise"`` the error of an image that cannot be read, or ``"skip"`` it and record it.
        on_progress: Called with (images done, images in all).
        **settings: Choices of the search, such as ``grid=7``, ``threshold=0.9``, ``beam_width=5``,
            ``baseline="blur"``, ``minimal="subset"``; see :class:`suffice.evidence.Settings`.

    Returns:
        Evidence of each image, in their order.

    Example:
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(17, 24), (30,)], grid=7)
        >>> found = find_evidence(oracle.classifier(56), oracle.image(56), targets=1, baseline="black")
        >>> [mse.cells for mse in found[0].mses]
        [(30,), (17, 24)]
        >>> found[0].formula()
        '(P30) ∨ (P17 ∧ P24)'
    """
    work = EvidenceStream(
        net,
        images,
        targets,
        settings_of(preset, settings),
        Forwarder(net, batch_size=batch_size, precision=precision, compile=compile),
        images_at_once=images_at_once,
        on_error=on_error,
        on_progress=on_progress,
    )
    evidence = sorted(work, key=lambda e: e.index)
    return EvidenceSet(evidence, net.name, net.family, work.skipped, work.counters)


class EvidenceStream:
    """Evidence image by image, as soon as each is finished; memory does not grow with the number of images.

    Args:
        net: The classifier.
        images: Anything that :func:`suffice.open_images` takes.
        targets: As in :func:`find_evidence`.
        settings: The choices of the search.
        forwarder: Puts batches through the model.
        images_at_once: Images searched side by side.
        on_error: What to do with an image that cannot be read.
        on_progress: Called with (images done, images in all).

    Attributes:
        counters: What the probe did.
    """

    def __init__(
        self,
        net: Classifier,
        images: Any,
        targets: Targets,
        settings: Settings,
        forwarder: Forwarder,
        *,
        images_at_once: int | Literal["auto"] = "auto",
        on_error: OnError = "raise",
        on_progress: Progress | None = None,
    ) -> None:
        if net.score == "logit":
            raise OptionError("Ratios of logits mean nothing; use a classifier with score='softmax' or 'sigmoid'.")
        self.net, self.settings, self.forwarder = net, settings, forwarder
        self.images: Images = open_images(images)
        self.targets = targets
        targets_of(targets, (), len(self.images))  # a wrong number of them is said at once
        # Half an image's place for each place in the batch keeps it full: most rounds ask more than that of each.
        auto = max(8, forwarder.batch_size // 2)
        self.places = min(auto if images_at_once == "auto" else images_at_once, len(self.images))
        self.on_error, self.on_progress = on_error, on_progress
        self._feed = _Feed(self.images, net, on_error)
        self.counters = Counters()

    @property
    def skipped(self) -> Sequence[Skip]:
        """Images that could not be read, so far."""
        return self._feed.skipped

    def __iter__(self) -> Iterator[Evidence]:
        done = 0
        feed = self._feed = _Feed(self.images, self.net, self.on_error)
        first_index, first = feed.take(self.places)
        if not len(first):
            return
        probe = self._probe(first, first_index)
        self.counters = probe.counters
        searcher = Searcher(probe, self.settings)
        index_of = torch.full((len(probe),), -1)
        self._admit(searcher, index_of, torch.arange(len(first)), first_index, first)
        while searcher.active:
            for finding in searcher.round():
                done += 1
                yield self.evidence_of(finding, probe, int(index_of[finding.place]))
                if self.on_progress is not None:
                    self.on_progress(done + len(self.skipped), len(self.images))
            # New images come in blocks: their first forwards are few, and few make a poor batch.
            free = searcher.free
            if len(free) >= max(1, self.places // 4) or (len(free) and not searcher.active):
                index, pixels = feed.take(len(free))
                if len(pixels):
                    places = free[: len(pixels)].cpu()
                    ids = self._ids(index)
                    probe.exchange(places, pixels, self._targets(index), ids=ids)
                    self._admit(searcher, index_of, places, index, pixels)

    def _admit(self, searcher: Searcher, index_of: Tensor, places: Tensor, index: Tensor, pixels: Tensor) -> None:
        index_of[places] = index
        saliency = None
        if self.settings.search == "sag":
            from suffice.attribution import seed_map

            saliency = seed_map(
                self.net,
                pixels.to(self.net.device),
                searcher.probe.targets[places.to(searcher.device)],
                self.settings.grid,
                baseline=self.settings.baseline,
                seed=self.settings.seed,
                noise_defect=self.settings.noise_defect,
                ids=self._ids(index),
            )
        searcher.admit(places, saliency)

    def _probe(self, pixels: Tensor, index: Tensor) -> Probe:
        return Probe(
            self.net,
            pixels,
            self._targets(index),
            baseline=self.settings.baseline,
            grid=self.settings.grid,
            cells=self.settings.cells,
            seed=self.settings.seed,
            forwarder=self.forwarder,
            ids=self._ids(index),
        )

    def evidence_of(self, finding: Finding, probe: Probe, index: int) -> Evidence:
        """What the search found in a place of the probe, as evidence of the image that is there."""
        target = int(probe.targets[finding.place])
        cells, ratios, certified = probe.grid.to_cells(finding.mses), finding.mse_ratios, finding.certified
        return Evidence(
            name=self.images[index].name,
            index=index,
            target=target,
            label=self.net.labels[target] if self.net.labels else str(target),
            confidence=float(probe.whole[finding.place]),
            baseline_confidence=finding.baseline_confidence,
            grid=probe.grid,
            mses=tuple(map(MSE, cells, ratios.tolist(), certified.tolist())),
            regions=finding.regions,
            ratios=finding.ratios,
            questions=finding.questions,
            levels=finding.levels,
            stopped=finding.stopped,
            truncated=finding.truncated,
            settings=self.settings,
        )

    def _targets(self, index: Tensor) -> Targets:
        return targets_of(self.targets, index.tolist(), len(self.images))

    def _ids(self, index: Tensor) -> list[str] | None:
        """Identities where something random may depend on them; they cost a hash each."""
        quiet = self.settings.baseline in ("blur", "blur-tis", "blur-rise", "black", "gray", "mean", "image-mean")
        return None if quiet and self.settings.search == "paper" else [self.images[i].id for i in index.tolist()]


class _Feed:
    """Pixels of images, some at a time, decoded ahead."""

    def __init__(self, images: Images, net: Classifier, on_error: OnError) -> None:
        self._stream = stream(images, net.geometry, batch_size=8, on_error=on_error)
        self._batches = iter(self._stream)
        self._index: list[int] = []
        self._pixels: list[Tensor] = []

    @property
    def skipped(self) -> Sequence[Skip]:
        return self._stream.skipped

    def take(self, count: int) -> tuple[Tensor, Tensor]:
        """The next images, as many as there are up to ``count``: their places in the list [M], pixels [M, 3, H, W]."""
        while len(self._index) < count:
            batch = next(self._batches, None)
            if batch is None:
                break
            self._index += batch.index.tolist()
            self._pixels += list(batch.pixels)
        index, pixels = self._index[:count], self._pixels[:count]
        self._index, self._pixels = self._index[count:], self._pixels[count:]
        return torch.tensor(index, dtype=torch.long), torch.stack(pixels) if pixels else torch.zeros(0, 3, 1, 1)
