"""ViT-Shapley: a network that learns Shapley values of cells, without ever being shown one.

Three networks: the classifier; a **surrogate**, a copy of it that was trained to say of an image with hidden cells what
the classifier says of the whole, as a classifier that never saw hidden cells is a poor judge of them; and the
**explainer**, which gives values for all cells and classes at once. Values are shifted by the same amount in all cells,
so that they add up to what the whole image has over the hidden one (additive normalization). The explainer is right
where, for any set of cells, the values in it add up to what the surrogate says of it: the least squares whose solution
Shapley values are, if sets are drawn by Shapley's kernel. Here sizes are drawn by the kernel itself, and each set comes
with its complement.

Cells are hidden under a baseline. Published is that tokens of a transformer get no attention; hidden pixels do for all
architectures, and the surrogate is trained for them.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import kl_div

from suffice.attribution.learned.explainer import Trunk, make_head
from suffice.attribution.learned.images import ExplainerImages, open_explainer_images
from suffice.errors import OptionError
from suffice.options import Count, check_fields
from suffice.perturb import Runner, enlarge, make_baseline
from suffice.vision import Classifier, Model, as_classifier
from suffice.vision.identity import weights_hash


@dataclass(frozen=True)
class ShapleyRecipe:
    """How a surrogate and an explainer of Shapley values are trained.

    Args:
        surrogate_steps: Batches for the surrogate; 0 takes the classifier itself.
        steps: Batches for the explainer.
        batch: Images in a batch.
        sets: Sets of cells for each image of a batch, half of them complements of the others.
        surrogate_lr: Learning rate of the surrogate; both fall along a line.
        lr: Learning rate of the explainer.
        baseline: What shows in hidden cells.
        seed: Of everything random.
    """

    surrogate_steps: int = 200
    steps: Count = 400
    batch: Count = 32
    sets: Count = 8
    surrogate_lr: float = 1e-4
    lr: float = 1e-3
    baseline: str = "gray"
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)


class ShapleyExplainer(nn.Module):
    """Values of cells for every class, [N, classes, h, w], before they are shifted.

    A trunk and a head of linear layers with tanh between them at every position, as wide as the trunk's features.
    """

    def __init__(self, net: Classifier, classes: int, *, seed: int = 0) -> None:
        super().__init__()
        self.trunk, self.trunk_name = Trunk(net), net.name
        self.head = make_head(self.trunk.channels, hidden=True, seed=seed, outputs=classes).to(net.device)

    def forward(self, pixels: Tensor) -> Tensor:
        """Values [N, classes, h, w] of pixels [N, 3, H, W] in [0, 1]."""
        return self.head(self.trunk(pixels)).movedim(-1, 1).unflatten(2, self.trunk.grid)


@dataclass(frozen=True, eq=False)
class LearnedShapley:
    """A surrogate and an explainer, trained.

    Attributes:
        explained: Name of the classifier.
        weights: Hash of its weights.
        surrogate: What judges images with hidden cells.
        explainer: What gives values.
        recipe: How they were trained.
        losses: Mean loss of the explainer in each tenth of its training.
        ids: Identities of the images trained on, int64 [N].
    """

    explained: str
    weights: str
    surrogate: Classifier
    explainer: ShapleyExplainer
    recipe: ShapleyRecipe
    losses: tuple[float, ...]
    ids: Tensor

    @cached_property
    def runner(self) -> Runner:
        """Puts images through the surrogate."""
        return Runner(self.surrogate)

    @torch.no_grad()
    def values(self, pixels: Tensor) -> Tensor:
        """Shapley values [N, classes, h, w] of the surrogate's scores for pixels [N, 3, H, W] in [0, 1].

        One forward of the explainer and two of the surrogate.
        """
        hidden = make_baseline(self.recipe.baseline, pixels, mean=self.surrogate.mean)
        gain = self.runner.scores(pixels) - self.runner.scores(hidden)
        return additive(self.explainer(pixels), gain)


def additive(values: Tensor, gain: Tensor) -> Tensor:
    """Values [N, classes, h, w], shifted by the same in all cells so that they add up to a gain [N, classes].

    Example:
        >>> additive(torch.zeros(1, 1, 2, 2), torch.tensor([[2.0]])).flatten()
        tensor([0.5000, 0.5000, 0.5000, 0.5000])
    """
    cells = values.shape[-2] * values.shape[-1]
    return values + ((gain - values.sum(dim=(2, 3))) / cells)[:, :, None, None]


def kernel_sets(count: int, cells: int, generator: torch.Generator) -> Tensor:
    """Sets of cells by Shapley's kernel, none empty and none full, bool [2 · count, cells]; complements last.

    Example:
        >>> sets = kernel_sets(100, 6, torch.Generator().manual_seed(0))
        >>> bool((sets[:100] == ~sets[100:]).all()), bool(sets.any(dim=1).all())
        (True, True)
    """
    sizes = torch.arange(1, cells, dtype=torch.float64)
    # Of all sets of a size together: the kernel of one times the number of them.
    chance = 1 / (sizes * (cells - sizes))
    drawn = torch.multinomial(chance, count, replacement=True, generator=generator) + 1
    rank = torch.rand(count, cells, generator=generator).argsort(dim=1).argsort(dim=1)
    small = rank < drawn[:, None]
    return torch.cat([small, ~small])


def train_shapley(
    net: Model, images: Any, recipe: ShapleyRecipe | None = None, *, trunk: Classifier | None = None
) -> LearnedShapley:
    """Train a surrogate of a classifier and an explainer of its Shapley values.

    Args:
        net: The classifier, which is left as it is.
        images: Anything that :func:`suffice.open_images` takes.
        recipe: How.
        trunk: The classifier whose copy becomes the explainer, and whose last feature maps or tokens are the cells;
            default: the surrogate.

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
    runner = Runner(net)
    if not isinstance(images, ExplainerImages):
        images = open_explainer_images(runner, images)
    generator = torch.Generator().manual_seed(recipe.seed)
    grid = Trunk(trunk or net).grid
    with torch.inference_mode(False):
        surrogate = _train_surrogate(runner, images, recipe, grid, generator)
        classes = runner.scores(images.pixels[:1].float() / 255).shape[1]
        explainer = ShapleyExplainer(trunk or surrogate, classes, seed=recipe.seed)
        losses = _train_values(explainer, surrogate, images, recipe, generator)
    facts = (net.name, weights_hash(net.module), surrogate, explainer.requires_grad_(False), recipe, losses)
    return LearnedShapley(*facts, images.ids[images.train])


def _train_surrogate(
    runner: Runner, images: ExplainerImages, recipe: ShapleyRecipe, grid: tuple[int, int], generator: torch.Generator
) -> Classifier:
    """A copy of the classifier that says of images with hidden cells what the classifier says of the whole ones.

    Sets of all sizes are as likely as each other, as published.
    """
    net = runner.net
    module = copy.deepcopy(net.module).eval()
    surrogate = net.with_module(module)
    parameters: list[Tensor] = [p.requires_grad_() for p in module.parameters() if p.is_floating_point()]
    if recipe.surrogate_steps and parameters:
        optimizer = torch.optim.AdamW(parameters, lr=recipe.surrogate_lr)
        cells = grid[0] * grid[1]
        for step in range(recipe.surrogate_steps):
            _fall(optimizer, recipe.surrogate_lr, step, recipe.surrogate_steps)
            pixels = _draw(images, recipe.batch, generator).to(net.device)
            wanted = runner.scores(pixels)
            share = torch.rand(len(pixels), 1, generator=generator)
            shown = (torch.rand(len(pixels), cells, generator=generator) < share).to(net.device)
            with torch.enable_grad():
                logits = surrogate.logits(surrogate.normalize(_show(pixels, shown, grid, recipe.baseline, net)))
                loss = kl_div(logits.log_softmax(dim=1), wanted, reduction="batchmean")
                slopes = torch.autograd.grad(loss, parameters, allow_unused=True)
            _step(optimizer, parameters, slopes)
    module.requires_grad_(False)
    return surrogate


def _train_values(
    explainer: ShapleyExplainer,
    surrogate: Classifier,
    images: ExplainerImages,
    recipe: ShapleyRecipe,
    generator: torch.Generator,
) -> tuple[float, ...]:
    """Make the values of sets add up to what the surrogate says of the sets; mean losses."""
    runner, grid = Runner(surrogate), explainer.trunk.grid
    cells, pairs = grid[0] * grid[1], max(1, recipe.sets // 2)
    trunk = explainer.trunk
    named = trunk.module.named_parameters()
    parameters: list[Tensor] = [p.requires_grad_() for name, p in named if name not in trunk.unused]
    parameters += list(explainer.head.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=recipe.lr, weight_decay=1e-5)
    losses: list[float] = []
    for step in range(recipe.steps):
        _fall(optimizer, recipe.lr, step, recipe.steps)
        pixels = _draw(images, recipe.batch, generator).to(surrogate.device)
        sets = [kernel_sets(pairs, cells, generator) for _ in range(len(pixels))]
        shown = torch.stack(sets).to(pixels.device)  # [B, S, cells]
        seen = pixels.repeat_interleave(shown.shape[1], dim=0)
        asked = _show(seen, shown.flatten(0, 1), grid, recipe.baseline, surrogate)
        said = runner.scores(asked).unflatten(0, shown.shape[:2])
        hidden = make_baseline(recipe.baseline, pixels, mean=surrogate.mean)
        nothing = runner.scores(hidden)
        gain = runner.scores(pixels) - nothing
        with torch.enable_grad():
            values = additive(explainer(pixels), gain).flatten(2)
            missed = nothing[:, None] + torch.einsum("bsn,bcn->bsc", shown.to(values.dtype), values) - said
            loss = cells * missed.square().mean()
            slopes = torch.autograd.grad(loss, parameters, allow_unused=True)
        nn.utils.clip_grad_norm_(_with(parameters, slopes), 1.0)
        optimizer.step()
        losses.append(float(loss.detach()))
    tenth = max(1, len(losses) // 10)
    return tuple(sum(losses[at : at + tenth]) / len(losses[at : at + tenth]) for at in range(0, len(losses), tenth))


def _draw(images: ExplainerImages, count: int, generator: torch.Generator) -> Tensor:
    rows = images.train[torch.randint(0, len(images.train), (count,), generator=generator)]
    return images.pixels[rows].float() / 255


def _show(pixels: Tensor, shown: Tensor, grid: tuple[int, int], baseline: str, net: Classifier) -> Tensor:
    """Images [B, 3, H, W] of which only some cells, bool [B, h·w], are shown."""
    hidden = make_baseline(baseline, pixels, mean=net.mean)
    visible = enlarge(shown.float().unflatten(1, grid), net.size, "nearest") > 0.5
    return torch.where(visible[:, None], pixels, hidden)


def _fall(optimizer: torch.optim.Optimizer, lr: float, step: int, steps: int) -> None:
    for group in optimizer.param_groups:
        group["lr"] = lr * min(1.0, 10 * (step + 1) / steps) * (1 - step / steps)


def _with(parameters: list[Tensor], slopes: tuple[Tensor | None, ...]) -> list[Tensor]:
    for parameter, slope in zip(parameters, slopes, strict=True):
        parameter.grad = slope
    return parameters


def _step(optimizer: torch.optim.Optimizer, parameters: list[Tensor], slopes: tuple[Tensor | None, ...]) -> None:
    _with(parameters, slopes)
    optimizer.step()
