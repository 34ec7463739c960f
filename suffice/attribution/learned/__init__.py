"""Explainers that are learned: networks that look at an image and say what of it matters to another network.

* :class:`Explainer`: a trunk, copied from any classifier, and a head; :class:`Objective`: what it is trained for.
* :class:`ExplainerRecipe`, :func:`train_explainer`, :class:`TrainedExplainer`: its training, resumable.
* :func:`save_explainer`, :func:`load_explainer`, :class:`LoadedExplainer`: files, checked against the model.
* :func:`ready_explainer`: those that come with the package.
* :class:`ShapleyRecipe`, :func:`train_shapley`, :class:`LearnedShapley`, :func:`save_shapley`, :func:`load_shapley`:
  Shapley values that are learned.

The methods ``eea`` and ``vit-shapley`` use them.
"""

from suffice.attribution.learned.explainer import Explainer
from suffice.attribution.learned.files import (
    LoadedExplainer,
    load_explainer,
    read_explainer_facts,
    save_explainer,
)
from suffice.attribution.learned.images import ExplainerImages, open_explainer_images
from suffice.attribution.learned.objective import Objective
from suffice.attribution.learned.ready import ready_explainer
from suffice.attribution.learned.recipe import ExplainerRecipe
from suffice.attribution.learned.shapley import LearnedShapley, ShapleyRecipe
from suffice.attribution.learned.shapley_files import load_shapley, save_shapley
from suffice.attribution.learned.shapley_run import ShapleyProgress
from suffice.attribution.learned.shapley_training import train_shapley
from suffice.attribution.learned.training import ExplainerProgress, TrainedExplainer, train_explainer

__all__ = [
    "Explainer",
    "ExplainerImages",
    "ExplainerProgress",
    "ExplainerRecipe",
    "LearnedShapley",
    "LoadedExplainer",
    "Objective",
    "ShapleyProgress",
    "ShapleyRecipe",
    "TrainedExplainer",
    "load_explainer",
    "load_shapley",
    "open_explainer_images",
    "read_explainer_facts",
    "ready_explainer",
    "save_explainer",
    "save_shapley",
    "train_explainer",
    "train_shapley",
]
