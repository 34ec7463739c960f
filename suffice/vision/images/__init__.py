"""Images in: one function that opens whatever a user has.

Each file uses only those below it:

* ``opening``: :func:`open_images`, which tells what it was given, and :func:`register_images` for other kinds.
* ``listing``: the pictures of a folder; those that a CSV or JSONL file lists.
* ``sources``: the ways to the pixels of one picture: a file, bytes, a PIL image, an array, an item of a data set.
* ``picture``: :class:`Picture` and :class:`Images`, what is opened: lazy, with labels, boxes and a stable identity.
* ``decode``: a file nobody has vouched for as an upright RGB image. ``arrays``: tensors and arrays as pixels.
"""

from suffice.vision.images.opening import open_images, register_images, split_slice
from suffice.vision.images.picture import Images, Picture

__all__ = ["Images", "Picture", "open_images", "register_images", "split_slice"]
