"""Masks found by optimization: what I-GOS, iGOS+ and iGOS++ share.

Masks are kept as what they delete, 0 = keep and 1 = delete, the opposite of the literature: most cells are hardly
deleted at all, and floating point numbers are fine beside 0 but coarse beside 1. An image has one plane of cells or
more, and planes act together by the product of what they keep.

* ``blending``: inputs of a model, by masks of few cells.
* ``scores``: scores of masked images along a path, and how that changes with the cells.
* ``objective``: what deletions cost, and both together, for many images at once.
* ``line_search``: how far to go against a gradient.
* ``optimize``: the way down, to the deletions found.
"""
