"""Comparing models: what differs, by how much, and whether it could be chance.

* :func:`paired_ratio`: how many times more of something one model has than another, over the same images.
"""

from suffice.compare.paired import PairedRatio, paired_ratio

__all__ = ["PairedRatio", "paired_ratio"]
