"""Attribution: maps of what matters to a model's decision, high = important.

Each method is one file in the folder ``methods`` and one function from a :class:`suffice.perturb.Batch` to maps
[B, h, w] at the method's own resolution. Methods leave the model as they found it, and an image's map does not depend
on the images beside it.

* :func:`attribute`: maps of images by any method; :class:`Attribution`: what it returns.
* :func:`list_methods`, :func:`find_method`, :class:`Method`: what there is, and what it needs of a model.
* :func:`method`: how a method is declared. :func:`explain`: maps of one batch, for whatever builds on methods.
* :func:`given_maps`: maps made elsewhere. :func:`from_function`, :func:`from_captum`, :func:`from_cam`: methods of
  others. :func:`as_explain_func`: methods for Quantus.
"""

from suffice.attribution.adapters import as_explain_func, from_cam, from_captum, from_function
from suffice.attribution.api import attribute, explain
from suffice.attribution.attribution import Attribution, given_maps
from suffice.attribution.method import Method, all_methods, find_method, forget_method, list_methods, method

__all__ = [
    "Attribution",
    "Method",
    "all_methods",
    "as_explain_func",
    "attribute",
    "explain",
    "find_method",
    "forget_method",
    "from_cam",
    "from_captum",
    "from_function",
    "given_maps",
    "list_methods",
    "method",
]
