"""The probe: the one place where masked images are scored.

Beam search, occlusion, RISE, insertion, deletion, cross-testing all ask the same question: *for image i and mask m,
what does the model say?* The probe answers it for many images at once, in full batches, and never asks twice.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Union

import torch
from torch import Tensor

from suffice.errors import OptionError
from suffice.options import Count, check_options
from suffice.perturb.baselines import Baseline, make_baseline
from suffice.perturb.blending import blended
from suffice.perturb.masks import Cells, Enlargement, FloatMasks, Masks, RankMasks, RegionMasks
from suffice.perturb.memory import Memory, distinct
from suffice.perturb.regions import Grid
from suffice.perturb.rows import group_sizes
from suffice.perturb.runner import AnyPrecision, Counters, Runner
from suffice.vision.classifier import Targets
from suffice.vision.wrap import Model, as_classifier

Questions = Union[Tensor, Masks]
Index = Union[int, Sequence[int], Tensor]


class Response(NamedTuple):
    """What a model says of masked images."""

    score: Tensor  # of the target, [...] float32
    correct: Tensor  # whether the target has the highest score, [...] bool
    new: Tensor | None = None  # of a probe: for which of the questions the model was asked, [...] bool
    waits: Tensor | None = None  # which of the questions were left for later, [...] bool; None where none was

    def value(self, kind: Literal["score", "accuracy"]) -> Tensor:
        """The ``"score"``, or the ``"accuracy"``: 1 where the target wins."""
        return self.score if kind == "score" else self.correct.float()


class Probe:
    """Answers how confident a model is when it sees only parts of images.

    Args:
        net: The classifier.
        images: Anything that :func:`suffice.open_images` takes; all of them are held in memory, ready to be masked.
        targets: The classes asked about: None (predicted on the whole image), an index or label for all, or one per
            image.
        baseline: What shows where pixels are hidden; see :func:`suffice.perturb.make_baseline`.
        grid: Cells per side for questions about regions, or a :class:`Grid`.
        cells: ``"hard"`` or ``"soft"``; see :class:`suffice.perturb.RegionMasks`.
        batch_size: Masked images per forward, or ``"auto"``; halved when memory runs out.
        precision: ``"fp32"``, ``"tf32"``, ``"fp16"``, ``"bf16"`` or ``"auto"``; scores stay in fp32.
        compile: Compile the model; worth it for long work on a GPU.
        seed: Seed of random baselines.
        remember: Most answers about regions to keep; 0 to keep none.
        ids: Identities of the images, for random baselines; default: by their pixels.
        output: Answer with the ``"score"`` of the classifier (softmax unless told otherwise), or with the ``"logit"``.
        runner: Use this runner (of the same classifier) instead of the three, so that a model is compiled or converted
            once for many probes.
        whole: Scores of the whole images, [N, classes], where they are known already.
        slots: Room for so many images, of which :meth:`exchange` brings the others; default: for those given.

    Attributes:
        targets: Class asked about, [N] int64.
        whole: Confidence on the whole images, [N] float32.
        classes: How many there are.
        forwards: Masked images of each image put through the model, [N] int64.
        counters: What the runner did, for this probe and whoever shares it.

    Example:
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(17, 24), (30,)], grid=7)          # decides by cells 17 and 24, or by cell 30
        >>> probe = Probe(oracle.classifier(56), oracle.image(56), targets=1, baseline="black")
        >>> regions = probe.grid.from_cells([(17, 24), (17,), (30,)])
        >>> probe.ask(torch.zeros(3, dtype=torch.long), regions)
        tensor([0.9800, 0.0200, 0.9800])
        >>> _ = probe.ask(0, regions)                          # nothing is asked twice; the whole image was asked too
        >>> probe.counters.questions, probe.counters.remembered, probe.counters.forwards
        (6, 3, 4)
    """

    def __init__(
        self,
        net: Model,
        images: Any,
        targets: Targets = None,
        *,
        baseline: Baseline = "blur",
        grid: int | Grid = 7,
        cells: Cells = "hard",
        batch_size: Count | Literal["auto"] = "auto",
        precision: AnyPrecision = "fp32",
        compile: bool = False,
        seed: int = 0,
        remember: int = 1 << 23,
        ids: Sequence[str] | None = None,
        output: Literal["score", "logit"] = "score",
        runner: Runner | None = None,
        whole: Tensor | None = None,
        slots: int | None = None,
    ) -> None:
        check_options({"cells": cells, "output": output}, Probe.__init__)
        net = self.net = as_classifier(net)
        self.output, self.cells = output, cells
        self.grid = grid if isinstance(grid, Grid) else Grid(grid)
        self.runner = Runner.of(net, runner, batch_size=batch_size, precision=precision, compile=compile)
        self.device = self.runner.device
        self._blend = self.runner.fused(blended)
        self.memory = Memory(remember, columns=2)
        self.baseline, self.seed = baseline, seed
        check_grid(self.grid.side, net.size)

        pixels = net.prepare(images)
        shape = (*net.size, 3) if self.runner.channels_last else (3, *net.size)
        slots = max(slots or 0, len(pixels))
        # One compilation serves any number of images, but torch would compile anew for a single one.
        room = max(2, slots) if self.runner.compiled else slots
        self._shown = torch.empty(room, *shape, dtype=self.runner.dtype, device=self.device)
        self._hidden = torch.empty_like(self._shown)
        if self.runner.compiled:
            for stored in (self._shown, self._hidden):
                torch._dynamo.maybe_mark_dynamic(stored, 0)
        self.targets, self.forwards = torch.zeros(2, slots, dtype=torch.long, device=self.device)
        self.whole = torch.zeros(slots, device=self.device)
        self.exchange(torch.arange(len(pixels)), pixels, targets, ids=ids, whole=whole)

    @property
    def counters(self) -> Counters:
        """What the runner did."""
        return self.runner.counters

    @torch.no_grad()
    def exchange(
        self,
        slots: Tensor,
        pixels: Tensor,
        targets: Targets = None,
        *,
        ids: Sequence[str] | None = None,
        whole: Tensor | None = None,
    ) -> None:
        """Put other images into some slots [M]; what was answered about the old ones is forgotten.

        The new ones are pixels [M, 3, H, W] in [0, 1]; the rest is as in the constructor.
        """
        slots, pixels = slots.to(self.device), pixels.to(self.device)
        hidden = make_baseline(self.baseline, pixels, mean=self.net.mean, ids=ids, seed=self.seed)
        self._shown[slots], self._hidden[slots] = self._laid_out(pixels), self._laid_out(hidden)
        scores = self._whole_scores(slots) if whole is None else whole
        self.classes = scores.shape[1]
        self.targets[slots] = self.net.targets(targets, scores)
        self.whole[slots] = scores.gather(1, self.targets[slots][:, None])[:, 0]
        self.forwards[slots] = 0
        self.memory.forget(slots)

    def __len__(self) -> int:
        return len(self.targets)

    def ask(self, index: Index, questions: Questions) -> Tensor:
        """Ask for the confidence of the target when only some pixels of an image are shown.

        Args:
            index: Which image each question is about, [K] int64, or one number for all.
            questions: Regions, [K] int64 bit words ([K, words] for grids beyond 8×8); masks [K, h, w], floats in [0, 1]
                or bools, 1 = shown, enlarged bilinearly where smaller than the image; or any
                :class:`suffice.perturb.Masks`, such as :class:`suffice.perturb.RankMasks`.

        Returns:
            Confidence [K], float32, on the device of ``questions`` (of the model for masks made on demand).
        """
        return self.respond(index, questions).score

    @torch.no_grad()
    def respond(self, index: Index, questions: Questions, later: Tensor | None = None) -> Response:
        """Ask for the confidence of the target, and whether it wins; see :meth:`ask`.

        With ``later``, [K] int64, questions about regions may be left for another time so that batches are full: those
        where it is not 0, the highest first.
        """
        started = time.perf_counter()
        masks = self._masks(questions)
        index = self._image_index(index, len(masks))
        if isinstance(questions, Tensor) and isinstance(masks, RegionMasks):
            answers = self._respond_to_regions(index, masks.regions, later)
        else:
            answers = torch.nn.functional.pad(self._forward(index, masks), (0, 1), value=1.0)
        answers = answers.to(questions.device if isinstance(questions, Tensor) else self.device)
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        self.counters.questions += len(index)
        self.counters.seconds += time.perf_counter() - started
        return Response(answers[:, 0], *answers[:, 1:].bool().unbind(1))

    @torch.no_grad()
    def scores(self, index: Index, questions: Questions) -> Tensor:
        """Ask for the scores of all classes, [K, classes] float32 on the device of the model; see :meth:`ask`.

        Nothing of it is remembered, as a row is as long as there are classes.
        """
        started = time.perf_counter()
        masks = self._masks(questions)
        index = self._image_index(index, len(masks))
        if not len(index):
            return self.whole.new_empty(0, self.classes)
        parts = self.runner.run(len(index), lambda rows: self._scores(index[rows], masks, rows))
        scores = torch.cat(list(parts))
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        self.forwards += group_sizes(index, len(self))
        self.counters.questions += len(index)
        self.counters.seconds += time.perf_counter() - started
        return scores

    def _respond_to_regions(self, index: Tensor, regions: Tensor, later: Tensor | None) -> Tensor:
        """Score, whether the target wins, whether the model was asked, and (if any) what waits; [K, 3 or 4] float32."""
        keys, number = distinct(index, self.grid.as_words(regions))
        known, values = self.memory.look_up(keys)
        unknown = (~known).nonzero().flatten()
        asked_now = self._now(unknown, number, later)
        waiting, unknown = len(asked_now) < len(unknown), asked_now
        new = keys.take(unknown)
        words = new.columns[:, 1] if self.grid.words == 1 else new.columns[:, 1:]
        # Contiguous, as what is compiled is compiled for strides too.
        answers = self._forward(new.columns[:, 0].contiguous(), RegionMasks(words, self.grid, self.cells))
        values[unknown] = answers
        if self.memory.limit:
            self.memory.store(new, answers)
        self.counters.remembered += len(index) - len(unknown)
        # Of equal questions, the first is the one that the model was asked for.
        rows = torch.arange(len(index), device=self.device)
        first = torch.full_like(known, len(rows), dtype=torch.long).scatter_reduce_(0, number, rows, "amin")
        asked = torch.zeros(len(index), 1, device=self.device)
        asked[first[unknown]] = 1.0
        parts = [values[number], asked]
        if waiting:
            known[unknown] = True
            parts.append((~known[number, None]).float())
        return torch.cat(parts, dim=1)

    def _now(self, unknown: Tensor, number: Tensor, later: Tensor | None) -> Tensor:
        """Of distinct questions that are not known, [U], those to ask now: as many as fill batches, or all.

        ``number`` says which distinct question each of the K questions is, and ``later`` which may wait.
        """
        full = len(unknown) // self.runner.batch_size * self.runner.batch_size
        if later is None or full in (0, len(unknown)):
            return unknown
        due = torch.full_like(number, torch.iinfo(torch.long).max).scatter_reduce_(0, number, later, "amin")[unknown]
        if int((due == 0).sum()) > full:
            return unknown
        return unknown[due.sort(stable=True).indices[:full]].sort().values

    def _forward(self, index: Tensor, masks: Masks) -> Tensor:
        """Score of the target and whether it wins, [K, 2] float32, for masks of images."""
        answers = torch.empty(len(index), 2, device=self.device)

        def some(rows: slice) -> None:
            images = index[rows]
            scores, target = self._scores(images, masks, rows), self.targets[images]
            answers[rows, 0] = scores.gather(1, target[:, None])[:, 0]
            answers[rows, 1] = (scores.argmax(dim=1) == target).float()

        for _ in self.runner.run(len(index), some):
            pass
        self.forwards += group_sizes(index, len(self))
        return answers

    def _scores(self, images: Tensor, masks: Masks, rows: slice) -> Tensor:
        """Scores [B, classes] of one batch of masked images."""
        enlargement: Enlargement | None = None
        if isinstance(masks, RegionMasks) and masks.cells == "hard":
            mask = masks.shown(rows, self.device)  # filled while blending
        elif isinstance(masks, RankMasks):
            mask, enlargement = masks.shown(rows, self.device), masks.enlargement  # likewise
        else:
            mask = masks.rows(rows, self.net.size, self.device)
        padded, mask = self.runner.padded(images), self.runner.padded(mask)
        last = self.runner.channels_last
        inputs = self._blend(self._shown, self._hidden, padded, mask, last, enlargement)[: len(images)]
        if hasattr(masks, "noise"):
            inputs = inputs + masks.noise(rows, self.net.size, self.device).to(inputs.dtype)
        logits = self.runner.logits(inputs)
        return logits if self.output == "logit" else self.net.scores(logits)

    def _laid_out(self, pixels: Tensor) -> Tensor:
        """Normalize images, in the layout from which batches are blended without another copy."""
        normalized = self.net.normalize(pixels).to(self.runner.dtype)
        return normalized.permute(0, 2, 3, 1) if self.runner.channels_last else normalized

    def _whole_scores(self, slots: Tensor) -> Tensor:
        """Scores [M, classes] on whole images, by the same way as everything they are compared with."""
        everything = RegionMasks(self.grid.full(len(slots), self.device), self.grid)
        parts = self.runner.run(len(slots), lambda rows: self._scores(slots[rows], everything, rows))
        return torch.cat(list(parts))

    def _masks(self, questions: Questions) -> Masks:
        if not isinstance(questions, Tensor):
            if not hasattr(questions, "rows"):
                raise OptionError(
                    f"Questions are a tensor of regions, as of probe.grid.from_cells([(17, 24)]), a tensor of masks "
                    f"[K, h, w] in [0, 1], or masks of suffice.perturb; not a {type(questions).__name__}."
                )
            return questions
        if questions.is_floating_point() or questions.dtype == torch.bool:
            return FloatMasks(questions)
        return RegionMasks(questions.to(self.device), self.grid, self.cells)

    def _image_index(self, index: Index, count: int) -> Tensor:
        index = torch.as_tensor(index)
        if index.dim() == 0:
            index = index.repeat(count)
        if index.dtype != torch.long or index.shape != (count,):
            raise OptionError(
                f"Expected one image index per question, int64 [{count}]; got {index.dtype} {list(index.shape)}."
            )
        if count and not (int(index.min()) >= 0 and int(index.max()) < len(self)):
            raise OptionError(
                f"The probe holds images 0 to {len(self) - 1}; asked were {int(index.min())} to {int(index.max())}."
            )
        return index.to(self.device)


def check_grid(side: int, size: tuple[int, int]) -> None:
    """Raise an error where a grid has more cells a side than an input of this height and width has pixels."""
    if side > min(size):
        raise OptionError(f"A {side}×{side} grid does not fit {size[0]}×{size[1]} pixels.")
