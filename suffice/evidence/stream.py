"""Evidence of images, one after the other as each is finished: decoding, searching, and what comes after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from math import comb
from typing import Any, Literal

import torch
from torch import Tensor

from suffice.draw import small_picture
from suffice.errors import OptionError
from suffice.evidence.beyond.extras import add_extras, wants_extras
from suffice.evidence.beyond.refinement import check_refinement
from suffice.evidence.result import Evidence
from suffice.evidence.search.searcher import Searcher
from suffice.evidence.search.seed_map import seed_map
from suffice.evidence.settings import Settings
from suffice.options import Count, check_options
from suffice.perturb import Counters, Probe, Runner
from suffice.perturb.probe import check_grid
from suffice.progress import stage
from suffice.vision import Classifier, Images, Model, as_classifier, open_images
from suffice.vision.classifier import Targets, targets_of
from suffice.vision.identity import image_seed
from suffice.vision.stream import Decoding, OnError, PixelBatch, Skip, stream

Progress = Callable[[int, int], None]
AT_ONCE = 1_000_000  # sets that exhaustive searches hold at once
EXTRAS_AT_ONCE = 16  # images
MOST_SLOTS = 1 << 14  # by which sets are told apart in one word; more images at once would fill no batch better


class EvidenceStream:
    """Evidence image by image, as soon as each is finished; memory does not grow with the number of images.

    It takes the arguments of :func:`suffice.find_evidence`, with all choices of the search as :class:`Settings`.
    """

    def __init__(
        self,
        net: Model,
        images: Any,
        targets: Targets = None,
        settings: Settings | None = None,
        runner: Runner | None = None,
        *,
        images_at_once: Count | Literal["auto"] = "auto",
        on_error: OnError = "raise",
        on_progress: Progress | None = None,
    ) -> None:
        check_options({"images_at_once": images_at_once, "on_error": on_error}, EvidenceStream.__init__)
        net = as_classifier(net)
        self.net, self.targets, self.settings = net, targets, settings or Settings()
        check_search(net, self.settings)
        self.runner = runner or Runner(net)
        self.images: Images = open_images(images)
        targets_of(targets, (), len(self.images))  # a wrong number of them is said at once
        # Half a slot for each input of a batch keeps it full: most rounds ask more than that of each image.
        auto = max(8, self.runner.batch_size // 2)
        if self.settings.exhaustive:
            auto = min(auto, max(1, AT_ONCE // comb(self.settings.grid**2, self.settings.exhaustive)))
        self.slots = min(auto if images_at_once == "auto" else images_at_once, len(self.images), MOST_SLOTS)
        self.on_progress = on_progress
        # New images come in blocks: their first forwards are few, and few make a poor batch.
        self._block = max(1, self.slots // 8)
        self._decoded = stream(self.images, net.geometry, on_error=on_error, ahead=max(16, 2 * self._block))
        self._before = replace(self.runner.counters)
        # With settings of its own, by which seed maps depend on neither precision nor batch size of the search. GPUs
        # round in its matrix products, as in convolutions by default: transformers are three times as fast.
        self._seed_runner: Runner | None = None
        confirms = self.settings.confirm != "none" and not self.runner.exact
        self.exact_runner = self.runner.unrounded if confirms else self.runner

    @property
    def counters(self) -> Counters:
        """What the runner did for this search, so far."""
        now, before = vars(self.runner.counters), vars(self._before)
        return Counters(**{name: now[name] - before[name] for name in now})

    @property
    def skipped(self) -> Sequence[Skip]:
        """Images that could not be read, so far."""
        return self._decoded.skipped

    def __iter__(self) -> Iterator[Evidence]:
        found = self._with_extras() if wants_extras(self.settings) else (one for one, _ in self._search())
        with stage("evidence", len(self.images), steady=False) as finished:
            for done, evidence in enumerate(found, start=1):
                finished(done + len(self.skipped))
                yield evidence
                if self.on_progress is not None:
                    self.on_progress(done + len(self.skipped), len(self.images))

    def _with_extras(self) -> Iterator[Evidence]:
        """What the search finds with what is asked beyond it, some images at once."""
        found = self._search()
        while some := list(islice(found, EXTRAS_AT_ONCE)):
            ids = _Ids(self.images, torch.tensor([one.index for one, _ in some]))
            pixels = torch.stack([pixels for _, pixels in some])
            yield from add_extras(self.exact_runner, pixels, ids, [one for one, _ in some])

    def _search(self) -> Iterator[tuple[Evidence, Tensor]]:
        """What the search finds, and the pixels of each image where something is asked beyond it."""
        self._before = replace(self.runner.counters)
        with closing(self._decoded.one_by_one()) as decoding:
            index, pixels = _apart(decoding.take(self._block))
            if len(pixels):
                yield from self._search_from(index, pixels, decoding)

    def _search_from(self, index: Tensor, pixels: Tensor, decoding: Decoding) -> Iterator[tuple[Evidence, Tensor]]:
        """The same, from the first images on; each round takes in others where slots are free."""
        exact = self._probe(self.exact_runner, pixels, index, self._targets(index))
        # Targets are what the exact model predicts.
        probe = exact
        if self.exact_runner is not self.runner:
            probe = self._probe(self.runner, pixels, index, exact.targets[: len(index)])
        searcher = Searcher(probe, self.settings, None if probe is exact else exact)
        in_slot: dict[int, tuple[int, Tensor, Tensor]] = {}  # which image it is, its small picture, its pixels
        free = list(range(self.slots))
        slots, free = free[: len(index)], free[len(index) :]
        while True:
            if len(pixels):
                # Copies, as a view of one image would keep all of them in memory.
                pictures = small_picture(pixels).unbind()
                full = pixels.unbind() if wants_extras(self.settings) else pictures
                kept = ((i, a.clone(), b.clone()) for i, a, b in zip(index.tolist(), pictures, full, strict=True))
                in_slot |= dict(zip(slots, kept, strict=True))
                there = torch.tensor(slots)
                saliency = self._saliency(pixels, probe.targets[there.to(probe.device)], index)
                searcher.admit(there, saliency, self._seeds(index))
            if not searcher.active:
                return
            for slot, found in searcher.round().items():
                number, picture, image = in_slot.pop(slot)
                free.append(slot)
                yield self.evidence_of(found, probe, slot, number, picture), image
            index, pixels = _apart(decoding.take(self._room(len(free), searcher.active, decoding)))
            slots, free = free[: len(index)], free[len(index) :]
            if len(index):
                there, ids = torch.tensor(slots), _Ids(self.images, index)
                exact.exchange(there, pixels, self._targets(index), ids=ids)
                if probe is not exact:
                    probe.exchange(there, pixels, exact.targets[there.to(exact.device)], ids=ids)

    def _room(self, free: int, active: int, decoding: Decoding) -> int:
        """How many images to take in: whole blocks that are decoded; some in any case where there is nothing to do."""
        count = 0
        while count + self._block <= free and decoding.ready(count + self._block):
            count += self._block
        return count if count or active else min(free, self._block)

    def evidence_of(
        self, found: dict[str, Any], probe: Probe, slot: int, index: int, picture: Tensor | None = None
    ) -> Evidence:
        """What the search found in a slot of the probe, as evidence of the image that is there."""
        target, image = int(probe.targets[slot]), self.images[index]
        return Evidence(
            **found,
            name=image.name,
            index=index,
            target=target,
            label=self.net.labels[target] if self.net.labels else str(target),
            grid=probe.grid,
            settings=self.settings,
            picture=picture,
            image_id=image.id,
        )

    def _saliency(self, pixels: Tensor, targets: Tensor, index: Tensor) -> Tensor | None:
        """Seed maps of images, where the search wants them."""
        if self.settings.search != "sag":
            return None
        if self._seed_runner is None:
            self._seed_runner = Runner(self.net, precision="tf32", counters=self.runner.counters)
        return seed_map(self._seed_runner, pixels, targets, self.settings, _Ids(self.images, index))

    def _seeds(self, index: Tensor) -> Tensor | None:
        """Seeds of images, where the search wants them."""
        if not self.settings.beam_noise:
            return None
        return torch.tensor([image_seed(self.settings.seed, self.images[i].id) for i in index.tolist()])

    def _probe(self, runner: Runner, pixels: Tensor, index: Tensor, targets: Targets) -> Probe:
        chosen = self.settings
        return Probe(
            self.net,
            pixels,
            targets,
            baseline=chosen.baseline,
            grid=chosen.grid,
            cells=chosen.cells,
            seed=chosen.seed,
            runner=runner,
            ids=_Ids(self.images, index),
            slots=self.slots,
        )

    def _targets(self, index: Tensor) -> Targets:
        return targets_of(self.targets, index.tolist(), len(self.images))


def check_search(net: Classifier, settings: Settings) -> None:
    """Raise an error where a search cannot be made with a model."""
    if net.score == "logit":
        raise OptionError("Ratios of logits mean nothing; use a classifier with score='softmax' or 'sigmoid'.")
    check_grid(settings.grid, net.size)
    check_refinement(settings, net.size)


class _Ids(Sequence[str]):
    """Identities of some images. They cost a hash each, which only those pay who look at them."""

    def __init__(self, images: Images, index: Tensor) -> None:
        self._images, self._index = images, index

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, number: Any) -> Any:
        index = self._index[number]
        return _Ids(self._images, index) if isinstance(number, slice) else self._images[int(index)].id


def _apart(batch: PixelBatch | None) -> tuple[Tensor, Tensor]:
    """Indices [M] and pixels [M, 3, H, W] of images, perhaps of none."""
    return (torch.zeros(0, dtype=torch.long), torch.zeros(0, 3, 1, 1)) if batch is None else (batch.index, batch.pixels)
