"""What is enough for a model to decide: minimal sufficient explanations and what lies below them.

* :func:`find_evidence`: beam search for MSEs in many images at once; :class:`EvidenceStream`: the same, image by image.
* :class:`Evidence`, :class:`EvidenceSet`, :class:`MSE`: what it finds: regions, counts, graphs, tables.
* :class:`Settings`, :func:`presets`: every choice behind the numbers.
"""

from suffice.evidence.find import EvidenceStream, find_evidence
from suffice.evidence.presets import presets
from suffice.evidence.result import MSE, Evidence, EvidenceSet
from suffice.evidence.settings import Settings

__all__ = ["MSE", "Evidence", "EvidenceSet", "EvidenceStream", "Settings", "find_evidence", "presets"]
