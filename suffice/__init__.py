"""suffice: what is enough for an image classifier to decide.

The rooms, from the street to the roof; each may use those before it:

* :mod:`suffice.vision`: images and classifiers in, and the anatomy of models.
* :mod:`suffice.zoo`: scenes with known truth, small networks trained on them, and their training.
* :mod:`suffice.perturb`: grids and regions, baselines, masks, and the probe that scores masked images.
* :mod:`suffice.attribute`: attribution methods; the room itself is called: ``suffice.attribute(net, images, "rise")``.
* :mod:`suffice.evidence`: minimal sufficient explanations, sub-explanations, and the structured attention graph.
* :mod:`suffice.measure`: metrics that say how they were made; called too: ``suffice.measure(net, images, maps)``.
* :mod:`suffice.compare`: what differs between models, by how much, and whether it could be chance.
* :mod:`suffice.present`: results as pictures and pages.
* :mod:`suffice.cli`: the commands.
* :mod:`suffice.testing`: oracle classifiers and conformance checks, for anyone who adds to the house.

Names are imported when first used, so ``import suffice`` costs no more than a moment.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from suffice.errors import SufficeError, SufficeWarning

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from suffice.attribute import (
        Attribution,
        as_explain_func,
        attribute,
        from_cam,
        from_captum,
        from_function,
        given_maps,
    )
    from suffice.attribute.method import methods
    from suffice.evidence import Evidence, EvidenceSet, find_evidence
    from suffice.measure import Scores
    from suffice.measure import score as measure
    from suffice.measure.metric import metrics
    from suffice.measure.protocols import protocols
    from suffice.perturb import Grid, Probe, baselines
    from suffice.vision import Classifier, Images, load, models, open_images

# Rooms that are their own main function.
_CALLED_ROOMS = ("attribute", "measure")
_ROOM_OF = {
    "Classifier": "vision",
    "Images": "vision",
    "load": "vision",
    "models": "vision",
    "open_images": "vision",
    "Attribution": "attribute",
    "as_explain_func": "attribute",
    "from_cam": "attribute",
    "from_captum": "attribute",
    "from_function": "attribute",
    "given_maps": "attribute",
    "methods": "attribute.method",
    "Scores": "measure",
    "metrics": "measure.metric",
    "protocols": "measure.protocols",
    "Evidence": "evidence",
    "EvidenceSet": "evidence",
    "find_evidence": "evidence",
    "Grid": "perturb",
    "Probe": "perturb",
    "baselines": "perturb",
}

__all__ = [
    "Attribution",
    "Classifier",
    "Evidence",
    "EvidenceSet",
    "Grid",
    "Images",
    "Probe",
    "Scores",
    "SufficeError",
    "SufficeWarning",
    "as_explain_func",
    "attribute",
    "baselines",
    "find_evidence",
    "from_cam",
    "from_captum",
    "from_function",
    "given_maps",
    "load",
    "measure",
    "methods",
    "metrics",
    "models",
    "open_images",
    "protocols",
]


def __getattr__(name: str) -> Any:
    if name in _CALLED_ROOMS:
        return import_module(f"suffice.{name}")
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'suffice' has no attribute {name!r}")
    value = getattr(import_module(f"suffice.{_ROOM_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(globals().keys() | _ROOM_OF.keys() | set(_CALLED_ROOMS))
