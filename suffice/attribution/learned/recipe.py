"""The recipe of an explainer: every choice of its training, in one value that is stored with the weights."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Annotated, Literal

from suffice.attribution.learned.objective import MaskLoss, Objective
from suffice.options import Amount, Count, Range, Share, check_fields
from suffice.vision.identity import content_hash

ExplainedClass = Literal["predicted", "label"]
Trains = Literal["all", "head"]
Positive = Annotated[float, Range(0, above=True)]


@dataclass(frozen=True)
class ExplainerRecipe:
    """Everything that decides how an explainer is trained.

    Args:
        explains: The class that masks are to keep: the one that the model ``"predicted"``, or the image's ``"label"``
            (which the paper calls target).
        mask_weight: λ, the weight of the penalty on masks; published: 50 with ``mask_loss="bce-of-logit"`` and a
            thousand classes (30 for ViT-S). Fewer classes, or the steeper ``"bce"``, want less.
        mask_loss: The penalty: ``"bce"``, ``"bce-of-logit"`` as the published code has it, or ``"l1"``; see
            :mod:`suffice.attribution.learned.objective`.
        rising: Share of the steps in which λ rises from 0 along a line; published: 0. Where it has its full weight from
            the start, some models are blackened out before the explainer knows what they look at, and it stays so.
        baseline: What shows where a mask hides.
        trains: ``"all"`` but the embeddings, or the ``"head"`` alone, with the trunk as it came.
        alters: Whether an image is altered each time it is seen: a random half of it or more fills the frame, perhaps
            mirrored. For long trainings on few images. A class that is the predicted one is predicted anew.
        epochs: Passes over the training images; not used where ``steps`` is given.
        steps: Number of batches.
        batch: Images in a batch.
        lr: Highest learning rate of AdamW; published: 0.002, which its training never reached.
        weight_decay: Of AdamW.
        warmup: Share of the steps in which the learning rate rises; afterwards it falls, both along a line. It is
            counted on the steps that are really done, so the highest rate is reached.
        seed: Of the head's first weights and the order of images.

    Example:
        >>> recipe = ExplainerRecipe(steps=10, warmup=0.2)
        >>> [round(recipe.learning_rate(step, 10) / recipe.lr, 2) for step in range(10)]
        [0.5, 1.0, 0.89, 0.78, 0.67, 0.56, 0.44, 0.33, 0.22, 0.11]
        >>> ExplainerRecipe.from_json(ExplainerRecipe(batch=8).to_json()).batch
        8
    """

    explains: ExplainedClass = "predicted"
    mask_weight: Amount = 5.0
    mask_loss: MaskLoss = "bce"
    rising: Share = 0.5
    baseline: str = "black"
    trains: Trains = "all"
    alters: bool = False
    epochs: Positive = 4.0
    steps: Count | None = None
    batch: Count = 32
    lr: Positive = 1e-3
    weight_decay: Amount = 0.01
    warmup: Share = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def objective(self) -> Objective:
        """The loss in the end."""
        return Objective(self.mask_weight, self.mask_loss, self.baseline)

    def total_steps(self, images: int) -> int:
        """Number of batches, for so many training images."""
        return self.steps or max(1, round(self.epochs * images / min(self.batch, images)))

    def learning_rate(self, step: int, total: int) -> float:
        """Learning rate of a step (from 0) of so many: up along a line to ``lr``, and down along another."""
        rising = round(self.warmup * total)
        if step < rising:
            return self.lr * (step + 1) / rising
        return self.lr * (total - step) / max(total - rising + 1, 1) if rising else self.lr * (total - step) / total

    def objective_of(self, step: int, total: int) -> Objective:
        """The loss of a step (from 0) of so many."""
        share = min(1.0, (step + 1) / (self.rising * total)) if self.rising else 1.0
        return Objective(self.mask_weight * share, self.mask_loss, self.baseline)

    def seed_of(self, what: str, number: int = 0) -> int:
        """The seed of one random thing, so that a resumed run needs no state of generators."""
        return int(content_hash(str(self.seed), what, str(number))[:16], 16) >> 1

    def to_json(self) -> str:
        """As JSON, on one line."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ExplainerRecipe:
        """From what :meth:`to_json` wrote."""
        return cls(**json.loads(text))
