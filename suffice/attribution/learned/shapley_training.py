"""Training of learned Shapley values: first the surrogate, then the explainer."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import kl_div

from suffice.attribution.learned.altering import alter, draw_alterations
from suffice.attribution.learned.checkpoint import read_checkpoint
from suffice.attribution.learned.explainer import Trunk
from suffice.attribution.learned.images import ExplainerImages, open_explainer_images
from suffice.attribution.learned.shapley import (
    LearnedShapley,
    ShapleyExplainer,
    ShapleyRecipe,
    additive,
    kernel_sets,
)
from suffice.attribution.learned.shapley_run import OnProgress, ShapleyProgress, ShapleyRun
from suffice.errors import OptionError
from suffice.options import Count, check_options
from suffice.perturb import Runner, enlarge, make_baseline
from suffice.perturb.runner import Precision
from suffice.vision import Classifier, Model, as_classifier
from suffice.vision.anatomy.copies import forget_computed, working_copy
from suffice.vision.identity import weights_hash

LOOK = 100  # images held out that are looked at on the way, at most


def train_shapley(
    net: Model,
    images: Any,
    recipe: ShapleyRecipe | None = None,
    *,
    trunk: Classifier | None = None,
    never: Any = None,
    precision: Precision = "fp32",
    checkpoint: str | Path | None = None,
    checkpoint_every: Count = 100,
    resume: bool = False,
    on_progress: OnProgress | None = None,
) -> LearnedShapley:
    """Train a surrogate of a classifier and an explainer of its Shapley values.

    Args:
        net: The classifier, which is left as it is.
        images: Anything that :func:`suffice.open_images` takes, or what :func:`open_explainer_images` made of it.
        recipe: How.
        trunk: The classifier whose copy becomes the explainer, and whose last feature maps or tokens are the cells;
            default: the surrogate.
        never: Images that the explainer will be evaluated on; they are left out of training, by their content.
        precision: In which the surrogate is asked about sets. The weights of what is trained stay in fp32; its matrix
            products are in bf16 where this is ``"bf16"``, and as in ``"tf32"`` where it is ``"tf32"`` or ``"fp16"``.
        checkpoint: File that the state is saved to now and then, and on Ctrl-C.
        checkpoint_every: Steps between two savings.
        resume: Go on from that file.
        on_progress: Called ten times for each of the two networks, with a look at images held out.

    Raises:
        OptionError: The classifier scores by something else than softmax, there are too few images, or training
            diverges.
        CheckpointError: The checkpoint is of another run.
        KeyboardInterrupt: After the state was saved.

    Example:
        >>> import suffice
        >>> net = suffice.load("zoo/resnet", device="cpu")
        >>> recipe = ShapleyRecipe(surrogate_steps=1, steps=1, batch=2, sets=2)
        >>> learned = train_shapley(net, "scenes:train[:40]", recipe)
        >>> learned.values(torch.rand(1, 3, 56, 56)).shape
        torch.Size([1, 16, 7, 7])
    """
    net, recipe = as_classifier(net), recipe or ShapleyRecipe()
    if net.score != "softmax":
        raise OptionError(f"{net.name} scores by {net.score}; surrogates are trained to match softmax probabilities.")
    check_options({"checkpoint_every": checkpoint_every, "precision": precision}, train_shapley)
    if resume and checkpoint is None:
        raise OptionError("resume=True needs checkpoint=, the file to go on from.")
    runner, report = Runner(net), on_progress or (lambda _: None)
    if not isinstance(images, ExplainerImages):
        images = open_explainer_images(runner, images, never=never)
    grid = _cells(trunk or net, recipe)
    draws = _Draws(images, recipe, grid, net.device, precision == "bf16")
    about = {
        "weights": weights_hash(net.module), "trunk": weights_hash((trunk or net).module),
        "recipe": json.dumps(asdict(recipe)), "images": images.fingerprint(), "precision": precision,
    }  # fmt: skip
    path = None if checkpoint is None else Path(checkpoint)
    found = read_checkpoint(path, about, net.device) if resume and path is not None else None
    run = ShapleyRun(path, checkpoint_every, about, found, draws.generator, report)
    rounded = Runner(net, precision=precision if precision in ("fp32", "ieee") else "tf32")
    with torch.inference_mode(False), torch.no_grad(), rounded.arithmetic():
        surrogate, ended = _train_surrogate(runner, draws, run)
        classes = runner.scores(images.pixels[:1].float() / 255).shape[1]
        explainer = ShapleyExplainer(trunk or surrogate, classes, grid=recipe.grid, seed=recipe.seed)
        rows = _train_values(explainer.to(net.device), Runner(surrogate, precision=precision), draws, run)
    validation = {"surrogate": ended, "explainer": rows[-1].validation, "explained": rows[-1].explained}
    return LearnedShapley(
        net.name,
        weights_hash(net.module),
        surrogate,
        explainer.requires_grad_(False),
        recipe,
        tuple(row.loss for row in rows),
        images.ids[images.train],
        validation,
    )


def _cells(net: Classifier, recipe: ShapleyRecipe) -> tuple[int, int]:
    """Rows and columns of cells, which are positions of a trunk's last layer, or larger."""
    rows, columns = Trunk(net).grid
    if rows * columns < 2:
        raise OptionError(f"The last layer of {net.name} has one position, and so one cell; give another trunk.")
    if recipe.grid is None:
        return rows, columns
    if recipe.grid > min(rows, columns):
        raise OptionError(
            f"grid={recipe.grid}; the last layer of {net.name} has {rows}×{columns} positions, and cells cannot be "
            "smaller. Write a coarser grid, or give another trunk."
        )
    return recipe.grid, recipe.grid


class _Draws:
    """What is drawn at random: images to train on, alterations of them, and cells of them to show.

    Cells are drawn where the model is, from a seed that is drawn from the generator; so its state is all there is.
    What is trained on them is ``rough`` where its matrix products are in bf16.
    """

    def __init__(
        self, images: ExplainerImages, recipe: ShapleyRecipe, grid: tuple[int, int], device: torch.device, rough: bool
    ) -> None:
        self.images, self.recipe, self.grid, self.device, self.rough = images, recipe, grid, device, rough
        self.cells, self.pairs = grid[0] * grid[1], max(1, recipe.sets // 2)
        self.generator = torch.Generator().manual_seed(recipe.seed)

    def some(self) -> Tensor:
        """Positions of a batch of training images."""
        train, count = self.images.train, self.recipe.batch
        return train[torch.randint(0, len(train), (count,), generator=self.generator)]

    def arithmetic(self) -> torch.autocast:
        """In which the networks that are trained are run: gradients in bf16 keep the range of fp32, in fp16 not."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.rough)

    @property
    def held_out(self) -> Tensor:
        """Positions of images to look at on the way."""
        return self.images.to_look_at(LOOK)

    def pixels(self, rows: Tensor | slice) -> Tensor:
        """The images at some positions, [B, 3, H, W] in [0, 1]."""
        return self.images.pixels[rows].to(self.device).float() / 255

    def altered(self, pixels: Tensor) -> Tensor:
        """Training images as they are seen this time."""
        return alter(pixels, draw_alterations(len(pixels), self._seed())) if self.recipe.alters else pixels

    def any_sets(self, count: int, generator: torch.Generator | None = None) -> Tensor:
        """A set for each of so many images, all sizes as likely as each other, as published; bool [B, cells]."""
        generator = generator or self.next()
        share = torch.rand(count, 1, generator=generator, device=self.device)
        return torch.rand(count, self.cells, generator=generator, device=self.device) < share

    def sets_by_kernel(self, count: int, generator: torch.Generator | None = None) -> Tensor:
        """Several sets for each of so many images, bool [B, S, cells]; complements last."""
        parts = kernel_sets(count * self.pairs, self.cells, generator or self.next()).chunk(2)
        return torch.cat([part.view(count, self.pairs, self.cells) for part in parts], dim=1)

    def next(self) -> torch.Generator:
        """For the sets of a step."""
        return torch.Generator(self.device).manual_seed(self._seed())

    def fixed(self) -> torch.Generator:
        """For sets that are the same in every look."""
        return torch.Generator(self.device).manual_seed(self.recipe.seed + 1)

    def _seed(self) -> int:
        return int(torch.randint(2**62, (), generator=self.generator))


def _train_surrogate(runner: Runner, draws: _Draws, run: ShapleyRun) -> tuple[Classifier, float | None]:
    """A copy of the classifier that says of images with hidden cells what the classifier says of the whole ones.

    With its loss on images held out; None where there was nothing to train.
    """
    net, recipe = runner.net, draws.recipe
    module = working_copy(net.module)
    surrogate = net.with_module(module)
    parameters: list[Tensor] = [p.requires_grad_() for p in module.parameters() if p.is_floating_point()]
    if not recipe.surrogate_steps or not parameters:
        module.requires_grad_(False)
        return surrogate, None

    def loss(pixels: Tensor, shown: Tensor) -> Tensor:
        asked = show(pixels, shown, draws.grid, recipe.baseline, net)
        forget_computed(module)
        with draws.arithmetic():
            logits = surrogate.logits(surrogate.normalize(asked))
        return kl_div(logits.float().log_softmax(dim=1), runner.scores(pixels), reduction="batchmean")

    def step() -> Tensor:
        return loss(draws.altered(draws.pixels(draws.some())), draws.any_sets(recipe.batch))

    def look() -> tuple[float, None]:
        rows = draws.held_out
        return float(loss(draws.pixels(rows), draws.any_sets(len(rows), draws.fixed()))), None

    optimizer = torch.optim.AdamW(parameters, lr=recipe.surrogate_lr)
    rows = run("surrogate", recipe.surrogate_steps, recipe.batch, module, optimizer, step, look)
    forget_computed(module.requires_grad_(False))
    return surrogate, rows[-1].validation


def _train_values(explainer: ShapleyExplainer, runner: Runner, draws: _Draws, run: ShapleyRun) -> list[ShapleyProgress]:
    """Make the values of sets add up to what the surrogate says of the sets."""
    surrogate, recipe, trunk = runner.net, draws.recipe, explainer.trunk
    named = trunk.module.named_parameters()
    parameters: list[Tensor] = [p.requires_grad_() for name, p in named if name not in trunk.unused]
    parameters += list(explainer.head.parameters())

    def ends(pixels: Tensor) -> Tensor:
        """Scores of whole images and of hidden ones, [2, B, classes]."""
        hidden = make_baseline(recipe.baseline, pixels, mean=surrogate.mean)
        return torch.stack([runner.scores(pixels), runner.scores(hidden)])

    # Of images as they are, they are the same in every step.
    kept = torch.cat(list(runner.run(len(draws.images.pixels), lambda rows: ends(draws.pixels(rows)))), dim=1)

    def missed(pixels: Tensor, whole: Tensor, nothing: Tensor, shown: Tensor) -> tuple[Tensor, Tensor]:
        """What the values of sets lack, and what those of cells that are all alike would, [B, S, classes] each."""
        seen = pixels.repeat_interleave(shown.shape[1], dim=0)
        asked = show(seen, shown.flatten(0, 1), draws.grid, recipe.baseline, surrogate)
        over = runner.scores(asked).unflatten(0, shown.shape[:2]) - nothing[:, None]
        gain = whole - nothing
        with draws.arithmetic():
            raw = explainer(pixels, gain)
        values = additive(raw.float(), gain).flatten(2)
        sets = shown.to(values.dtype)
        alike = sets.mean(dim=2)[:, :, None] * gain[:, None]
        return torch.einsum("bsn,bcn->bsc", sets, values) - over, alike - over

    def step() -> Tensor:
        rows = draws.some()
        pixels = draws.altered(draws.pixels(rows))
        whole, nothing = ends(pixels) if recipe.alters else kept[:, rows]
        found, _ = missed(pixels, whole, nothing, draws.sets_by_kernel(recipe.batch))
        return draws.cells * found.square().mean()

    def look() -> tuple[float, float]:
        rows = draws.held_out
        whole, nothing = kept[:, rows]
        found, alike = missed(draws.pixels(rows), whole, nothing, draws.sets_by_kernel(len(rows), draws.fixed()))
        left, there = (_less_complement(one).square().mean() for one in (found, alike))
        return float(draws.cells * found.square().mean()), 1 - float(left / there.clamp(min=1e-12))

    optimizer = torch.optim.AdamW(parameters, lr=recipe.lr, weight_decay=1e-5)
    return run("explainer", recipe.steps, recipe.batch, explainer, optimizer, step, look, clip=1.0)


def _less_complement(of_sets: Tensor) -> Tensor:
    """What is said of sets less what is said of their complements, which come last, from [B, S, classes]."""
    sets, complements = of_sets.chunk(2, dim=1)
    return sets - complements


def show(pixels: Tensor, shown: Tensor, grid: tuple[int, int], baseline: str, net: Classifier) -> Tensor:
    """Images [B, 3, H, W] of which only some cells, bool [B, h·w], are shown."""
    hidden = make_baseline(baseline, pixels, mean=net.mean)
    visible = enlarge(shown.float().unflatten(1, grid), net.size, "nearest") > 0.5
    return torch.where(visible[:, None], pixels, hidden)
