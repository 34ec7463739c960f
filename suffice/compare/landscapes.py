"""Where models lie: near each other where what one finds important is enough for the other.

Cross-testing gives a score for every two models. Made symmetric it is taken as a kernel, from which Kernel PCA and MDS
make positions in the plane, and hierarchical clustering a tree; the bootstrap over images says how sure a position is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.linalg import orthogonal_procrustes
from scipy.spatial.distance import squareform

from suffice.compare.pairwise import Numbers
from suffice.compare.resampling import drawn_again, means_over
from suffice.errors import OptionError
from suffice.options import Count, check_options

Projection = Literal["kernel-pca", "mds"]


@dataclass(frozen=True, eq=False)
class Landscape:
    """Positions of models in the plane.

    Attributes:
        models: Their names.
        positions: [M, 2].
        projection: How they were made.
        explained: Share of the kernel that each of the two directions explains, of its positive part (Kernel PCA).
        negative: Share of the kernel's eigenvalues, by magnitude, that are negative: what no positions can show.
        stress: Kruskal's stress of MDS; None for Kernel PCA.
        tree: Average-linkage clustering, as :func:`scipy.cluster.hierarchy.linkage` returns it, [M - 1, 4].
        spread: Covariance of each position under the bootstrap, [M, 2, 2]; None without scores of two images or more.
    """

    models: tuple[str, ...]
    positions: Numbers
    projection: Projection
    explained: tuple[float, float]
    negative: float
    stress: float | None
    tree: Numbers
    spread: Numbers | None = None


def landscape(
    scores: Numbers,
    models: Sequence[str],
    *,
    projection: Projection = "kernel-pca",
    draws: Count = 200,
    seed: int = 0,
    normalize: Callable[[Numbers], Numbers] | None = None,
) -> Landscape:
    """Place models by their cross-test.

    Args:
        scores: [M, M], of the map of one model (row) on another (column); or of single images, [M, M, N], for how
            sure positions are.
        models: Names of the models, [M].
        projection: ``"kernel-pca"`` or ``"mds"``.
        draws: Of the bootstrap over images.
        seed: Of the bootstrap, and of MDS.
        normalize: From how often each image is drawn, [D, N], to matrices [D, M, M]; default: the means of the scores.

    Raises:
        OptionError: There are too few models, or two of them have no score.

    Example:
        >>> near = np.array([[1.0, 0.9, 0.1], [0.9, 1.0, 0.2], [0.1, 0.0, 1.0]])
        >>> found = landscape(near, ["a", "b", "c"])
        >>> apart = np.linalg.norm(found.positions[0] - found.positions[[1, 2]], axis=1)
        >>> bool(apart[0] < apart[1])
        True
    """
    check_options({"projection": projection, "draws": draws}, landscape)
    given = np.asarray(scores, dtype=float)
    if given.ndim not in (2, 3) or given.shape[:2] != (len(models), len(models)) or len(models) < 3:
        raise OptionError(f"Expected scores [M, M] or [M, M, N] of three or more models; got {list(given.shape)}.")
    of_draws = normalize or partial(means_over, given)
    matrix = of_draws(np.ones((1, given.shape[2])))[0] if given.ndim == 3 else given
    missing = [f"maps of {models[row]} on {models[column]}" for row, column in np.argwhere(~np.isfinite(matrix))]
    if missing:
        raise OptionError(f"There is no score of {missing[0]} ({len(missing)} are missing), so nobody can be placed.")
    positions, explained, negative = kernel_pca(centered(matrix))
    apart = distances(matrix)
    stress = None
    if projection == "mds":
        positions, stress = mds(apart, seed)
    spread = None
    if given.ndim == 3 and given.shape[2] > 1:
        drawn = drawn_again(given.shape[2], draws, np.random.default_rng(seed))
        again = np.concatenate([of_draws(some) for some in drawn])
        again = again[np.isfinite(again).all(axis=(1, 2))]  # in others, a model has none of its images
        found = [mds(distances(one), seed) if projection == "mds" else kernel_pca(centered(one)) for one in again]
        moved = np.stack([aligned(place, positions) for place, *_ in found], axis=2) if len(found) > 1 else None
        spread = None if moved is None else np.stack([np.cov(one) for one in moved])
    tree = linkage(squareform(apart, checks=False), "average")
    return Landscape(tuple(models), positions, projection, explained, negative, stress, tree, spread)


def centered(matrix: Numbers) -> Numbers:
    """A matrix made symmetric, with rows and columns of mean 0: the kernel of Kernel PCA."""
    kernel = (matrix + matrix.T) / 2
    kernel = kernel - kernel.mean(axis=0)
    return kernel - kernel.mean(axis=1, keepdims=True)


def kernel_pca(kernel: Numbers) -> tuple[Numbers, tuple[float, float], float]:
    """Positions [M, 2] from a centered kernel, the share that each direction explains, and the negative share.

    scikit-learn's does the same, but refuses a kernel with negative eigenvalues, which a cross-test may well have.
    """
    values, vectors = np.linalg.eigh(kernel)
    order = np.argsort(-values)[:2]
    top = np.clip(values[order], 0, None)
    directions = vectors[:, order]
    signs = np.sign(directions[np.abs(directions).argmax(axis=0), range(2)])  # which way is up is chosen, not found
    positive, negative = values[values > 0].sum(), np.abs(values[values < 0]).sum()
    shares = top / positive if positive else np.zeros(2)
    return (
        directions * signs * top**0.5,
        (float(shares[0]), float(shares[1])),
        float(negative / (positive + negative or 1)),
    )


def distances(matrix: Numbers) -> Numbers:
    """Distances [M, M] that belong to a matrix of scores as a kernel: the less two models share, the farther."""
    kernel = (matrix + matrix.T) / 2
    own = np.diag(kernel)
    squared = own[:, None] + own[None, :] - 2 * kernel
    np.fill_diagonal(squared, 0)
    return np.clip(squared, 0, None) ** 0.5


def mds(apart: Numbers, seed: int = 0) -> tuple[Numbers, float]:
    """Positions [M, 2] whose distances are as near as possible to those given, by scikit-learn, and the stress."""
    from sklearn.manifold import smacof

    if not apart.any():
        return np.zeros((len(apart), 2)), 0.0
    start, _, _ = kernel_pca(centered(-(apart**2) / 2))
    positions, _ = smacof(apart, n_components=2, init=start, n_init=1, max_iter=1000, eps=1e-9, random_state=seed)
    shown = distances_of(positions)
    stress = float(np.sqrt(((shown - apart) ** 2).sum() / max((apart**2).sum(), 1e-30)))
    return positions - positions.mean(axis=0), stress


def distances_of(positions: Numbers) -> Numbers:
    """Distances [M, M] between positions [M, 2]."""
    return np.asarray(np.linalg.norm(positions[:, None] - positions[None], axis=2))


def aligned(positions: Numbers, reference: Numbers) -> Numbers:
    """Positions [M, 2] turned, mirrored and moved onto others, not scaled (Procrustes)."""
    here, there = positions - positions.mean(axis=0), reference - reference.mean(axis=0)
    turn, _ = orthogonal_procrustes(here, there)
    return here @ turn + reference.mean(axis=0)
