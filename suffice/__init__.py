"""suffice: what is enough for an image classifier to decide.

The rooms, from the street to the roof; each may use those before it:

* :mod:`suffice.vision`: images and classifiers in, and the anatomy of models.
* :mod:`suffice.zoo`: scenes with known truth, small networks trained on them, and their training.
* :mod:`suffice.perturb`: the runner, grids and regions, baselines, masks, and the probe that scores masked images.
* :mod:`suffice.draw`: pens: SVG, palettes, overlays, thumbnails.
* :mod:`suffice.attribution`: attribution methods.
* :mod:`suffice.evidence`: minimal sufficient explanations, sub-explanations, and the structured attention graph.
* :mod:`suffice.metrics`: metrics, protocols, and sanity checks.
* :mod:`suffice.study`: models × images × measurements, run to the end and kept in one folder.
* :mod:`suffice.compare`: what differs between models, by how much, and whether it could be chance.
* :mod:`suffice.report`: results as pictures and pages.
* :mod:`suffice.explorer`: touch an image, and every model answers: the page of ``suffice serve``.
* :mod:`suffice.bench`: speed beside the bare model and beside peers.
* :mod:`suffice.cli`: the commands.
* :mod:`suffice.testing`: oracle classifiers and conformance checks, for anyone who adds to the house.

Names are imported when first used, so ``import suffice`` costs no more than a moment.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from suffice.errors import SufficeError, SufficeWarning
from suffice.plugins import provide as _provide

__version__ = "0.1.0.dev0"

if _TYPE_CHECKING:
    from suffice.attribution import (
        Attribution,
        as_explain_func,
        attribute,
        from_cam,
        from_captum,
        from_function,
        given_maps,
        list_methods,
    )
    from suffice.compare import CrossTest, cross_test
    from suffice.evidence import Evidence, EvidenceSet, find_evidence
    from suffice.explorer import explore
    from suffice.metrics import Scores, list_metrics, list_protocols, measure
    from suffice.perturb import Grid, Probe, Runner, list_baselines
    from suffice.study import Study
    from suffice.vision import Classifier, Images, list_models, load, open_images

# What an outside package declares by entry points of the same groups.
_provide("suffice.sources", "zoo", "suffice.zoo.source:SOURCE")
_provide("suffice.images", "scenes", "suffice.zoo.scenes:open_scenes")
_provide("suffice.images", "npz", "suffice.zoo.training.sources:npz_images")
_provide("suffice.measurements", "cross-test", "suffice.compare.kinds.cross:CrossTesting")
_provide("suffice.measurements", "activations", "suffice.compare.kinds.channels:ChannelMaxima")
_provide("suffice.reports", "html", "suffice.report.page:make_report")

_ROOM_OF = {
    **dict.fromkeys(("Classifier", "Images", "list_models", "load", "open_images"), "vision"),
    **dict.fromkeys(("Grid", "Probe", "Runner", "list_baselines"), "perturb"),
    **dict.fromkeys(
        (
            "Attribution",
            "as_explain_func",
            "attribute",
            "from_cam",
            "from_captum",
            "from_function",
            "given_maps",
            "list_methods",
        ),
        "attribution",
    ),
    **dict.fromkeys(("Evidence", "EvidenceSet", "find_evidence"), "evidence"),
    **dict.fromkeys(("Scores", "list_metrics", "list_protocols", "measure"), "metrics"),
    "Study": "study",
    **dict.fromkeys(("CrossTest", "cross_test"), "compare"),
    "explore": "explorer",
}
_ROOMS = (
    "vision", "zoo", "perturb", "draw", "attribution", "evidence", "metrics", "study", "compare", "report", "explorer",
    "bench", "testing",
)  # fmt: skip

__all__ = [
    "Attribution",
    "Classifier",
    "CrossTest",
    "Evidence",
    "EvidenceSet",
    "Grid",
    "Images",
    "Probe",
    "Runner",
    "Scores",
    "Study",
    "SufficeError",
    "SufficeWarning",
    "as_explain_func",
    "attribute",
    "cross_test",
    "explore",
    "find_evidence",
    "from_cam",
    "from_captum",
    "from_function",
    "given_maps",
    "list_baselines",
    "list_methods",
    "list_metrics",
    "list_models",
    "list_protocols",
    "load",
    "measure",
    "open_images",
]


def __getattr__(name: str) -> _Any:
    if name in _ROOMS:
        return _import_module(f"suffice.{name}")
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'suffice' has no attribute {name!r}")
    value = getattr(_import_module(f"suffice.{_ROOM_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS, "__version__", "__doc__"])
