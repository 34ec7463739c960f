"""Which images the gallery shows: chosen by rules that anyone can check, not by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from suffice.compare.pairwise import Numbers
from suffice.report.page.wording import counted


@dataclass(frozen=True)
class Seen:
    """What models say of images, each [models, images].

    Attributes:
        answers: Class that each model names; -1 where none is known.
        mses: Number of minimal sufficient explanations (MSEs); NaN where an image was not searched.
        largest: Cells of the largest MSE; NaN where there is none.
        nothing: Whether the baseline alone was enough.
        covered: Whether a cell lies in some MSE, [models, images, cells].
    """

    answers: np.ndarray
    mses: Numbers
    largest: Numbers
    nothing: np.ndarray
    covered: np.ndarray


@dataclass(frozen=True)
class Chosen:
    """An image of the gallery: its position, the rule that chose it, and what is remarkable about it."""

    index: int
    rule: str
    why: str


def choose(seen: Seen, models: Sequence[str], each: int = 2) -> list[Chosen]:
    """Images by rule, so many by each; none twice.

    Args:
        seen: What models say.
        models: Their names.
        each: Images of each rule; a rule that nothing fits chooses none.
    """
    taken: set[int] = set()
    chosen: list[Chosen] = []
    for rule, score, why in (
        ("Models disagree the most about the class", _disagreement(seen), _answers_in_words(seen, models)),
        ("Evidence of the models overlaps the least", _apart(seen), _apart_in_words(seen)),
        ("Most ways to decide", _max(seen.mses), _most_in_words(seen, models)),
        ("Largest minimal sufficient explanation", _max(seen.largest), _largest_in_words(seen, models)),
        ("Sure though nothing is visible, or no evidence", _none(seen), _none_in_words(seen, models)),
    ):
        order = [int(i) for i in np.argsort(-score, kind="stable") if np.isfinite(score[i]) and score[i] > 0]
        for index in [i for i in order if i not in taken][:each]:
            taken.add(index)
            chosen.append(Chosen(index, rule, why(index)))
    return chosen


def _disagreement(seen: Seen) -> Numbers:
    """Number of different answers of each image beyond the first, [N]; ties by how few give the commonest."""
    found = np.zeros(seen.answers.shape[1])
    for index, column in enumerate(seen.answers.T):
        known = column[column >= 0]
        if len(known):
            counts = np.unique(known, return_counts=True)[1]
            found[index] = len(counts) - 1 + (1 - counts.max() / len(known)) / 2
    return found


def _apart(seen: Seen) -> Numbers:
    """One less the mean overlap of the cells in some MSE, over all pairs of models, [N]; NaN without two models.

    Only images of which all models give the same answer count: else it is no wonder.
    """
    covered = seen.covered.astype(float)
    some = seen.covered.max(axis=2, initial=False)
    together, pairs = np.zeros(some.shape[1]), np.zeros(some.shape[1])
    for a in range(len(covered)):
        for b in range(a):
            both = some[a] & some[b]
            either = np.maximum(covered[a], covered[b]).sum(axis=1)
            shared = np.minimum(covered[a], covered[b]).sum(axis=1)
            together += np.where(both, shared / np.maximum(either, 1), 0)
            pairs += both
    same = np.array([len(set(column[column >= 0].tolist())) <= 1 for column in seen.answers.T])
    return np.where((pairs > 0) & same, 1 - together / np.maximum(pairs, 1), np.nan)


def _max(values: Numbers) -> Numbers:
    return np.where(np.isfinite(values).any(axis=0), np.nanmax(np.nan_to_num(values, nan=-1), axis=0), np.nan)


def _none(seen: Seen) -> Numbers:
    """How many models need nothing of an image, or find no evidence in it, [N]."""
    return ((seen.mses == 0) | seen.nothing).sum(axis=0).astype(float)


def _answers_in_words(seen: Seen, models: Sequence[str]) -> Callable[[int], str]:
    def why(index: int) -> str:
        known = seen.answers[:, index][seen.answers[:, index] >= 0]
        return f"{len(known)} models give {len(set(known.tolist()))} different answers."

    return why


def _apart_in_words(seen: Seen) -> Callable[[int], str]:
    apart = _apart(seen)

    def why(index: int) -> str:
        return (
            f"All give the same answer, but of the cells that one or the other of two models relies on, both rely on "
            f"{100 * (1 - apart[index]):.0f} %, on average."
        )

    return why


def _most_in_words(seen: Seen, models: Sequence[str]) -> Callable[[int], str]:
    def why(index: int) -> str:
        most = int(np.nanargmax(seen.mses[:, index]))
        names = ("minimal sufficient explanation (MSE)", "minimal sufficient explanations (MSEs)")
        return f"{models[most]} has {counted(int(seen.mses[most, index]), *names)} of it."

    return why


def _largest_in_words(seen: Seen, models: Sequence[str]) -> Callable[[int], str]:
    def why(index: int) -> str:
        most = int(np.nanargmax(seen.largest[:, index]))
        cells = int(seen.largest[most, index])
        none = "which cannot" if cells == 1 else "of which none can"
        return f"{models[most]} has one of {counted(cells, 'cell')}, {none} go."

    return why


def _none_in_words(seen: Seen, models: Sequence[str]) -> Callable[[int], str]:
    def why(index: int) -> str:
        nothing = [models[int(i)] for i in np.flatnonzero(seen.nothing[:, index])]
        without = [models[int(i)] for i in np.flatnonzero((seen.mses[:, index] == 0) & ~seen.nothing[:, index])]
        said = [f"{', '.join(nothing)}: the hidden image alone is enough."] if nothing else []
        return " ".join([*said, *([f"{', '.join(without)}: no evidence."] if without else [])])

    return why
