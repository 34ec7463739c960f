"""What can be asked beyond the search: a second baseline, stability, contrast, necessity, finer grids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from suffice.evidence.beyond.block import Block
from suffice.evidence.beyond.contrast import find_contrastive
from suffice.evidence.beyond.necessity import find_necessary
from suffice.evidence.beyond.refinement import refine_mses
from suffice.evidence.beyond.stability import Told, answers_under_changes, told
from suffice.evidence.result import Evidence
from suffice.evidence.settings import Settings
from suffice.perturb.runner import Runner


def wants_extras(settings: Settings) -> bool:
    """Whether the settings ask for anything beyond the search."""
    chosen = settings
    return bool(
        chosen.second_baseline is not None
        or chosen.stability
        or chosen.contrastive
        or chosen.necessary
        or chosen.refine
    )


def add_extras(runner: Runner, pixels: Tensor, ids: Sequence[str], evidence: list[Evidence]) -> list[Evidence]:
    """Add what the settings of some evidence ask for beyond the search.

    Args:
        runner: Of the classifier, in fp32.
        pixels: The image of each, [N, 3, H, W] in [0, 1].
        ids: Their identities.
        evidence: What the search found, N, all with the same settings.

    Example:
        >>> from suffice.evidence import find_evidence
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(1, 2), (2, 3), (5,)], grid=3)
        >>> net, image, wishes = oracle.classifier(12), oracle.image(12), Settings(grid=3, necessary=True, refine=(6,))
        >>> found = find_evidence(net, image, targets=1, settings=wishes.changed(baseline="black"))
        >>> more = add_extras(Runner(net), image[None], ["a"], list(found))[0]
        >>> more.necessary, [len(m) for m in more.refined[6]]
        (((2, 5),), [3, 6, 6])
    """
    if not evidence or not wants_extras(evidence[0].settings):
        return evidence
    block, chosen = Block(runner, pixels, ids, evidence), evidence[0].settings
    if chosen.second_baseline is not None:
        second = told(block, block.criterion(baseline=chosen.second_baseline))
        ratios = [[one.ratio for one in mine] for mine in second]
        evidence = [_with_mses(e, second_ratio=mine) for e, mine in zip(evidence, ratios, strict=True)]
    if chosen.stability:
        changed = answers_under_changes(block)
        evidence = [_with_changes(e, mine) for e, mine in zip(evidence, changed, strict=True)]
    if chosen.contrastive or chosen.necessary:
        criterion = block.criterion()  # one for both, so that nothing is asked twice
        if chosen.contrastive:
            contrastive = find_contrastive(block, criterion)
            evidence = [replace(e, contrastive=mine) for e, mine in zip(evidence, contrastive, strict=True)]
        if chosen.necessary:
            necessary = find_necessary(block, criterion)
            evidence = [replace(e, necessary=mine) for e, mine in zip(evidence, necessary, strict=True)]
    if chosen.refine:
        refined = refine_mses(block, chosen.refine)
        evidence = [replace(e, refined=mine) for e, mine in zip(evidence, refined, strict=True)]
    return evidence


def _with_changes(evidence: Evidence, changed: list[dict[str, Told]]) -> Evidence:
    """Evidence with what became of each of its MSEs under small changes."""
    return _with_mses(
        evidence,
        under=[{change: one.ratio for change, one in mine.items()} for mine in changed],
        stays=[{change: one.suffices for change, one in mine.items()} for mine in changed],
    )


def _with_mses(evidence: Evidence, **columns: Sequence[Any]) -> Evidence:
    """Evidence with more said of each of its MSEs, by field."""
    said = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
    return replace(evidence, mses=tuple(replace(m, **new) for m, new in zip(evidence.mses, said, strict=True)))
