"""Train a network: ``train(name, data, recipe)``."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import nn

from suffice.errors import OptionError
from suffice.options import Count, check_options
from suffice.zoo.training.checkpoint import read_checkpoint, write_checkpoint
from suffice.zoo.training.data import TrainingData
from suffice.zoo.training.distill import Teacher
from suffice.zoo.training.interrupt import finishing_steps
from suffice.zoo.training.loop import Loop, Progress, Stopwatch, accuracy, distilled_training
from suffice.zoo.training.networks import build_network
from suffice.zoo.training.recipe import Recipe

ROWS = 10  # rows of the history, each with a look at validation images
LOOKS = 50  # the same where a run may end early
LOOK = 2_000  # at most so many of them
TICK = 1.0  # seconds between two reports
MOST = 5_000  # training images that the training accuracy is taken on


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained network and how it came about.

    Attributes:
        name: Its architecture.
        module: The network, in evaluation mode.
        recipe: How it was trained.
        history: Ten rows from start to end, with accuracies on up to 2,000 validation images.
        validation_accuracy: Share of right answers on the validation images.
        test_accuracy: The same on the test images; None where there are none.
        training_accuracy: The same on (up to 5,000) training images without augmentation, against the labels that
            it was trained with.
        seconds: Time that training took, without validation.
        data: Name of the data set.
        classes: Names of its classes.
        mean: Of the normalization.
        std: Of the normalization.
        size: Height and width of the images.
    """

    name: str
    module: nn.Module = field(repr=False)
    recipe: Recipe
    history: tuple[Progress, ...] = field(repr=False)
    validation_accuracy: float
    test_accuracy: float | None
    training_accuracy: float
    seconds: float
    data: str
    classes: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    size: tuple[int, int]

    @property
    def accuracy(self) -> float:
        """On the test images if there are any, else on the validation images."""
        return self.validation_accuracy if self.test_accuracy is None else self.test_accuracy

    @property
    def parameters(self) -> int:
        """Number of parameters."""
        return sum(p.numel() for p in self.module.parameters())

    def as_teacher(self) -> Teacher:
        """For another network to learn from."""
        device = next(self.module.parameters()).device
        return Teacher(self.module, self.classes, self.mean, self.std, self.name, device)


def train(
    network: str | nn.Module,
    data: TrainingData,
    recipe: Recipe | None = None,
    *,
    name: str | None = None,
    teacher: Teacher | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: Count = 500,
    resume: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
    stops: Collection[int] = (),
    on_stop: Callable[[Trained], None] | None = None,
    pause: Callable[[], bool] | None = None,
) -> Trained:
    """Train a network on data that may serve many runs.

    Args:
        network: Name of one of the zoo's architectures, ``"timm/NAME"``, or a module (trained in place).
        data: What to train on, on the device to train on.
        recipe: How; default: the scenes' recipe.
        name: What to call it; default: the given name, or the class of the module.
        teacher: Whom to learn from; goes with ``Recipe(teacher=…)``.
        checkpoint: File that the state is saved to now and then, and on Ctrl-C.
        checkpoint_every: Steps between two savings.
        resume: Go on from that file. On the CPU the weights come out as if the run had never stopped, bit for bit.
        on_progress: Called about once a second, and with the validation accuracy ten times in a run (50 times
            where it may end early).
        stops: Steps at which ``on_stop`` is called.
        on_stop: Called with what a run with ``Recipe(stop=…)`` of that step ends with, while this one goes on: shorter
            runs come for nothing. Its module changes afterwards.
        pause: Asked after every step but the last; once it says so, the run ends as on Ctrl-C: ``resume=True`` goes on
            with it later.

    Returns:
        The network and its history.

    Raises:
        OptionError: Recipe, data and teacher do not fit together, or training diverges.
        CheckpointError: The checkpoint is of another run.
        KeyboardInterrupt: After the state was saved.

    Example:
        >>> from suffice.zoo.training.data import Examples
        >>> _ = torch.manual_seed(0)
        >>> labels = torch.arange(64) % 2
        >>> pixels = (labels * 200).byte().view(-1, 1, 1, 1).expand(-1, 3, 4, 4)  # black and bright
        >>> data = TrainingData(Examples(pixels, labels), Examples(pixels, labels), ("dark", "bright"))
        >>> net = nn.Sequential(nn.Flatten(), nn.Linear(48, 2))
        >>> train(net, data, Recipe(steps=30, batch=16, lr=0.02)).accuracy
        1.0
    """
    recipe = recipe or Recipe()
    check_options({"checkpoint_every": checkpoint_every}, train)
    if resume and checkpoint is None:
        raise OptionError("resume=True needs checkpoint=, the file to go on from.")
    if pause is not None and checkpoint is None:
        raise OptionError("pause= needs checkpoint=, the file that the state is saved to.")
    if isinstance(network, str):
        name = name or network
        module = build_network(network, classes=len(data.classes), size=data.size, seed=recipe.seed)
    else:
        name, module = name or type(network).__name__, network
    if recipe.permute_labels:
        data = data.with_permuted_labels(recipe.seed)

    loop = Loop(module.to(data.device).train(), data, recipe, teacher)
    path = None if checkpoint is None else Path(checkpoint)
    if resume and path is not None:
        loop.restore(read_checkpoint(path, name, recipe, data))
    cuda = [data.device] if data.device.type == "cuda" else []
    with (
        torch.random.fork_rng(devices=cuda),
        distilled_training(module, wanted=teacher is not None),
        finishing_steps() as interrupted,
    ):
        told = on_stop or (lambda _: None)
        wanted = stops if on_stop is not None else ()
        _run(
            loop, name, path, checkpoint_every, lambda: interrupted() or (pause is not None and _paused(loop, pause)),
            on_progress or (lambda _: None), wanted,
            lambda: told(_trained(loop, name, replace(recipe, stop=loop.step))),
        )  # fmt: skip
    loop.result.eval()
    return _trained(loop, name, recipe)


def _paused(loop: Loop, pause: Callable[[], bool]) -> bool:
    """Whether to go on another time. A run that has ended is better off with its result."""
    return loop.step < loop.steps and pause()


def _trained(loop: Loop, name: str, recipe: Recipe) -> Trained:
    """What a run has come to."""
    data, result = loop.data, loop.result
    return Trained(
        name=name,
        module=result,
        recipe=recipe,
        history=tuple(loop.history),
        validation_accuracy=accuracy(result, data.validation, loop.normalize),
        test_accuracy=None if data.test is None else accuracy(result, data.test, loop.normalize),
        training_accuracy=accuracy(result, data.train.spread(MOST), loop.normalize, size=data.size),
        seconds=loop.seconds,
        data=data.name,
        classes=data.classes,
        mean=data.mean,
        std=data.std,
        size=data.size,
    )


def _run(
    loop: Loop,
    name: str,
    path: Path | None,
    checkpoint_every: int,
    interrupted: Callable[[], bool],
    on_progress: Callable[[Progress], None],
    stops: Collection[int],
    at_stop: Callable[[], None],
) -> None:
    """All steps that are left."""
    enough = loop.recipe.enough
    row_every = max(1, loop.steps // (ROWS if enough is None else LOOKS))
    # A look costs less than a tenth of the training between two of them, also on a CPU.
    look = loop.data.validation.spread(min(LOOK, max(200, row_every * loop.batch // 4)))
    before, first = loop.seconds, loop.step
    watch = Stopwatch()
    reported = time.perf_counter()
    while loop.step < loop.steps and not loop.knows(enough):
        loop.advance()
        if loop.step % row_every == 0 or loop.step == loop.steps:
            loop.wait()  # or validation would pay for the steps that are still in the GPU's queue
            seconds = watch.read()
            row = loop.progress(seconds, first, accuracy(loop.result, look, loop.normalize))
            watch.skip()
            loop.close_row(row)
            on_progress(row)
        elif time.perf_counter() - reported > TICK:
            on_progress(loop.progress(watch.read(), first))
            reported = time.perf_counter()
        if loop.step in stops:
            loop.wait()
            loop.seconds = before + watch.read()
            at_stop()
            watch.skip()
        stop = interrupted()
        if path is not None and (stop or (loop.step % checkpoint_every == 0 and loop.step < loop.steps)):
            loop.seconds = before + watch.read()
            write_checkpoint(path, name, loop)
            watch.skip()
        if stop:
            raise KeyboardInterrupt
    loop.seconds = before + watch.read()
