"""What can be asked of finished images beyond the search, each where the settings want it.

``stability`` (small changes, a second baseline), ``contrast`` (enough, and the rest is not), ``necessity`` with
``hitting_sets`` (smallest removals), ``refinement`` (finer grids); ``recapture``: how much a search missed. ``extras``
adds them to evidence, ``block`` is some images with what was found in them.
"""
