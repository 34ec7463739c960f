"""Pens: everything that draws, and knows nothing of what is drawn.

* :func:`tag`, :func:`text`, :func:`document`: SVG as text; :func:`wrap`, :func:`shortened`: text that keeps to a width.
* :func:`ramp_color`, :func:`map_colors`: colors of numbers; :mod:`suffice.draw.palettes` has all colors in use.
* :func:`overlay`: maps over pictures.
* :func:`as_image`, :func:`small_picture`, :func:`to_png`, :func:`from_png`, :func:`data_uri`: pictures in and out.
* :func:`region_picture`, :class:`Thumbnails`: some cells of a picture, the rest dimmed.
* :func:`lay_out`: layered graphs with few crossings.
* :func:`save_picture`: a document as SVG, PNG or PDF, by the ending of the file.
* :func:`show`: a document in the notebook, or in the browser.
"""

from suffice.draw.files import save_picture
from suffice.draw.layers import Layers, lay_out
from suffice.draw.overlays import map_colors, overlay
from suffice.draw.palettes import ramp_color
from suffice.draw.pictures import as_image, data_uri, from_png, small_picture, to_png
from suffice.draw.svg import document, show, tag, text
from suffice.draw.thumbnails import Thumbnails, region_picture
from suffice.draw.words import shortened, wrap

__all__ = [
    "Layers",
    "Thumbnails",
    "as_image",
    "data_uri",
    "document",
    "from_png",
    "lay_out",
    "map_colors",
    "overlay",
    "ramp_color",
    "region_picture",
    "save_picture",
    "shortened",
    "show",
    "small_picture",
    "tag",
    "text",
    "to_png",
    "wrap",
]
