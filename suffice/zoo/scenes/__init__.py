"""A small world of painted creatures, of which everything is known.

Each image, 56×56 pixels, shows one creature among distractors, partly hidden, in changing colors and light. A
creature has five parts (outline, texture, marking, crest, tail) of four types each; its class is a word of a code in
which any two parts are enough, so there are many ways to recognize it, and the masks of all parts are known.

* :func:`render`, :class:`Rendered`, :func:`render_pixels`, :func:`find_boxes`: images by number, the same on every
  device and in every batch.
* :class:`Scenes`, ``SPLITS``: the data set; :func:`open_scenes`: ``suffice.open_images("scenes:test[:200]")``.
* ``CLASSES``, ``PARTS``, ``TYPES``, ``CODE``, :func:`types_of`, :func:`classes_with`: which parts make which class.
* ``MARKS``, :func:`is_marked`, :func:`paint_marks`: a planted shortcut, ``suffice.open_images("scenes:test-marked")``.
* :func:`plan_scenes`, :class:`Plan`, :func:`render_plan`: the random choices behind an image, to change one of them.
"""

from suffice.zoo.scenes.code import CLASSES, CODE, PARTS, TYPES, classes_with, types_of
from suffice.zoo.scenes.dataset import SPLITS, Scenes, open_scenes
from suffice.zoo.scenes.marks import MARKS, is_marked, paint_marks
from suffice.zoo.scenes.plan import Plan, labels_of, plan_scenes
from suffice.zoo.scenes.ranges import SIZE
from suffice.zoo.scenes.render import Rendered, find_boxes, render, render_pixels, render_plan

__all__ = [
    "CLASSES",
    "CODE",
    "MARKS",
    "PARTS",
    "SIZE",
    "SPLITS",
    "TYPES",
    "Plan",
    "Rendered",
    "Scenes",
    "classes_with",
    "find_boxes",
    "is_marked",
    "labels_of",
    "open_scenes",
    "paint_marks",
    "plan_scenes",
    "render",
    "render_pixels",
    "render_plan",
    "types_of",
]
