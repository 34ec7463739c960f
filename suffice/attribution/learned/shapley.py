"""ViT-Shapley: a network that learns Shapley values of cells, without ever being shown one.

Three networks: the classifier; a **surrogate**, a copy of it that was trained to say of an image with hidden cells what
the classifier says of the whole, as a classifier that never saw hidden cells is a poor judge of them; and the
**explainer**, which gives values for all cells and classes at once. Values are shifted by the same amount in all cells,
so that they add up to what the whole image has over the hidden one (additive normalization). The explainer is right
where, for any set of cells, the values in it add up to what the surrogate says of it: the least squares whose solution
Shapley values are, if sets are drawn by Shapley's kernel. Here sizes are drawn by the kernel itself, and each set comes
with its complement.

Cells are hidden under a baseline. Published is that tokens of a transformer get no attention; hidden pixels do for all
architectures, and the surrogate is trained for them. How both are trained: :mod:`.shapley_training`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d

from suffice.attribution.learned.explainer import Trunk, make_head
from suffice.options import Count, Range, check_fields
from suffice.perturb import Runner, make_baseline
from suffice.vision import Classifier
from suffice.vision.identity import weights_hash

Positive = Annotated[float, Range(0, above=True)]


@dataclass(frozen=True)
class ShapleyRecipe:
    """How a surrogate and an explainer of Shapley values are trained.

    The defaults are for a GPU. What is said of a set is mostly about how its cells act together, which no values tell,
    so that many sets of many images are needed: give thousands of images rather than hundreds.

    Args:
        surrogate_steps: Batches for the surrogate; 0 takes the classifier itself.
        steps: Batches for the explainer.
        batch: Images in a batch.
        sets: Sets of cells for each image of a batch, half of them complements of the others.
        surrogate_lr: Learning rate of the surrogate; both fall along a line.
        lr: Learning rate of the explainer.
        baseline: What shows in hidden cells.
        grid: Rows and columns of cells, such as 7; default, and at most: those of the trunk's last layer.
        alters: Whether an image is altered each time it is seen, for few images: a random half of it or more fills the
            frame, perhaps mirrored.
        seed: Of everything random.
    """

    surrogate_steps: Annotated[int, Range(0)] = 400
    steps: Count = 2000
    batch: Count = 32
    sets: Count = 16
    surrogate_lr: Positive = 1e-4
    lr: Positive = 1e-3
    baseline: str = "gray"
    grid: Annotated[int, Range(2)] | None = None
    alters: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)


class ShapleyExplainer(nn.Module):
    """Values of cells for every class, [N, classes, h, w], before they are shifted.

    A trunk and a head of linear layers with tanh between them at every position, as wide as the trunk's features. The
    head gives a value for each class, and one that all classes share in proportion to what they gain by the image: what
    matters to one class mostly matters to those that lose by it, and so it is learned from all of them. Where cells are
    larger than positions, the value of a cell is the mean over its positions.

    Args:
        net: The classifier whose module, copied, is the trunk.
        classes: How many values a cell has.
        grid: Rows and columns of cells; default: the trunk's.
        seed: Of the head's first weights.
    """

    def __init__(self, net: Classifier, classes: int, *, grid: int | None = None, seed: int = 0) -> None:
        super().__init__()
        self.trunk, self.trunk_name = Trunk(net), net.name
        self.grid = self.trunk.grid if grid is None else (grid, grid)
        self.head = make_head(self.trunk.channels, hidden=True, seed=seed, outputs=classes + 1).to(net.device)
        # All cells are alike in the beginning: random values of many cells would add up to sums far from any score.
        nn.init.zeros_(self.head[-1].weight)  # type: ignore[arg-type]
        nn.init.zeros_(self.head[-1].bias)  # type: ignore[arg-type]

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return int(self.head[-1].out_features) - 1  # type: ignore[arg-type]

    def forward(self, pixels: Tensor, gain: Tensor) -> Tensor:
        """Values [N, classes, h, w] of pixels [N, 3, H, W] in [0, 1], by which classes gain [N, classes]."""
        found = self.head(self.trunk(pixels)).movedim(-1, 1).unflatten(2, self.trunk.grid)
        if self.grid != self.trunk.grid:
            found = adaptive_avg_pool2d(found, self.grid)
        return found[:, :-1] + gain[:, :, None, None] * found[:, -1:]


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
        validation: In the end, on images held out: the surrogate's divergence from the classifier (None where it was
            not trained), the explainer's loss, and how much its values explain of the variance between sets and their
            complements.
        ids: Identities of the images trained on, int64 [N].
    """

    explained: str
    weights: str
    surrogate: Classifier
    explainer: ShapleyExplainer
    recipe: ShapleyRecipe
    losses: tuple[float, ...]
    ids: Tensor
    validation: Mapping[str, float | None] = field(default_factory=dict)

    def __repr__(self) -> str:
        """As records of results have it, where it was an option."""
        networks = f"weights={weights_hash(self.explainer)!r}, surrogate={weights_hash(self.surrogate.module)!r}"
        return f"LearnedShapley(of {self.explained!r}, {networks})"

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
        return additive(self.explainer(pixels, gain), gain)


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

    They are drawn, and lie, where the generator is.

    Example:
        >>> sets = kernel_sets(100, 6, torch.Generator().manual_seed(0))
        >>> bool((sets[:100] == ~sets[100:]).all()), bool(sets.any(dim=1).all())
        (True, True)
    """
    sizes = torch.arange(1, cells, dtype=torch.float64, device=generator.device)
    # Of all sets of a size together: the kernel of one times the number of them.
    chance = 1 / (sizes * (cells - sizes))
    drawn = torch.multinomial(chance, count, replacement=True, generator=generator) + 1
    rank = torch.rand(count, cells, generator=generator, device=generator.device).argsort(dim=1).argsort(dim=1)
    small = rank < drawn[:, None]
    return torch.cat([small, ~small])
