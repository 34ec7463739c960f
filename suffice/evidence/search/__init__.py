"""The search for minimal sufficient explanations, many images in lockstep.

``searcher`` leads every image through its phases: ``beam`` (levels that grow from single cells), ``deletion`` (from the
whole image down), ``confirmation`` (in fp32), ``minimality`` (pruning and certificates), ``lattice`` (what lies below).
``criterion`` is what suffices, ``reduction`` taking sets down outside of a search, ``seed_map`` a ranking of cells;
``reading_out`` makes values of what a search has in tensors.
"""
