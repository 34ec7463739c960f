"""I-GOS, iGOS+ and iGOS++: masks optimized by integrated gradients.

Masks (1 = keep, 0 = delete) of low resolution, enlarged to the image, go against the gradient of scores and penalties:

* I-GOS: ``del(M) + l1 · mean|1 - m| + l2 · TV(m)``. The deletion makes the class fade.
* iGOS+: ``del(M) - ins(M) + R(m)``. The same mask's insertion also brings the class out.
* iGOS++: ``1/2 · [del(D·I) - ins(D·I) + del(D) - ins(I)] + R(d·i)``, one mask, d, for deletion and one, i, for
  insertion.

``del(M)`` is the integrated score of deletion, the mean of f(x·(k/n)M + b·(1 - (k/n)M) + noise) over k = 1 … n, where f
is the score of the target, x the image and b its baseline; ``ins`` is the same with x and b exchanged.
``R(m) = l1 · mean|1 - m| + l2 · BTV(m)``, where BTV is total variation that lets masks have edges where the image has
some: :class:`suffice.attribution.igos.objective.BilateralVariation`. Lengths of steps come from a line search. That of
iGOS++ looks at the same sum without the 1/2, as the published code does, and both masks take steps of one length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from torch import Tensor

from suffice.attribution.igos.line_search import SMALL_STEP
from suffice.attribution.igos.objective import BilateralVariation, Edges, Objective
from suffice.attribution.igos.optimize import Descent, Optimizer, SearchLoss
from suffice.attribution.igos.scores import MaskedScores, Term
from suffice.attribution.method import method
from suffice.options import Amount, Count, Range
from suffice.perturb.baselines import Baseline
from suffice.perturb.batch import Batch

Iterations = Annotated[int, Range(0)]
StepSize = Annotated[float, Range(SMALL_STEP)]
Noise = Amount | Sequence[Amount]

BILATERAL = "Khorram, Lawson, Li, iGOS++: Integrated Gradient Optimized Saliency by Bilateral Perturbations, CHIL 2021"
TERMS = {
    "i-gos": (Term(planes=(0,)),),
    "igos+": (Term(planes=(0,)), Term(planes=(0,), inserts=True)),
    "igos++": (
        Term(planes=(0, 1)),
        Term(planes=(0, 1), inserts=True),
        Term(planes=(0,)),
        Term(planes=(1,), inserts=True),
    ),
}


@method(
    "i-gos",
    aliases=("igos",),
    reference="Qi, Khorram, Li, Visualizing Deep Networks by Optimizing with Integrated Gradients, AAAI 2020",
    needs=("gradients",),
)
def i_gos(
    batch: Batch,
    *,
    size: Count = 28,
    baseline: Baseline = "blur",
    l1: float = 1.0,
    l2: float = 20.0,
    steps: Count = 20,
    iterations: Iterations = 15,
    noise: Noise = 0.2,
    step_size: StepSize = 200.0,
    optimizer: Optimizer = "line-search",
    search_loss: SearchLoss = "plain",
) -> Tensor:
    """Smallest, smoothest mask whose deletion lowers the score, optimized by integrated gradients.

    Options mean what they mean for :func:`igos_plus_plus`. The variation is the plain one, the line search compares
    plain scores as published, and the code published with iGOS++ runs I-GOS with ``step_size=1000`` and
    ``search_loss="integrated"``.

    Returns:
        [B, size, size] in [0, 1]: how much of each cell is deleted.
    """
    descent = Descent(size, steps, iterations, noise, step_size, optimizer, search_loss)
    return descent(Objective(MaskedScores(batch, baseline, TERMS["i-gos"]), l1=l1, l2=l2))


@method("igos+", aliases=("igos-plus",), reference=BILATERAL, needs=("gradients",))
def igos_plus(
    batch: Batch,
    *,
    size: Count = 28,
    baseline: Baseline = "blur",
    l1: float = 1.0,
    l2: float = 20.0,
    steps: Count = 20,
    iterations: Iterations = 15,
    noise: Noise = 0.2,
    step_size: StepSize = 1000.0,
    optimizer: Optimizer = "line-search",
    search_loss: SearchLoss = "integrated",
    btv: Edges = "gray",
) -> Tensor:
    """One mask optimized for deletion and insertion by integrated gradients.

    Options mean what they mean for :func:`igos_plus_plus`.

    Returns:
        [B, size, size] in [0, 1]: how much of each cell is deleted.
    """
    descent = Descent(size, steps, iterations, noise, step_size, optimizer, search_loss)
    scores = MaskedScores(batch, baseline, TERMS["igos+"])
    variation = BilateralVariation(batch.pixels.to(scores.dtype), btv)
    return descent(Objective(scores, l1=l1, l2=l2, bilateral=variation))


@method("igos++", aliases=("igos-plus-plus", "igospp"), reference=BILATERAL, needs=("gradients",))
def igos_plus_plus(
    batch: Batch,
    *,
    size: Count = 28,
    baseline: Baseline = "blur",
    l1: float = 1.0,
    l2: float = 20.0,
    steps: Count = 20,
    iterations: Iterations = 15,
    noise: Noise = 0.2,
    step_size: StepSize = 1000.0,
    optimizer: Optimizer = "line-search",
    search_loss: SearchLoss = "integrated",
    btv: Edges = "gray",
) -> Tensor:
    """A deletion mask times an insertion mask, optimized together by integrated gradients.

    The defaults are those that the published command line names. Its driver exchanges two of them, so its own runs have
    ``steps=15, iterations=20``; add ``btv="asymmetric"`` to follow it in all but the noise, which it draws anew for
    every trial of the line search. At 224 × 224 cells it recommends ``l1=10, iterations=20``.

    Args:
        batch: The images.
        size: Height and width of the masks.
        baseline: What deleted pixels show; see :func:`suffice.perturb.make_baseline`.
        l1: Weight of the mean deletion; more makes it smaller.
        l2: Weight of the (bilateral) total variation; more makes it smoother.
        steps: Steps of the integrated scores.
        iterations: Most steps of the optimization.
        noise: Standard deviation of the noise on inputs, in ImageNet's units for every model: 0.2 is about 0.045 of
            the range of pixels; for all channels or each of three. See :mod:`suffice.vision.units`.
        step_size: First step that the line search tries, or every step of Nesterov's method.
        optimizer: ``"line-search"``, or ``"nag"`` for Nesterov's accelerated gradient.
        search_loss: What the line search compares: ``"integrated"`` scores, all steps of one search with the same
            noise, or ``"plain"`` scores of the masked images, which cost a fraction.
        btv: How edges of an image are seen: ``"gray"``, by ``"channels"``, or ``"asymmetric"``, as published code does.

    Returns:
        [B, size, size] in [0, 1]: how much of each cell both masks delete together.
    """
    descent = Descent(size, steps, iterations, noise, step_size, optimizer, search_loss)
    scores = MaskedScores(batch, baseline, TERMS["igos++"])
    variation = BilateralVariation(batch.pixels.to(scores.dtype), btv)
    return descent(Objective(scores, l1=l1, l2=l2, bilateral=variation, share=0.5))
