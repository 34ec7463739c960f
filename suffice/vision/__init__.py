"""Images in, classifiers in, and where a model keeps its parts.

* :func:`open_images`, :class:`Images`, :class:`Picture`, :func:`register_images`: images from files, folders, lists,
  tensors and data sets; lazy, with labels, boxes and a stable identity.
* :func:`load`, :func:`list_models`, :class:`Classifier`, :func:`as_classifier`, :func:`register_source`: classifiers by
  name, or from your own module.
* :class:`Geometry`: resize and crop, in pixel space; normalization comes after masking.
* :mod:`suffice.vision.anatomy`: tokens, attention, blocks and feature maps of a model, and recording them.
"""

from suffice.vision.classifier import Classifier
from suffice.vision.geometry import Geometry
from suffice.vision.images import Images, Picture, open_images, register_images
from suffice.vision.models import ModelEntry, Source, list_models, load, model_entries, register_source
from suffice.vision.outputs import Predictions
from suffice.vision.wrap import Model, as_classifier

__all__ = [
    "Classifier",
    "Geometry",
    "Images",
    "Model",
    "ModelEntry",
    "Picture",
    "Predictions",
    "Source",
    "as_classifier",
    "list_models",
    "load",
    "model_entries",
    "open_images",
    "register_images",
    "register_source",
]
