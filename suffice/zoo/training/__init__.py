"""Training of small networks: a compact recipe, everything on the device, resumable.

* :func:`open_data`, :class:`TrainingData`, :class:`Examples`: scenes, folders and files of JPEGs, prepared once.
* :class:`Recipe`, :func:`recipe_for`: every choice of a run in one value.
* :func:`train`, :class:`Trained`, :class:`Progress`: one run.
* :class:`Teacher`, :func:`load_teacher`: learning from another network.
* :func:`save_trained`, :func:`load_trained`, :func:`read_facts`: weights in half precision with all facts beside them.
"""

from suffice.zoo.training.data import Examples, TrainingData
from suffice.zoo.training.distill import Teacher
from suffice.zoo.training.loop import Progress
from suffice.zoo.training.recipe import Recipe, recipe_for
from suffice.zoo.training.sources import open_data
from suffice.zoo.training.trainer import Trained, train
from suffice.zoo.training.weights import load_teacher, load_trained, read_facts, save_trained

__all__ = [
    "Examples",
    "Progress",
    "Recipe",
    "Teacher",
    "Trained",
    "TrainingData",
    "load_teacher",
    "load_trained",
    "open_data",
    "read_facts",
    "recipe_for",
    "save_trained",
    "train",
]
