"""Where evidence comes from."""

from __future__ import annotations

from typing import Any

from suffice.evidence.settings import Settings
from suffice.perturb.runner import Runner
from suffice.vision.classifier import Targets
from suffice.vision.provenance import provenance


def search_provenance(runner: Runner, settings: Settings, targets: Targets = None) -> dict[str, Any]:
    """All that has to be known to find the same evidence again, as plain values for JSON.

    That is what :func:`suffice.vision.provenance.provenance` has, and ``confirmed``: in which precision every reported
    set holds, ``"ieee"``, fp32 that never rounds; None where they were not confirmed.

    Example:
        >>> from suffice.testing import AnyOf
        >>> about = search_provenance(Runner(AnyOf([(5,)], grid=4).classifier(32)), Settings())
        >>> about["precision"], about["settings"]["threshold"], about["confirmed"]
        ('fp32', 0.9, 'ieee')
    """
    confirmed = "ieee" if runner.exact or settings.confirm != "none" else None
    about = provenance(runner.net, settings.to_dict(), targets, precision=runner.precision)
    return {**about, "confirmed": confirmed}
