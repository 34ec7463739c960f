"""Knowledge distillation: learning from a teacher beside the labels."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from suffice.errors import OptionError
from suffice.vision.outputs import class_scores
from suffice.zoo.training.data import Normalize, TrainingData
from suffice.zoo.training.recipe import Recipe


class Teacher:
    """A trained network whose decisions another one learns, with its own normalization.

    Args:
        module: The network. It is put into evaluation mode and gets no gradients.
        classes: Names of its classes.
        mean: Of its normalization.
        std: Of its normalization.
        name: What reports call it.
        device: Where to put it.
    """

    def __init__(
        self,
        module: nn.Module,
        classes: tuple[str, ...],
        mean: tuple[float, ...],
        std: tuple[float, ...],
        name: str = "teacher",
        device: str | torch.device = "cpu",
    ) -> None:
        self.module = module.to(device).eval().requires_grad_(False)
        self.classes = classes
        self.name = name
        self.normalize = Normalize(mean, std, device)

    def check(self, data: TrainingData) -> None:
        """Raise unless it knows the classes of a data set, in the same order."""
        if self.classes != data.classes:
            known, there = (f"{len(c)} classes ({', '.join(c[:3])}, …)" for c in (self.classes, data.classes))
            raise OptionError(
                f"The teacher {self.name} knows {known}, the data {data.name} has {there}. Train the teacher on the "
                "same data."
            )

    @torch.no_grad()
    def __call__(self, images: Tensor) -> Tensor:
        """Logits [B, K] of images [B, 3, H, W] in [0, 1]."""
        return class_scores(self.module(self.normalize(images)))


def heads(output: Any) -> tuple[Tensor, Tensor]:
    """What learns from the labels and what learns from the teacher: two heads in timm's distilled networks.

    Args:
        output: Logits [B, K], or a pair of them.

    Returns:
        Two logits [B, K]; the same one twice for a network with one head.
    """
    if isinstance(output, tuple) and len(output) == 2 and all(isinstance(o, Tensor) for o in output):
        return output[0].float(), output[1].float()
    scores = class_scores(output).float()
    return scores, scores


def distillation_loss(student: Tensor, teacher: Tensor, recipe: Recipe) -> Tensor:
    """How far a student is from its teacher.

    Hard: cross entropy against the class that the teacher decides for. Soft: divergence between both softened
    distributions, times the squared temperature, so that gradients keep their size.

    Args:
        student: Logits [B, K].
        teacher: Logits [B, K].
        recipe: Which of the two, and the temperature.

    Example:
        >>> logits = torch.tensor([[2.0, 0.0]])
        >>> float(distillation_loss(logits, logits, Recipe(distillation="soft")))
        0.0
    """
    if recipe.distillation == "hard":
        return F.cross_entropy(student, teacher.argmax(1))
    softened = student.div(recipe.temperature).log_softmax(1)
    wanted = teacher.float().div(recipe.temperature).log_softmax(1)
    return F.kl_div(softened, wanted, reduction="batchmean", log_target=True) * recipe.temperature**2
