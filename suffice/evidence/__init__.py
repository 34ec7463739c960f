"""What is enough for a model to decide: minimal sufficient explanations and what lies below them.

* :func:`find_evidence`: beam search for minimal sufficient explanations (MSEs) in many images at once;
  :class:`EvidenceStream`: the same, image by image. A :class:`suffice.Study` goes on where it ended.
* :class:`EvidenceSet`, :class:`Evidence`, :class:`MSE`: what it finds: regions, counts, tables.
* :class:`Graph`: the structured attention graph of an image, as a picture and for other programs.
* :class:`Settings`, :func:`preset`, :func:`list_presets`: every choice behind the numbers.
* :func:`completeness`: how much a search missed.

Inside: ``search`` finds, ``beyond`` asks further, ``graph`` draws, ``files`` keeps.
"""

from suffice.evidence.api import find_evidence
from suffice.evidence.beyond.recapture import Completeness, completeness
from suffice.evidence.graph.graph import Graph
from suffice.evidence.result import MSE, Evidence, EvidenceSet
from suffice.evidence.settings import Settings, list_presets, preset
from suffice.evidence.stream import EvidenceStream

__all__ = [
    "MSE",
    "Completeness",
    "Evidence",
    "EvidenceSet",
    "EvidenceStream",
    "Graph",
    "Settings",
    "completeness",
    "find_evidence",
    "list_presets",
    "preset",
]
