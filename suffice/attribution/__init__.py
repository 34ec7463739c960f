"""Attribution: maps of what matters to a model's decision, high = important.

Each method is one file in the folder ``methods``
and one function from a :class:`Task` to maps [B, h, w] at the method's own resolution. Methods leave the model as they
found it, and an image's map does not depend on the images beside it.

* :func:`attribute`: maps of images by any method; :class:`Attribution`: what it returns.
* :func:`suffice.list_methods`, :class:`Method`: what there is, and what it needs of a model.
* :func:`method`, :class:`Task`: how a method is declared, and what it gets to work on.
* :func:`given_maps`: maps made elsewhere. :func:`from_function`, :func:`from_captum`, :func:`from_cam`: methods of
  others. :func:`as_explain_func`: methods for Quantus.
* :func:`i_gos`, :func:`seed_map`: the search of structured attention graphs ranks cells by these.
"""

from suffice.attribution.adapters import as_explain_func, from_cam, from_captum, from_function
from suffice.attribution.attribution import Attribution, given_maps
from suffice.attribution.call import attribute
from suffice.attribution.igos import i_gos, seed_map
from suffice.attribution.method import Method, all_methods, find_method, forget_method, list_methods, method
from suffice.attribution.task import Task

__all__ = [
    "Attribution",
    "Method",
    "Task",
    "all_methods",
    "as_explain_func",
    "attribute",
    "find_method",
    "forget_method",
    "from_cam",
    "from_captum",
    "from_function",
    "given_maps",
    "i_gos",
    "list_methods",
    "method",
    "seed_map",
]
