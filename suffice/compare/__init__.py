"""Comparing models: what differs, by how much, and whether it could be chance.

* :func:`compare_study`, :class:`Comparison`, :class:`Section`: every table that a study allows;
  :func:`study_of_models` makes one.
* :func:`cross_test`, :class:`CrossTest`: is what one model finds important enough for another?
* :func:`compare_pairs`, :class:`Difference`: every two models over the same images: tests, effect sizes, intervals.
* :func:`rank_models`, :class:`Ranked`: a ranking with letters for those that do not differ.
* :func:`compare_trainings`, :class:`TrainingDifference`, :func:`seeds_needed`: would other trainings say the same?
* :func:`adjusted_difference`, :class:`AdjustedDifference`: and at equal accuracy?
* :func:`how_it_decides`, :class:`Decides`: how compositional and how disjunctive a model is; :func:`explained_by`.
* :func:`landscape`, :class:`Landscape`: where models lie, by their cross-test.
* :func:`family_matrix`, :class:`FamilyMatrix`: whether families test alike.
* :func:`activations`, :class:`Activations`: whether a few channels decide.
* :func:`average_models`, :func:`suggest_members`, :class:`Ensemble`: does one know what another does not?
* :func:`look_through`, :func:`disputed_images`, :func:`most_disputed`, :class:`Looks`, :class:`Look`: a cross-test to
  look at.
* :func:`judge_images`, :func:`share_without`, :class:`WithoutObject`: images that are decided without their object;
  :func:`find_shortcuts`, :class:`ClassEvidence`: classes that are; :func:`shortcuts_of_study`, :class:`Shortcuts`: both
  of the models of a study; :func:`write_shortcuts`; :func:`covered_cells`, :func:`masks_on_grid`,
  :func:`objects_on_grid`: where objects are.
* :func:`paired_ratio`, :class:`PairedRatio`: how many times more of something one model has than another.
"""

from suffice.compare.adjusting import AdjustedDifference, adjusted_difference
from suffice.compare.channels import Activations, activations
from suffice.compare.cross import cross_test
from suffice.compare.cross_result import CrossTest
from suffice.compare.ensembles import Ensemble, average_models, suggest_members
from suffice.compare.families import FamilyMatrix, family_matrix
from suffice.compare.indices import Decides, Index, explained_by, how_it_decides
from suffice.compare.landscapes import Landscape, landscape
from suffice.compare.looks import Look, Looks, disputed_images, look_through, most_disputed
from suffice.compare.objects import covered_cells, masks_on_grid, objects_on_grid
from suffice.compare.of_shortcuts import DecidedImage, Shortcuts, shortcuts_of_study
from suffice.compare.of_study import compare_study, study_of_models
from suffice.compare.paired import PairedRatio, paired_ratio
from suffice.compare.pairwise import Difference, compare_pairs
from suffice.compare.ranking import Ranked, rank_models
from suffice.compare.sections import Comparison, Section
from suffice.compare.shortcut_files import write_shortcuts
from suffice.compare.shortcuts import (
    ClassEvidence,
    JudgedImage,
    Place,
    WithoutObject,
    find_shortcuts,
    judge_images,
    share_without,
)
from suffice.compare.trainings import TrainingDifference, compare_trainings, seeds_needed

__all__ = [
    "Activations",
    "AdjustedDifference",
    "ClassEvidence",
    "Comparison",
    "CrossTest",
    "DecidedImage",
    "Decides",
    "Difference",
    "Ensemble",
    "FamilyMatrix",
    "Index",
    "JudgedImage",
    "Landscape",
    "Look",
    "Looks",
    "PairedRatio",
    "Place",
    "Ranked",
    "Section",
    "Shortcuts",
    "TrainingDifference",
    "WithoutObject",
    "activations",
    "adjusted_difference",
    "average_models",
    "compare_pairs",
    "compare_study",
    "compare_trainings",
    "covered_cells",
    "cross_test",
    "disputed_images",
    "explained_by",
    "family_matrix",
    "find_shortcuts",
    "how_it_decides",
    "judge_images",
    "landscape",
    "look_through",
    "masks_on_grid",
    "most_disputed",
    "objects_on_grid",
    "paired_ratio",
    "rank_models",
    "seeds_needed",
    "share_without",
    "shortcuts_of_study",
    "study_of_models",
    "suggest_members",
    "write_shortcuts",
]
