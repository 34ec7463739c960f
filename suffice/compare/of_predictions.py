"""Tables about what models say of whole images: accuracy, and what averaging them gains."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import stats

from suffice.compare.ensembles import Ensemble, average_models, suggest_members
from suffice.compare.indices import Index
from suffice.compare.pairwise import Numbers, compare_pairs
from suffice.compare.ranking import rank_models
from suffice.compare.sections import Section
from suffice.compare.tables import by_model, numbers_of
from suffice.errors import OptionError

if TYPE_CHECKING:
    import pyarrow

    from suffice.compare.cross_result import CrossTest


def of_predictions(table: pyarrow.Table, name: str) -> Section:
    """Accuracy and confidence of each model, with letters for those that do not differ.

    Args:
        table: Of a study, rows with errors left out.
        name: Of the measurement.
    """
    right, sure = numbers_of(table, "correct"), numbers_of(table, "confidence")
    known = {model: own[np.isfinite(own)] for model, own in right.items()}
    letters: dict[str, str] = {}
    with suppress(OptionError):  # there are too few models, or images that two of them share
        pairs = compare_pairs(right, draws=199)  # the intervals are not shown
        letters = {one.model: one.letters for one in rank_models(right, pairs=pairs)}
    order = sorted(known, key=lambda model: -known[model].mean()) if letters else list(known)
    rows = [
        [model, _accuracy(known[model]), letters.get(model), float(np.nanmean(sure[model])), len(known[model])]
        for model in order
    ]
    note = "Intervals of Clopper and Pearson, 95 %. Models that share a letter do not differ significantly."
    columns = ("model", "accuracy", "alike", "confidence", "images")
    return Section(name, f"{name}: whole images", columns, rows, (note,))


def accuracies_of(table: pyarrow.Table) -> dict[str, float]:
    """The share of right answers of each model; without those of which no truth is known."""
    right = {model: own[np.isfinite(own)] for model, own in numbers_of(table, "correct").items()}
    return {model: float(own.mean()) for model, own in right.items() if len(own)}


def of_ensembles(table: pyarrow.Table, name: str, crossed: CrossTest | None = None) -> Section | None:
    """What averaging gains: all models, and those that lie farthest apart; None without scores of all classes.

    Args:
        table: Of predictions, rows with errors left out.
        name: Of the measurement.
        crossed: The cross-test of the same models, by which members are suggested.
    """
    scores, truth, ids = _scores(table)
    if len(scores) < 2:
        return None
    made = [("all", average_models(scores, truth))]
    if crossed is not None and set(crossed.models) == set(scores) and len(truth) >= 8:
        ordered = {model: scores[model] for model in crossed.models}
        with suppress(OptionError):  # some two models have no score on images that are not held back
            made.append(("suggested", suggest_members(ordered, truth, partial(_apart, crossed, ids))))
    rows = [[how, *_row(one)] for how, one in made]
    columns = ("which", "members", "accuracy", "best alone", "gain", "p", "log loss", "calibration error", "images")
    note = (
        "Scores are averaged. The gain is over the member that is best on these images; its 95 % interval and p "
        "(McNemar's) are about whichever member is the best beyond them. Suggested are the two that lie farthest apart "
        "among those nearly as accurate as the best, chosen on one half of the images and measured on the other."
    )
    return Section(f"{name}-ensembles", f"{name}: averaging models", columns, rows, (note,))


def _apart(crossed: CrossTest, ids: Sequence[str], chosen: Sequence[int]) -> Numbers:
    """Distances between the models of a cross-test on the chosen ones of some images."""
    from suffice.compare.landscapes import distances

    held_back = {ids[image] for image in set(range(len(ids))) - set(chosen)}  # perhaps there is another copy of one
    known = {ids[image] for image in chosen} - held_back
    return distances(crossed.alike(images=[place for place, one in enumerate(crossed.ids) if one in known]))


def _accuracy(right: Numbers) -> Index:
    if not len(right):
        return Index(float("nan"), float("nan"), float("nan"))
    found = stats.binomtest(int(right.sum()), len(right)).proportion_ci()
    return Index(float(right.mean()), float(found.low), float(found.high))


def _row(one: Ensemble) -> list[Any]:
    members = ", ".join(one.members) if len(one.members) < 4 else f"{len(one.members)} models"
    gain = Index(one.gain, one.low, one.high)
    return [members, one.accuracy, one.best, gain, one.p, one.log_loss, one.calibration_error, one.images]


def _scores(table: pyarrow.Table) -> tuple[dict[str, torch.Tensor], torch.Tensor, list[str]]:
    """Scores of all classes of each model, [N, classes], the right ones, and ids, of images that all models have."""
    columns = ["index", "image_id", "truth", "classes", "confidences"]
    rows = {
        model: {row["index"]: row for row in own.select(columns).to_pylist()} for model, own in by_model(table).items()
    }
    nothing: tuple[dict[str, torch.Tensor], torch.Tensor, list[str]] = {}, torch.zeros(0, dtype=torch.long), []
    shared = sorted(set.intersection(*(set(own) for own in rows.values()))) if rows else []
    first = next(iter(rows.values()), {})
    shared = [image for image in shared if first[image]["truth"] is not None]
    if len(shared) < 2:
        return nothing
    truth = [first[image]["truth"] for image in shared]
    scores: dict[str, torch.Tensor] = {}
    for model, own in rows.items():
        listed = [(own[image]["classes"], own[image]["confidences"]) for image in shared]
        count = len(listed[0][0])
        whole = all(sorted(classes) == list(range(count)) and abs(sum(s) - 1) < 1e-3 for classes, s in listed)
        alike = truth == [own[image]["truth"] for image in shared]
        alike &= all(one.shape == (len(shared), count) for one in scores.values())
        if not (whole and alike):  # only the likeliest classes were kept, or models have different classes
            return nothing
        filled = torch.zeros(len(shared), count, dtype=torch.float64)
        scores[model] = filled.scatter(
            1, torch.tensor([c for c, _ in listed]), torch.tensor([s for _, s in listed], dtype=torch.float64)
        )
    return scores, torch.tensor(truth), [first[image]["image_id"] for image in shared]
