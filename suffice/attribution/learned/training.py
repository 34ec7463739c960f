"""Training of an explainer: one step after the other, each a function of the weights, the recipe and its number."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from suffice.attribution.learned.altering import alter, draw_alterations
from suffice.attribution.learned.checkpoint import read_checkpoint, write_checkpoint
from suffice.attribution.learned.explainer import Explainer
from suffice.attribution.learned.images import ExplainerImages, open_explainer_images
from suffice.attribution.learned.recipe import ExplainerRecipe
from suffice.errors import OptionError
from suffice.options import Count, check_options
from suffice.perturb import Runner
from suffice.perturb.runner import Precision
from suffice.vision import Classifier, Model, as_classifier
from suffice.vision.anatomy.preserve import preserved
from suffice.vision.identity import weights_hash
from suffice.zoo.training.interrupt import finishing_steps
from suffice.zoo.training.loop import Stopwatch

ROWS = 10  # rows of the history, each with a look at the images held out
LOOK = 200  # at most so many of them
TICK = 1.0  # seconds between two reports
COST = 2  # inputs of the model that an image takes: the explainer's own, and the masked one


@dataclass(frozen=True)
class ExplainerProgress:
    """Where a training stands.

    Attributes:
        step: Steps done.
        steps: Steps in all.
        loss: Mean loss on training batches since the last row of the history.
        validation: Mean loss on images held out; None between two rows, like the next two.
        confidence: There, geometric mean of the explained class's score under the mask.
        kept: There, mean of the masks.
        rate: Training images per second.
        remaining: Seconds left, by that rate.
    """

    step: int
    steps: int
    loss: float
    validation: float | None
    confidence: float | None
    kept: float | None
    rate: float
    remaining: float


@dataclass(frozen=True, eq=False)
class TrainedExplainer:
    """An explainer and how it came about.

    Attributes:
        explainer: The network.
        explained: Name of the explained model.
        weights: Hash of the explained model's weights.
        size: Height and width of its images.
        recipe: How it was trained.
        history: Rows from start to end.
        images: Name and number of the images it was trained on.
        ids: Identities of these images, int64 [N].
        seconds: Time that training took.
    """

    explainer: Explainer
    explained: str
    weights: str
    size: tuple[int, int]
    recipe: ExplainerRecipe
    history: tuple[ExplainerProgress, ...] = field(repr=False)
    images: dict[str, Any]
    ids: Tensor = field(repr=False)
    seconds: float

    def __repr__(self) -> str:
        """As records of results have it, where it was an option."""
        return f"TrainedExplainer(of {self.explained!r}, weights={weights_hash(self.explainer)!r})"


class ExplainerTraining:
    """A run in progress.

    The order of images is drawn anew for each epoch from (seed, epoch), so the state of a run is its weights, the
    optimizer and a number.
    """

    def __init__(self, explainer: Explainer, runner: Runner, images: ExplainerImages, recipe: ExplainerRecipe) -> None:
        self.explainer, self.images, self.recipe = explainer, images, recipe
        self.runner = runner.variant("gradients")
        head = list(explainer.head.parameters())
        self.parameters = head if recipe.trains == "head" else explainer.trained_parameters()
        self.optimizer = torch.optim.AdamW(self.parameters, lr=recipe.lr, weight_decay=recipe.weight_decay)
        self.train = images.train
        self.batch = min(recipe.batch, len(self.train))
        self.steps = recipe.total_steps(len(self.train))
        self.step, self.seconds, self.tally, self.seen = 0, 0.0, 0.0, 0
        self.history: list[ExplainerProgress] = []

    def advance(self) -> None:
        """Do one step."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.learning_rate(self.step, self.steps)
        rows = self._rows()
        altered = draw_alterations(len(rows), self.recipe.seed_of("altered", self.step)) if self.recipe.alters else None
        parts = list(self.runner.run(len(rows), lambda some: self._gradients(rows, altered, some), cost=COST))
        for number, parameter in enumerate(self.parameters):
            slopes = [gradients[number] for _, gradients in parts]
            parameter.grad = torch.stack(slopes).sum(dim=0) / len(rows)
        self.optimizer.step()
        self.tally += sum(loss for loss, _ in parts)
        self.seen += len(rows)
        self.step += 1

    def _gradients(self, rows: Tensor, altered: Tensor | None, some: slice) -> tuple[float, tuple[Tensor, ...]]:
        """Sum of the losses of some images, and its gradients, which are added up outside: memory may run out here."""
        pixels, targets = self._some(rows[some])
        if altered is not None:
            pixels = alter(pixels, altered[some])
            if self.recipe.explains == "predicted":
                targets = self.runner.scores(pixels).argmax(dim=1)
        with torch.enable_grad():
            objective = self.recipe.objective_of(self.step, self.steps)
            losses = objective(self.runner, pixels, targets, self.explainer(pixels)).total
            gradients = torch.autograd.grad(losses.sum(), self.parameters)
        return float(losses.detach().sum()), gradients

    def look(self, seconds: float, since: int) -> ExplainerProgress:
        """Where the run stands, with a look at the images held out."""
        rows = self.images.to_look_at(LOOK)

        def some(part: slice) -> Tensor:
            pixels, targets = self._some(rows[part])
            found = self.recipe.objective(self.runner, pixels, targets, self.explainer(pixels))
            return torch.stack([found.total, found.prediction, found.kept])

        found = torch.cat(list(self.runner.run(len(rows), some, cost=COST)), dim=1)
        loss, prediction, kept = found.mean(dim=1).tolist()
        return self.progress(seconds, since, (loss, math.exp(-prediction), kept))

    def progress(
        self, seconds: float, since: int, seen: tuple[float | None, float | None, float | None] = (None, None, None)
    ) -> ExplainerProgress:
        """Where the run stands, after so many seconds since a step."""
        loss = self.tally / max(self.seen, 1)
        if not math.isfinite(loss):
            raise OptionError(
                f"The loss is {loss} after step {self.step} of {self.steps}: training diverged. Try a lower learning "
                f"rate than {self.recipe.lr:g}."
            )
        rate = (self.step - since) * self.batch / max(seconds, 1e-9)
        remaining = (self.steps - self.step) * self.batch / rate if rate else math.inf
        return ExplainerProgress(self.step, self.steps, loss, *seen, rate, remaining)

    def close_row(self, row: ExplainerProgress) -> None:
        """Put a row into the history and begin the next one."""
        self.history.append(row)
        self.tally, self.seen = 0.0, 0

    def state(self) -> dict[str, Any]:
        """All that is needed to go on from here, as plain data."""
        return {
            "step": self.step,
            "explainer": self.explainer.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "tally": self.tally,
            "seen": self.seen,
            "history": [asdict(row) for row in self.history],
            "seconds": self.seconds,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state of the same run."""
        self.explainer.load_state_dict(state["explainer"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.history = [ExplainerProgress(**row) for row in state["history"]]
        self.step, self.tally, self.seen = state["step"], state["tally"], state["seen"]
        self.seconds = state["seconds"]

    def _rows(self) -> Tensor:
        """Which images the step sees: the next ones in an order that is drawn anew for each epoch."""
        epoch, position = divmod(self.step, len(self.train) // self.batch)
        generator = torch.Generator().manual_seed(self.recipe.seed_of("epoch", epoch))
        order = torch.randperm(len(self.train), generator=generator)
        return self.train[order[position * self.batch : (position + 1) * self.batch]]

    def _some(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        device = self.runner.device
        return self.images.pixels[rows].to(device).float() / 255, self.images.targets[rows].to(device)


def train_explainer(
    net: Model,
    images: Any,
    recipe: ExplainerRecipe | None = None,
    *,
    trunk: Classifier | None = None,
    never: Any = None,
    precision: Precision = "fp32",
    checkpoint: str | Path | None = None,
    checkpoint_every: Count = 100,
    resume: bool = False,
    on_progress: Callable[[ExplainerProgress], None] | None = None,
) -> TrainedExplainer:
    """Train an explainer of a classifier, which is left as it is.

    Args:
        net: The classifier to explain.
        images: Anything that :func:`suffice.open_images` takes, or what :func:`open_explainer_images` made of it.
        recipe: How.
        trunk: The classifier whose copy becomes the explainer; default: the explained one. Any architecture will do.
        never: Images that the explainer will be evaluated on; they are left out of training, by their content.
        precision: Of the explained model; the explainer itself is trained in its own.
        checkpoint: File that the state is saved to now and then, and on Ctrl-C.
        checkpoint_every: Steps between two savings.
        resume: Go on from that file.
        on_progress: Called about once a second, and ten times in a run with a look at images held out.

    Returns:
        The explainer, for :func:`save_explainer`, or as ``explainer=`` of the method ``eea``.

    Raises:
        OptionError: There are too few images, or training diverges.
        CheckpointError: The checkpoint is of another run.
        KeyboardInterrupt: After the state was saved.

    Example:
        >>> import suffice
        >>> net = suffice.load("zoo/resnet", device="cpu")
        >>> trained = train_explainer(net, "scenes:train[:40]", ExplainerRecipe(steps=2, batch=4))
        >>> trained.explainer.grid, len(trained.ids), trained.history[-1].step
        ((7, 7), 33, 2)
    """
    net, recipe = as_classifier(net), recipe or ExplainerRecipe()
    check_options({"checkpoint_every": checkpoint_every, "precision": precision}, train_explainer)
    if resume and checkpoint is None:
        raise OptionError("resume=True needs checkpoint=, the file to go on from.")
    runner = Runner(net, precision=precision)
    if not isinstance(images, ExplainerImages):
        images = open_explainer_images(runner, images, explains=recipe.explains, never=never)
    elif images.explains != recipe.explains:
        raise OptionError(
            f"The images were prepared with explains={images.explains!r}, the recipe has {recipe.explains!r}; write "
            f"open_explainer_images(…, explains={recipe.explains!r})."
        )
    explainer = Explainer(trunk or net, seed=recipe.seed_of("head")).to(net.device)
    run = ExplainerTraining(explainer, runner, images, recipe)
    about = {
        "explained": net.name, "weights": weights_hash(net.module), "trunk": weights_hash(explainer.trunk.module),
        "recipe": recipe.to_json(), "images": images.fingerprint(),
    }  # fmt: skip
    path = None if checkpoint is None else Path(checkpoint)
    if resume and path is not None:
        run.restore(read_checkpoint(path, about, net.device))
    explainer.requires_grad_(False)
    for parameter in run.parameters:
        parameter.requires_grad_()
    # The explained model is frozen; it is preserved once here, so that it need not be for every step.
    with torch.inference_mode(False), torch.no_grad(), preserved(net.module, frozen=True), runner.arithmetic():
        _run(run, path, about, checkpoint_every, on_progress or (lambda _: None))
    facts = {"name": images.name, "trained on": len(run.train), "held out": len(images.validation)}
    facts |= {"left out": images.left_out, "skipped": len(images.skipped)}
    explainer.requires_grad_(False)
    return TrainedExplainer(
        explainer,
        net.name,
        about["weights"],
        net.size,
        recipe,
        tuple(run.history),
        facts,
        images.ids[run.train],
        run.seconds,
    )


def _run(
    run: ExplainerTraining,
    path: Path | None,
    about: dict[str, str],
    checkpoint_every: int,
    on_progress: Callable[[ExplainerProgress], None],
) -> None:
    """All steps that are left."""
    row_every = max(1, run.steps // ROWS)
    before, first = run.seconds, run.step
    watch, reported = Stopwatch(), time.perf_counter()
    with finishing_steps() as interrupted:
        while run.step < run.steps:
            run.advance()
            if run.step % row_every == 0 or run.step == run.steps:
                row = run.look(watch.read(), first)
                watch.skip()
                run.close_row(row)
                on_progress(row)
            elif time.perf_counter() - reported > TICK:
                on_progress(run.progress(watch.read(), first))
                reported = time.perf_counter()
            run.seconds = before + watch.read()
            stop = interrupted()
            if path is not None and (stop or (run.step % checkpoint_every == 0 and run.step < run.steps)):
                write_checkpoint(path, {"about": about, **run.state()})
                watch.skip()
            if stop:
                raise KeyboardInterrupt
