"""The probe: the one place where masked images are scored.

Beam search, occlusion, RISE, insertion, deletion, cross-testing all ask the same question: *for image i and mask m,
what does the model say?* The probe answers it for many images at once, in full batches, and never asks twice.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union

import torch
from torch import Tensor

from suffice.errors import OptionError
from suffice.perturb.baselines import Baseline, make_baseline
from suffice.perturb.forwarder import Forwarder, Precision
from suffice.perturb.masks import Cells, FloatMasks, Masks, RegionMasks, fill_cells
from suffice.perturb.memory import Keys, Memory, distinct
from suffice.perturb.regions import Grid
from suffice.vision.classifier import Classifier, Targets

Questions = Union[Tensor, Masks]


@dataclass
class Counters:
    """What a probe did; the basis of every benchmark.

    Attributes:
        questions: Questions asked of the probe.
        remembered: Of these, answered without asking the model: known from before, or asked twice at once.
        forwards: Masked images put through the model.
        seconds: Time spent answering.
    """

    questions: int = 0
    remembered: int = 0
    forwards: int = 0
    seconds: float = 0.0

    @property
    def forwards_per_second(self) -> float:
        """Masked images per second."""
        return self.forwards / self.seconds if self.seconds else 0.0


class Probe:
    """Answers how confident a model is when it sees only parts of images.

    Args:
        net: The classifier.
        images: Anything that :func:`suffice.open_images` takes; all of them are held in memory, ready to be masked.
        targets: The classes asked about: None (predicted on the whole image), an index or label for all, or one per
            image.
        baseline: What shows where pixels are hidden; see :func:`suffice.perturb.make_baseline`.
        grid: Cells a side for questions about regions, or a :class:`Grid`.
        cells: ``"hard"`` or ``"soft"``; see :class:`suffice.perturb.RegionMasks`.
        batch_size: Masked images per forward, or ``"auto"``; halved when memory runs out.
        precision: ``"fp32"``, ``"tf32"``, ``"bf16"`` or ``"fp16"``; scores stay in fp32.
        compile: Compile the model; worth it for long work on a GPU.
        channels_last: Memory layout; ``"auto"`` where it is faster.
        seed: Seed of random baselines.
        remember: Most answers about regions to keep; 0 to keep none.
        ids: Identities of the images, for random baselines; default: by their pixels.
        output: Answer with the ``"score"`` of the classifier (softmax unless told otherwise), or with the ``"logit"``.
        forwarder: Use this forwarder (of the same classifier) and its settings, so that several probes compile once.

    Attributes:
        targets: Class asked about, [N] int64.
        whole: Confidence on the whole images, [N] float32.
        forwards: Masked images of each image put through the model, [N] int64.
        counters: What the probe did, over all images.

    Example:
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(17, 24), (30,)], grid=7)          # decides by cells 17 and 24, or by cell 30
        >>> probe = Probe(oracle.classifier(56), oracle.image(56), targets=1, baseline="black")
        >>> regions = probe.grid.from_cells([(17, 24), (17,), (30,)])
        >>> probe.ask(torch.zeros(3, dtype=torch.long), regions)
        tensor([0.9800, 0.0200, 0.9800])
        >>> _ = probe.ask(0, regions)                          # nothing is asked twice
        >>> probe.counters.questions, probe.counters.remembered, probe.counters.forwards
        (6, 3, 3)
    """

    def __init__(
        self,
        net: Classifier,
        images: Any,
        targets: Targets = None,
        *,
        baseline: Baseline = "blur",
        grid: int | Grid = 7,
        cells: Cells = "hard",
        batch_size: int | Literal["auto"] = "auto",
        precision: Precision = "fp32",
        compile: bool = False,
        channels_last: bool | Literal["auto"] = "auto",
        seed: int = 0,
        remember: int = 1 << 23,
        ids: Sequence[str] | None = None,
        output: Literal["score", "logit"] = "score",
        forwarder: Forwarder | None = None,
    ) -> None:
        if output not in ("score", "logit"):
            raise OptionError(f"output={output!r}; it can be 'score' or 'logit'.")
        self.net, self.output = net, output
        self.grid = grid if isinstance(grid, Grid) else Grid(grid)
        self.cells = cells
        self.forwarder = forwarder or Forwarder(
            net, batch_size=batch_size, precision=precision, compile=compile, channels_last=channels_last
        )
        self._blend = self.forwarder.fused(_blend)
        self.counters = Counters()
        self.memory = Memory(remember)
        self.baseline, self.seed = baseline, seed
        if self.grid.side > min(net.size):
            side, (height, width) = self.grid.side, net.size
            raise OptionError(f"A {side}×{side} grid does not fit {height}×{width} pixels.")

        pixels = net.prepare(images)
        shape = (*net.size, 3) if self.forwarder.channels_last else (3, *net.size)
        self._shown = torch.empty(len(pixels), *shape, dtype=self.forwarder.dtype, device=self.forwarder.device)
        self._hidden = torch.empty_like(self._shown)
        self.targets = torch.zeros(len(pixels), dtype=torch.long, device=self.forwarder.device)
        self.whole = torch.zeros(len(pixels), device=self.forwarder.device)
        self.forwards = torch.zeros(len(pixels), dtype=torch.long, device=self.forwarder.device)
        self.exchange(torch.arange(len(pixels)), pixels, targets, ids=ids)

    def exchange(
        self, places: Tensor, pixels: Tensor, targets: Targets = None, *, ids: Sequence[str] | None = None
    ) -> None:
        """Put other images into some places; what was answered about the old ones is forgotten.

        Args:
            places: Which images to replace, [M] int64.
            pixels: The new ones, [M, 3, H, W] in [0, 1].
            targets: Their targets, as in the constructor.
            ids: Their identities, for random baselines.
        """
        places = places.to(self.forwarder.device)
        pixels = pixels.to(self.forwarder.device)
        hidden = make_baseline(self.baseline, pixels, mean=self.net.mean, ids=ids, seed=self.seed)
        self._shown[places], self._hidden[places] = self._layout(pixels), self._layout(hidden)
        scores = self._whole_scores(places)
        self.targets[places] = self.net.targets(targets, scores)
        self.whole[places] = scores.gather(1, self.targets[places][:, None])[:, 0]
        self.forwards[places] = 0
        self.memory.forget(places)

    def __len__(self) -> int:
        return len(self._shown)

    def ask(self, index: int | Tensor, questions: Questions) -> Tensor:
        """Ask for the confidence of the target when only some pixels of an image are shown.

        Args:
            index: Which image each question is about, [K] int64, or one number for all.
            questions: Regions, [K] int64 bit words ([K, words] for grids beyond 8×8); float masks [K, h, w] in [0, 1],
                1 = shown, enlarged bilinearly where smaller than the image; or any :class:`suffice.perturb.Masks`, such
                as :class:`suffice.perturb.RankMasks`.

        Returns:
            Confidence [K], float32, on the device of ``questions`` (of the model for masks made on demand).
        """
        started = time.perf_counter()
        device = questions.device if isinstance(questions, Tensor) else self.forwarder.device
        index = self._image_index(index, len(questions))
        if isinstance(questions, Tensor) and not questions.is_floating_point():
            answers = self._ask_regions(index, questions.to(self.forwarder.device))
        else:
            masks = FloatMasks(questions) if isinstance(questions, Tensor) else questions
            answers = self._forward(index, masks)
        answers = answers.to(device)
        if self.forwarder.device.type == "cuda":
            torch.cuda.synchronize(self.forwarder.device)
        self.counters.questions += len(index)
        self.counters.seconds += time.perf_counter() - started
        return answers

    def _ask_regions(self, index: Tensor, regions: Tensor) -> Tensor:
        keys, place = distinct(index, self.grid.as_words(regions))
        known, values = self.memory.look_up(keys)
        unknown = (~known).nonzero().flatten()
        new = keys.take(unknown)
        answers = self._forward(new.columns[:, 0], RegionMasks(self._regions(new), self.grid, self.cells))
        values[unknown] = answers
        if self.memory.limit:
            self.memory.store(new, answers)
        self.counters.remembered += len(index) - len(unknown)
        return values[place]

    @torch.no_grad()
    def _forward(self, index: Tensor, masks: Masks) -> Tensor:
        """Confidence [K] for masks of images, batch by batch."""
        answers = torch.empty(len(index), device=self.forwarder.device)
        start = 0
        while start < len(index):
            rows = slice(start, min(start + self.forwarder.batch_size, len(index)))
            images = index[rows]
            try:
                scores = self._scores(images, self._mask(masks, rows))
            except RuntimeError as error:  # out of memory is one, on the GPU and on the CPU
                self.forwarder.make_room(error)
                continue
            answers[rows] = scores.gather(1, self.targets[images][:, None])[:, 0]
            start = rows.stop
        self.counters.forwards += len(index)
        self.forwards += torch.bincount(index, minlength=len(self))
        return answers

    def _mask(self, masks: Masks, rows: slice) -> Tensor:
        """Some masks, [B, H, W]; hard cells, [B, side, side], are filled while blending."""
        if isinstance(masks, RegionMasks) and masks.cells == "hard":
            return masks.shown(rows, self.forwarder.device)
        return masks.rows(rows, self.net.size, self.forwarder.device)

    def _scores(self, images: Tensor, mask: Tensor) -> Tensor:
        """Scores [B, classes] of one batch of masked images."""
        images_, mask = self.forwarder.padded(images), self.forwarder.padded(mask)
        inputs = self._blend(self._shown, self._hidden, images_, mask, self.forwarder.channels_last)
        logits = self.forwarder.logits(inputs)[: len(images)]
        return logits if self.output == "logit" else self.net.scores(logits)

    def _layout(self, pixels: Tensor) -> Tensor:
        """Normalize images, in the layout from which batches are blended without another copy."""
        normalized = self.net.normalize(pixels).to(self.forwarder.dtype)
        return normalized.permute(0, 2, 3, 1) if self.forwarder.channels_last else normalized

    def _whole_scores(self, places: Tensor) -> Tensor:
        """Scores [M, classes] on whole images, by the same forwarder as everything they are compared with."""
        scores = []
        start = 0
        while start < len(places):
            rows = places[start : start + self.forwarder.batch_size]
            everything = torch.ones(len(rows), self.grid.side, self.grid.side, dtype=torch.bool, device=rows.device)
            try:
                scores.append(self._scores(rows, everything))
            except RuntimeError as error:
                self.forwarder.make_room(error)
                continue
            start += len(rows)
        return torch.cat(scores)

    def _regions(self, keys: Keys) -> Tensor:
        return keys.columns[:, 1] if self.grid.words == 1 else keys.columns[:, 1:]

    def _image_index(self, index: int | Tensor, count: int) -> Tensor:
        if not isinstance(index, Tensor):
            index = torch.full((count,), index, dtype=torch.long)
        if index.dtype != torch.long or index.shape != (count,):
            raise OptionError(
                f"Expected one image index per question, int64 [{count}]; got {index.dtype} {list(index.shape)}."
            )
        if count and not (int(index.min()) >= 0 and int(index.max()) < len(self)):
            raise OptionError(
                f"The probe holds images 0 to {len(self) - 1}; asked were {int(index.min())} to {int(index.max())}."
            )
        return index.to(self.forwarder.device)


def _blend(shown: Tensor, hidden: Tensor, images: Tensor, mask: Tensor, channels_last: bool) -> Tensor:
    """Show images where the mask is 1 and their baselines where it is 0.

    Normalization is affine, so blending normalized images is blending pixels and normalizing then.

    Args:
        shown: Normalized images, [N, 3, H, W], or [N, H, W, 3] where ``channels_last``.
        hidden: Their normalized baselines, alike.
        images: Which image each row of the batch is about, [B] int64.
        mask: Bool or float [B, H, W]; bool [B, side, side] for the cells of a grid.
        channels_last: The layout of images.

    Returns:
        Inputs [B, 3, H, W].
    """
    size = shown.shape[1:3] if channels_last else shown.shape[2:4]
    if mask.dtype == torch.bool and mask.shape[1:] != size:
        mask = fill_cells(mask, (size[0], size[1]))
    mask = mask.unsqueeze(-1 if channels_last else 1)
    if mask.dtype == torch.bool:
        blended = torch.where(mask, shown[images], hidden[images])
    else:
        blended = torch.lerp(hidden[images], shown[images], mask.to(shown.dtype))
    return blended.permute(0, 3, 1, 2) if channels_last else blended
