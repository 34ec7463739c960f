"""Attribution: maps of what matters to a model's decision, high = important.

Each method is one file and one function from a classifier and images to maps [N, h, w] at the method's own resolution.
The methods leave the model as they found it, and an image's map does not depend on the images beside it.

* :func:`i_gos`: the smallest, smoothest deletion that makes the class fade, by integrated gradients.
* :func:`seed_map`: its short form, by which structured attention graphs rank the cells of a grid.
"""

from suffice.attribute.igos import i_gos, seed_map

__all__ = ["i_gos", "seed_map"]
