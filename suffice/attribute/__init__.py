"""Attribution: maps of what matters to a model's decision, high = important.

``suffice.attribute(net, images, method)`` calls this room itself. Each method is one file in the folder ``methods``
and one function from a :class:`Task` to maps [B, h, w] at the method's own resolution. Methods leave the model as they
found it, and an image's map does not depend on the images beside it.

* :func:`attribute`: maps of images by any method; :class:`Attribution`: what it returns.
* :func:`suffice.methods`, :class:`Method`: what there is, and what it needs of a model.
* :func:`method`, :class:`Task`: how a method is declared, and what it gets to work on.
* :func:`given_maps`: maps made elsewhere. :func:`from_function`, :func:`from_captum`, :func:`from_cam`: methods of
  others. :func:`as_explain_func`: methods for Quantus.
* :func:`i_gos`, :func:`seed_map`: the search of structured attention graphs ranks cells by these.
"""

import sys
from types import ModuleType
from typing import Any

from suffice.attribute.adapters import as_explain_func, from_cam, from_captum, from_function
from suffice.attribute.attribution import Attribution, given_maps
from suffice.attribute.call import attribute
from suffice.attribute.igos import i_gos, seed_map
from suffice.attribute.method import Method, find_method, forget_method, method
from suffice.attribute.task import Task

__all__ = [
    "Attribution",
    "Method",
    "Task",
    "as_explain_func",
    "attribute",
    "find_method",
    "forget_method",
    "from_cam",
    "from_captum",
    "from_function",
    "given_maps",
    "i_gos",
    "method",
    "seed_map",
]


class _Room(ModuleType):
    """A room that can be called: ``suffice.attribute`` is the room and its main function at once."""

    def __call__(self, *args: Any, **options: Any) -> Attribution:
        return attribute(*args, **options)


sys.modules[__name__].__class__ = _Room
