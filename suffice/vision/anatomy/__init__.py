"""Where a model keeps its tokens, attention, blocks and feature maps, and how to look at them.

``describe`` names the parts of a model from timm, torchvision, transformers, or any plain convolutional one,
and says how to read their outputs as maps or tokens; ``register_anatomy`` teaches it other models. ``record``
keeps outputs, attention and gradients of those parts during forward passes and leaves the model as it was.

Public names: ``Anatomy``, ``Gradients``, ``Layout``, ``Recording``, ``describe``, ``record``, ``register_anatomy``.
"""

from suffice.vision.anatomy.describe import describe, register_anatomy
from suffice.vision.anatomy.record import Gradients, Recording, record
from suffice.vision.anatomy.structure import Anatomy, Layout

__all__ = ["Anatomy", "Gradients", "Layout", "Recording", "describe", "record", "register_anatomy"]
