"""iGOS++: a mask whose deletion makes the class fade times one whose insertion brings it out.

Two masks d and i (1 = keep, 0 = delete), enlarged to D and I, go against the gradient of

    1/2 · [del(D·I) - ins(D·I) + del(D) - ins(I)] + R(d·i),    R(m) = l1 · mean|1 - m| + l2 · BTV(m),

where del is the integrated score of deletion, the mean of f(x·(k/n)M + b·(1 - (k/n)M) + noise) over k = 1 … n, and ins
that of insertion, the same with the image x and its baseline b exchanged. BTV is total variation that lets masks have
edges where the image has some: :class:`~suffice.attribution.masking.penalty.BilateralVariation`. The line search sees
the same sum without the 1/2, as the published code does. Both masks take steps of one length.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from suffice.attribution.masking.objective import Objective
from suffice.attribution.masking.optimize import Descent, Optimizer, SearchLoss
from suffice.attribution.masking.penalty import BilateralVariation, Edges
from suffice.attribution.masking.scores import MaskedScores, Term
from suffice.attribution.method import method
from suffice.attribution.task import Task
from suffice.perturb.baselines import Baseline

TERMS = (
    Term(planes=(0, 1)),
    Term(planes=(0, 1), inserts=True),
    Term(planes=(0,)),
    Term(planes=(1,), inserts=True),
)


@method(
    "igos++",
    aliases=("igos-plus-plus", "igospp"),
    reference="Khorram, Lawson, Fuxin, iGOS++: Integrated Gradient Optimized Saliency by Bilateral Perturbations, "
    "CHIL 2021",
    needs=("gradients",),
)
def igos_plus_plus(
    task: Task,
    *,
    size: int = 28,
    baseline: Baseline = "blur",
    l1: float = 1.0,
    l2: float = 20.0,
    steps: int = 20,
    iterations: int = 15,
    noise: float | Sequence[float] = 0.2,
    step_size: float = 1000.0,
    optimizer: Optimizer = "line-search",
    search_loss: SearchLoss = "integrated",
    btv: Edges = "gray",
) -> Tensor:
    """A mask whose deletion makes the class fade times one whose insertion brings it out.

    The defaults are those that the published command line names. Its driver exchanges two of them, so its own runs
    have ``steps=15, iterations=20``; add ``btv="asymmetric"`` to follow it in all but the noise, which it draws anew
    for every trial of the line search. At 224 × 224 cells it recommends ``l1=10, iterations=20``.

    Args:
        task: The images.
        size: Height and width of the masks.
        baseline: What deleted pixels show; see :func:`suffice.perturb.make_baseline`.
        l1: Weight of the mean deletion; more makes it smaller.
        l2: Weight of the bilateral total variation; more makes it smoother.
        steps: Steps of the integrated scores.
        iterations: Most steps of the optimization.
        noise: Standard deviation of the noise on inputs, in normalized units; one for all channels or one for each of
            three.
        step_size: First step that the line search tries, or every step of Nesterov's method.
        optimizer: ``"line-search"``, or ``"nag"`` for Nesterov's accelerated gradient.
        search_loss: What the line search compares: ``"integrated"`` scores, all steps of one search with the same
            noise, or ``"plain"`` scores of the masked images, which cost a fraction.
        btv: How edges of an image are seen: ``"gray"``, by ``"channels"``, or ``"asymmetric"``, as the published code
            does it.

    Returns:
        [B, size, size] in [0, 1]: how much of each cell both masks delete together.
    """
    descent = Descent(size, steps, iterations, noise, step_size, optimizer, search_loss)
    scores = MaskedScores(task, baseline, TERMS)
    return descent(Objective(scores, l1=l1, l2=l2, bilateral=BilateralVariation(scores.shown, btv), share=0.5))
