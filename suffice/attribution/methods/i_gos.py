"""I-GOS: the smallest, smoothest deletion that makes the class fade.

A mask m (1 = keep, 0 = delete) of low resolution, enlarged to M, minimizes

    l1 · mean|1 - m| + l2 · TV(m) + f(x·M + b·(1 - M)),

where f is the score of the target, x the image, b its baseline, and TV the mean squared difference of vertical plus
that of horizontal neighbors. Each step goes against the gradient of the first two terms plus the integrated gradient
of the third: the gradient of the mean of f(x·(k/n)M + b·(1 - (k/n)M) + noise) over k = 1 … n. Its length comes from a
line search on the objective itself, without noise.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from suffice.attribution.masking.objective import Objective
from suffice.attribution.masking.optimize import Descent, Optimizer, SearchLoss
from suffice.attribution.masking.scores import MaskedScores, Term
from suffice.attribution.method import method
from suffice.attribution.task import Task
from suffice.perturb.baselines import Baseline

TERMS = (Term(planes=(0,)),)


@method(
    "i-gos",
    aliases=("igos",),
    reference="Qi, Khorram, Fuxin, Visualizing Deep Networks by Optimizing with Integrated Gradients, AAAI 2020",
    needs=("gradients",),
)
def i_gos(
    task: Task,
    *,
    size: int = 28,
    baseline: Baseline = "blur",
    l1: float = 1.0,
    l2: float = 20.0,
    steps: int = 20,
    iterations: int = 15,
    noise: float | Sequence[float] = 0.2,
    step_size: float = 200.0,
    optimizer: Optimizer = "line-search",
    search_loss: SearchLoss = "plain",
) -> Tensor:
    """The smallest, smoothest deletion that makes the class fade, optimized by integrated gradients.

    Args:
        task: The images.
        size: Height and width of the mask.
        baseline: What deleted pixels show; see :func:`suffice.perturb.make_baseline`.
        l1: Weight of the mean deletion; more makes it smaller.
        l2: Weight of the total variation; more makes it smoother.
        steps: Steps of the integrated gradient.
        iterations: Most steps of the optimization.
        noise: Standard deviation of the noise in the integrated gradient, in normalized units; one for all channels or
            one for each of three.
        step_size: First step that the line search tries, or every step of Nesterov's method. The code published with
            iGOS++ runs I-GOS with 1000.
        optimizer: ``"line-search"``, or ``"nag"`` for Nesterov's accelerated gradient.
        search_loss: What the line search compares: the ``"plain"`` score of the masked image, or the ``"integrated"``
            one with its noise, as the code published with iGOS++ does.

    Returns:
        [B, size, size] in [0, 1]: how much of each cell is deleted.
    """
    descent = Descent(size, steps, iterations, noise, step_size, optimizer, search_loss)
    return descent(Objective(MaskedScores(task, baseline, TERMS), l1=l1, l2=l2, bilateral=None, share=1.0))
