"""The loop: one step after the other, each a function of the weights, the recipe and the number of the step."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from suffice.errors import OptionError
from suffice.vision.anatomy.preserve import evaluating
from suffice.vision.outputs import class_scores
from suffice.zoo.training.augment import augmented, mix, shrunk
from suffice.zoo.training.capture import CapturedStep
from suffice.zoo.training.data import Examples, Normalize, TrainingData
from suffice.zoo.training.distill import Teacher, distillation_loss, heads
from suffice.zoo.training.optimize import MovingAverage, optimizer_for, set_learning_rate
from suffice.zoo.training.recipe import Recipe


@dataclass(frozen=True)
class Progress:
    """Where a run stands.

    Attributes:
        step: Steps done.
        steps: Steps in all.
        loss: Mean loss since the last row of the history.
        accuracy: Share of right answers on training batches, as augmented, since then.
        validation: Share of right answers on the validation images; None between two rows of the history.
        rate: Training images per second.
        remaining: Seconds left, by that rate.
    """

    step: int
    steps: int
    loss: float
    accuracy: float
    validation: float | None
    rate: float
    remaining: float


class Loop:
    """A run in progress.

    Randomness is drawn anew for each step from (seed, step), so the state of a run is its weights, the optimizer and
    a number; a run that was stopped and resumed on the CPU ends with the same bits.

    Args:
        module: The network, on the device of the data; changed in place.
        data: What it is trained on.
        recipe: How.
        teacher: Whom it learns from; needed if the recipe names one.
    """

    def __init__(self, module: nn.Module, data: TrainingData, recipe: Recipe, teacher: Teacher | None = None) -> None:
        if (teacher is None) != (recipe.teacher is None):
            raise OptionError(
                f"The recipe says teacher={recipe.teacher!r}, but teacher= is "
                f"{'not given' if teacher is None else teacher.name}; give both or none."
            )
        if recipe.crop >= min(data.size):
            raise OptionError(f"crop= is {recipe.crop}; expected less than the size of the images, {min(data.size)}.")
        if teacher is not None:
            teacher.check(data)
        self.module, self.data, self.recipe, self.teacher = module, data, recipe, teacher
        self.device = data.device
        self.layout = torch.channels_last if recipe.channels_last else torch.contiguous_format
        if recipe.channels_last:
            module.to(memory_format=self.layout)
        self.batch = recipe.batch_of(len(data.train))
        self.total = recipe.total_steps(len(data.train))
        self.steps = min(self.total, recipe.stop or self.total)
        self.step = 0
        self.history: list[Progress] = []
        self.seconds = 0.0
        self.optimizer = optimizer_for(module, recipe)
        self.average = MovingAverage(module, recipe.ema) if recipe.ema else None
        self.normalize = Normalize(data.mean, data.std, self.device)
        # Sums of losses and right answers since the last row; on the device, as reading a number makes a GPU wait.
        self.tally = torch.zeros(2, device=self.device)
        self.seen = 0
        self._forward = torch.compile(module) if recipe.compile else module
        self._generator = torch.Generator(self.device)
        self._share = torch.ones((), device=self.device)
        self._captured = CapturedStep(self._learn, self.device, (self._generator,))
        self._epoch = -1
        self._order = torch.empty(0)

    @property
    def result(self) -> nn.Module:
        """The network that counts: the moving average if there is one."""
        return self.module if self.average is None else self.average.module

    def advance(self) -> None:
        """Do one step."""
        recipe = self.recipe
        seed = recipe.seed_of("step", self.step)
        self._generator.manual_seed(seed)
        self._seed_network(seed)

        share = np.random.default_rng(seed).beta(recipe.mixup, recipe.mixup) if recipe.mixup else 1.0
        self._share.fill_(float(share))
        set_learning_rate(self.optimizer, recipe.learning_rate(self.step, self.total))
        self._captured(self._batch(), self._share)
        if self.average is not None:
            self.average.update(self.module, self.step)
        self.seen += self.batch
        self.step += 1

    def _learn(self, index: Tensor, share: Tensor) -> None:
        """Learn from one batch. Nothing in here may wait for the device, or depend on the number of the step.

        Args:
            index: Which training images, int64 [B].
            share: How much of its own an image keeps where images are mixed, scalar.
        """
        recipe = self.recipe
        pixels = self.data.train.pixels[index]
        images = augmented(pixels, recipe, self.normalize.mean, self._generator, self.data.size)
        targets = F.one_hot(self.data.train.labels[index], len(self.data.classes)).float()
        if recipe.mixup:
            images, targets = mix(images, targets, share)
        with self._autocast():
            logits, copied = heads(self._forward(self.normalize(images).contiguous(memory_format=self.layout)))
            wanted = self.teacher(images) if self.teacher is not None else None
        loss = F.cross_entropy(logits, targets, label_smoothing=recipe.smoothing)
        if wanted is not None:
            weight = recipe.distill_weight
            loss = (1 - weight) * loss + weight * distillation_loss(copied, wanted, recipe)

        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if recipe.clip is not None:
            nn.utils.clip_grad_norm_(self.module.parameters(), recipe.clip)
        self.optimizer.step()
        right = (logits.argmax(1) == targets.argmax(1)).sum()
        self.tally += torch.stack((loss.detach() * self.batch, right))

    def progress(self, seconds: float, since: int, validation: float | None = None) -> Progress:
        """Where the run stands, after so many seconds of training since a step."""
        loss, right = self.tally.tolist()
        if not math.isfinite(loss):
            raise OptionError(
                f"The loss is {loss} after step {self.step} of {self.steps}: training diverged. Try a lower learning "
                f"rate than {self.recipe.lr:g}, or fp32."
            )
        rate = (self.step - since) * self.batch / max(seconds, 1e-9)
        remaining = (self.steps - self.step) * self.batch / rate if rate else math.inf
        return Progress(self.step, self.steps, loss / self.seen, right / self.seen, validation, rate, remaining)

    def knows(self, enough: float | None) -> bool:
        """Whether the latest row of the history has this share of right answers on training images."""
        return enough is not None and bool(self.history) and self.history[-1].accuracy >= enough

    def wait(self) -> None:
        """Wait until the device has done all steps so far."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def close_row(self, progress: Progress) -> None:
        """Put a row into the history and begin the next one."""
        self.history.append(progress)
        self.tally.zero_()
        self.seen = 0

    def state(self) -> dict[str, Any]:
        """All that is needed to go on from here, as plain data."""
        return {
            "step": self.step,
            "module": self.module.state_dict(),
            "average": None if self.average is None else self.average.module.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "tally": self.tally,
            "seen": self.seen,
            "history": [asdict(row) for row in self.history],
            "seconds": self.seconds,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state of the same run."""
        self.module.load_state_dict(state["module"])
        if self.average is not None:
            self.average.module.load_state_dict(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.tally.copy_(state["tally"])
        self.history = [Progress(**row) for row in state["history"]]
        self.step, self.seen, self.seconds = state["step"], state["seen"], state["seconds"]

    def _seed_network(self, seed: int) -> None:
        """Seed dropout and whatever else draws inside the network."""
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            with torch.cuda.device(self.device):
                torch.cuda.manual_seed(seed)

    def _batch(self) -> Tensor:
        """Which images the step sees [B]: the next ones in an order that is drawn anew for each epoch."""
        epoch, position = divmod(self.step, len(self.data.train) // self.batch)
        if epoch != self._epoch:
            generator = torch.Generator(self.device).manual_seed(self.recipe.seed_of("epoch", epoch))
            self._order = torch.randperm(len(self.data.train), generator=generator, device=self.device)
            self._epoch = epoch
        return self._order[position * self.batch : (position + 1) * self.batch]

    def _autocast(self) -> torch.autocast:
        rough = self.recipe.precision == "bf16" or (self.recipe.precision == "auto" and self.device.type == "cuda")
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=rough)


@torch.no_grad()
def accuracy(
    module: nn.Module,
    examples: Examples,
    normalize: Normalize,
    batch: int = 1000,
    size: tuple[int, int] | None = None,
) -> float:
    """Share of right answers, in evaluation mode and full precision; the module's mode is put back.

    Args:
        module: The network.
        examples: On the device of the network.
        normalize: Its normalization.
        batch: Images per forward.
        size: Height and width that the images are brought to; default: their own.
    """
    right = torch.zeros((), dtype=torch.int64, device=examples.labels.device)
    with evaluating(module):
        for start in range(0, len(examples), batch):
            some = examples[start : start + batch]
            pixels = some.pixels.float() / 255
            scores = class_scores(module(normalize(pixels if size is None else shrunk(pixels, size))))
            right += (scores.argmax(1) == some.labels).sum()
    return int(right) / len(examples)


@contextlib.contextmanager
def distilled_training(module: nn.Module, wanted: bool) -> Iterator[None]:
    """Let timm's distilled networks give both heads in training, for as long as they have a teacher."""
    switch: Any = getattr(module, "set_distilled_training", None)
    if switch is None or not wanted:
        yield
        return
    switch(True)
    try:
        yield
    finally:
        switch(False)


class Stopwatch:
    """Seconds that pass while it runs; validation and saving are not training."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._since = time.perf_counter()

    def read(self) -> float:
        """Seconds so far."""
        now = time.perf_counter()
        self.seconds += now - self._since
        self._since = now
        return self.seconds

    def skip(self) -> None:
        """Do not count what passed since the last reading."""
        self._since = time.perf_counter()
