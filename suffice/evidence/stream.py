"""From a classifier and images to evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import islice
from math import comb
from typing import Any, Literal

import torch
from torch import Tensor

from suffice.draw import small_picture
from suffice.errors import OptionError
from suffice.evidence.counting import Counting
from suffice.evidence.result import Evidence, EvidenceSet
from suffice.evidence.search import Searcher
from suffice.evidence.seed_map import seed_map
from suffice.evidence.settings import (
    Confirm,
    Keeps,
    Limit,
    Minimal,
    Passing,
    Ratio,
    Search,
    Settings,
    settings_of,
)
from suffice.options import Amount, Count, Share, check_options
from suffice.perturb import Counters, Probe, Runner
from suffice.perturb.baselines import Baseline
from suffice.perturb.masks import Cells
from suffice.perturb.runner import Precision
from suffice.vision import Classifier, Images, open_images
from suffice.vision.classifier import Targets, targets_of
from suffice.vision.identity import image_seed
from suffice.vision.stream import OnError, Skip, stream

Progress = Callable[[int, int], None]
AT_ONCE = 1_000_000  # sets that exhaustive searches hold at once


def find_evidence(
    net: Classifier,
    images: Any,
    targets: Targets = None,
    *,
    grid: Count = 7,
    threshold: Ratio = 0.9,
    strict: bool = False,
    keeps: Keeps = "ratio",
    above_baseline: bool = False,
    min_confidence: Share = 0.01,
    beam_width: Count = 5,
    search: Search = "paper",
    candidates: Count = 15,
    passing: Passing = "all",
    exhaustive: Limit = 0,
    prefer_disjoint: bool = False,
    beam_noise: Amount = 0.0,
    deletion_orders: Limit = 4,
    minimal: Minimal = "subset",
    certify: Limit | None = 6,
    subset_budget: Limit = 20_000,
    confirm: Confirm = "doubtful",
    max_mses: Limit | None = 10,
    max_size: Count | None = 18,
    max_questions: Limit | None = None,
    expand_at: Ratio = 0.5,
    expanded_mses: Limit | None = None,
    counting: Counting = "distinct",
    max_regions: Limit = 50_000,
    baseline: Baseline = "blur",
    second_baseline: Baseline | None = None,
    cells: Cells = "hard",
    stability: bool = False,
    contrastive: bool = False,
    necessary: bool = False,
    refine: tuple[Count, ...] = (),
    seed: int = 0,
    beam_off_by_one: bool = False,
    repeated_sets: bool = False,
    noise_defect: bool = False,
    settings: Settings | str | None = None,
    batch_size: Count | Literal["auto"] = "auto",
    precision: Precision = "fp32",
    compile: bool = False,
    runner: Runner | None = None,
    images_at_once: Count | Literal["auto"] = "auto",
    on_error: OnError = "raise",
    on_progress: Progress | None = None,
) -> EvidenceSet:
    """Find minimal sufficient explanations: the smallest regions that are enough for the model to decide.

    Args:
        net: The classifier; its score must be a probability (softmax or sigmoid).
        images: Anything that :func:`suffice.open_images` takes.
        targets: The classes asked about: None (predicted on the whole image), an index or label for all, or one per
            image.
        grid: Cells a side.
        threshold: A set of cells suffices when confidence on it / confidence on the whole image is at least this.
        strict: The ratio must be above the threshold, not just at it.
        keeps: What a set must keep to suffice: the ``"ratio"``, the target as the ``"top-1"`` class, or ``"both"``.
        above_baseline: Measure ratios above the baseline: (confidence − baseline's) / (whole image's − baseline's).
        min_confidence: Ratios to a confidence below this mean nothing: such an image gets no evidence, and says why.
        beam_width: Sets kept at each level.
        search: ``"paper"``: every cell outside a set is a candidate, no seed map. ``"sag"``: only the ``candidates``
            most salient cells by a seed map are, as in the implementation of structured attention graphs.
        candidates: Cells tried for each set of the beam with ``search="sag"``.
        passing: Which candidates of a level may become explanations: ``"all"`` that suffice, or only those within the
            ``"beam"``, the ``beam_width`` best.
        exhaustive: Up to this many cells every set is evaluated: all MSEs so small are found, for sure. Costs as many
            questions as there are sets: 1,225 up to 2 of 49 cells, 19,649 up to 3.
        prefer_disjoint: Fill the beam with sets that share few cells with each other, so that different MSEs are found.
        beam_noise: Random factor by which the beam ranks ratios (standard deviation of its logarithm), drawn by
            ``seed``: another search of the same image, to see what the first one missed.
        deletion_orders: Where the beam ends without an MSE, take cells out of the whole image in this many orders;
            0 leaves such images without.
        minimal: ``"subset"``: no MSE contains another, and what is certified has no proper subset that suffices.
            ``"single"``, the papers' reading: no single cell can go; MSEs may contain others.
        certify: With ``minimal="subset"``: certify MSEs of up to this many cells (6 have 62 proper subsets), None for
            all.
        subset_budget: Most subsets to evaluate for the certificates of one image.
        confirm: After a search in another precision, confirm in fp32 every MSE, and of the subsets that it rests on
            those that are ``"doubtful"`` (near a threshold, as far as that precision errs) or ``"all"``; what fails is
            mended. ``"none"``: report what the search says.
        max_mses: Stop after the level at which there are more MSEs than this; None for no limit.
        max_size: Do not look at sets of more cells than this; None for no limit. An image with few MSEs would be
            searched up to the whole grid, and pruning large sets is costly.
        max_questions: Do not begin a level that could take the image's questions beyond this.
        expand_at: Sets below an MSE with at least this ratio are expanded.
        expanded_mses: How many MSEs, in order of discovery, to look below; None for all, 0 for none.
        counting: The reading in which sub-explanations are reported, see :meth:`Evidence.subexplanations`; all are
            computed.
        max_regions: Most regions to evaluate below the MSEs of one image; counts are marked as truncated beyond.
        baseline: What shows where cells are hidden; see :func:`suffice.perturb.make_baseline`.
        second_baseline: Also ask for the ratio of each MSE over this one: :attr:`MSE.second_ratio`.
        cells: ``"hard"`` or ``"soft"`` edges.
        stability: Also ask whether MSEs stay sufficient under small changes: :attr:`Evidence.stability`.
        contrastive: Also find sets that are enough alone, and without which the rest is not.
        necessary: Also find the smallest sets without which the rest of the image is not enough.
        refine: Finer grids, such as ``(14, 28)``, on which to take needless parts out of the MSEs.
        seed: Seed of everything random.
        beam_off_by_one: As the implementation of structured attention graphs: the beam holds one set more.
        repeated_sets: As there: a set reached in two ways is in the beam twice.
        noise_defect: As there: the seed map's noise falls on the red channel only, twice as strong.
        settings: All of the above at once, or the name of a preset; see :func:`suffice.evidence.preset`.
        batch_size: Masked images per forward, or ``"auto"``; halved when memory runs out.
        precision: ``"fp32"``, ``"tf32"``, ``"bf16"`` or ``"fp16"``.
        compile: Compile the model; worth it for long work on a GPU.
        runner: Use this runner of the same classifier instead of the three.
        images_at_once: Images searched side by side; more fill larger batches.
        on_error: ``"raise"`` the error of an image that cannot be read, or ``"skip"`` it and record it.
        on_progress: Called with (images done, images in all).

    Returns:
        Evidence of each image, in their order.

    Raises:
        OptionError: An argument that cannot be, or a choice of the search beside ``settings=``.

    Example:
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(17, 24), (30,)], grid=7)
        >>> found = find_evidence(oracle.classifier(56), oracle.image(56), targets=1, baseline="black")
        >>> [mse.cells for mse in found[0].mses]
        [(30,), (17, 24)]
        >>> found[0].formula()
        '(P30) ∨ (P17 ∧ P24)'
    """
    arguments = locals()
    chosen = settings_of(settings, {field.name: arguments[field.name] for field in fields(Settings)})
    work = EvidenceStream(
        net,
        images,
        targets,
        chosen,
        Runner.of(net, runner, batch_size=batch_size, precision=precision, compile=compile),
        images_at_once=images_at_once,
        on_error=on_error,
        on_progress=on_progress,
    )
    evidence = sorted(work, key=lambda e: e.index)
    return EvidenceSet(evidence, net.name, net.family, work.skipped, work.counters)


class EvidenceStream:
    """Evidence image by image, as soon as each is finished; memory does not grow with the number of images.

    It takes the arguments of :func:`find_evidence`, with all choices of the search as :class:`Settings`.
    """

    def __init__(
        self,
        net: Classifier,
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
        if net.score == "logit":
            raise OptionError("Ratios of logits mean nothing; use a classifier with score='softmax' or 'sigmoid'.")
        self.net, self.targets = net, targets
        self.settings, self.runner = settings or Settings(), runner or Runner(net)
        self.images: Images = open_images(images)
        targets_of(targets, (), len(self.images))  # a wrong number of them is said at once
        # Half a slot for each input of a batch keeps it full: most rounds ask more than that of each image.
        auto = max(8, self.runner.batch_size // 2)
        if self.settings.exhaustive:
            auto = min(auto, max(1, AT_ONCE // comb(self.settings.grid**2, self.settings.exhaustive)))
        self.slots = min(auto if images_at_once == "auto" else images_at_once, len(self.images))
        self.on_progress = on_progress
        self._decoded = stream(self.images, net.geometry, batch_size=8, on_error=on_error)
        self._before = replace(self.runner.counters)
        # With settings of its own, by which seed maps depend on neither precision nor batch size of the search.
        self._seed_runner: Runner | None = None
        confirms = self.settings.confirm != "none" and not self.runner.exact
        self.exact_runner = Runner(net, precision="ieee") if confirms else self.runner

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
        done = 0
        self._before = replace(self.runner.counters)
        feed = (image for batch in self._decoded for image in zip(batch.index.tolist(), batch.pixels, strict=True))
        index, pixels = _take(feed, self.slots)
        if not len(pixels):
            return
        exact = self._probe(self.exact_runner, pixels, index, self._targets(index))
        # Targets are what the exact model predicts.
        probe = exact
        if self.exact_runner is not self.runner:
            probe = self._probe(self.runner, pixels, index, exact.targets)
        searcher = Searcher(probe, self.settings, None if probe is exact else exact)
        image_of = torch.full((len(probe),), -1)
        pictures: dict[int, Tensor] = {}
        slots = torch.arange(len(probe))
        while True:
            if len(pixels):
                image_of[slots] = index
                pictures |= {slot: p.clone() for slot, p in zip(slots.tolist(), small_picture(pixels), strict=True)}
                saliency = self._saliency(pixels, probe.targets[slots.to(probe.device)], index)
                searcher.admit(slots, saliency, self._seeds(index))
            if not searcher.active:
                return
            for slot, found in searcher.round().items():
                done += 1
                yield self.evidence_of(found, probe, slot, int(image_of[slot]), pictures.pop(slot))
                if self.on_progress is not None:
                    self.on_progress(done + len(self.skipped), len(self.images))
            # New images come in blocks: their first forwards are few, and few make a poor batch.
            free, pixels = searcher.free, pixels[:0]
            if len(free) >= max(1, self.slots // 4) or (len(free) and not searcher.active):
                index, pixels = _take(feed, len(free))
                slots = free[: len(pixels)].cpu()
                if len(pixels):
                    ids = _Ids(self.images, index)
                    exact.exchange(slots, pixels, self._targets(index), ids=ids)
                    if probe is not exact:
                        probe.exchange(slots, pixels, exact.targets[slots.to(exact.device)], ids=ids)

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
            image_id=vars(image).get("id"),
        )

    def _saliency(self, pixels: Tensor, targets: Tensor, index: Tensor) -> Tensor | None:
        """Seed maps of images, where the search wants them."""
        if self.settings.search != "sag":
            return None
        if self._seed_runner is None:
            self._seed_runner = Runner(self.net, counters=self.runner.counters)
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
        )

    def _targets(self, index: Tensor) -> Targets:
        return targets_of(self.targets, index.tolist(), len(self.images))


class _Ids(Sequence[str]):
    """Identities of some images. They cost a hash each, which only those pay who look at them."""

    def __init__(self, images: Images, index: Tensor) -> None:
        self._images, self._index = images, index

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, number: Any) -> Any:
        index = self._index[number]
        return _Ids(self._images, index) if isinstance(number, slice) else self._images[int(index)].id


def _take(feed: Iterator[tuple[int, Tensor]], count: int) -> tuple[Tensor, Tensor]:
    """The next images, as many as there are up to ``count``: their indices [M], and pixels [M, 3, H, W]."""
    taken = list(islice(feed, count))
    pixels = torch.stack([pixels for _, pixels in taken]) if taken else torch.zeros(0, 3, 1, 1)
    return torch.tensor([index for index, _ in taken], dtype=torch.long), pixels
