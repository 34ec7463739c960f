"""The recipe: every choice of a training run, in one value that is stored with the weights."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from suffice.options import Amount, Count, Range, Share, check_fields
from suffice.vision.identity import content_hash

Distillation = Literal["hard", "soft"]
Precision = Literal["auto", "fp32", "bf16"]
Positive = Annotated[float, Range(0, above=True)]
BelowOne = Annotated[float, Range(0, 1, below=True)]

# What a network that is trained "with modern augmentation" gets on top of the defaults.
MODERN = {"mixup": 0.2, "erase": 0.25, "smoothing": 0.1, "jitter": 0.2}
# How a few thousand images with permuted labels are learned by heart. Transformers need many more passes than CNNs.
BY_HEART = {"epochs": 200.0, "enough": 0.99, "batch": 128, "weight_decay": 0.0}


@dataclass(frozen=True)
class Recipe:
    """Everything that decides how a network is trained. The defaults suit the scenes and one GPU.

    Args:
        epochs: Passes over the training images; not used where ``steps`` is given.
        steps: Number of batches.
        stop: End after so many of the steps, with the learning rate of that step; None does all. With ``ema`` what is
            kept then is worth about as much as what a shorter run ends with.
        enough: End the run early once this share of the training images, as augmented, is answered right; None does
            all steps.
        batch: Images in a batch.
        lr: Highest learning rate of AdamW.
        weight_decay: Of AdamW, for matrices and kernels only; never for norms, biases and embeddings.
        warmup: Share of the steps in which the learning rate rises linearly.
        final_lr: Learning rate at the last step, as a share of ``lr``; it falls there along a cosine.
        clip: Greatest norm of the gradient; None does not clip.
        smoothing: Label smoothing: this much of the target is spread over all classes.
        mixup: Both parameters of the beta distribution that images are mixed by; 0 does not mix.
        erase: Probability that a rectangle of an image is painted over with the mean color.
        jitter: Brightness and contrast are multiplied by up to 1 ± this.
        flip: Mirror half of the images left to right.
        crop: Shift images by up to so many pixels, with reflected borders.
        zoom: A part of each image is enlarged to the whole, of at least this share of its area; 1 shows all of it.
        ema: Decay of the moving average of the weights that is kept in the end; None keeps the last weights.
        teacher: Name of the network to learn from beside the labels; None is no distillation.
        distillation: ``"hard"`` learns the teacher's decisions, ``"soft"`` its probabilities.
        distill_weight: Weight of the teacher's loss; that of the labels has the rest.
        temperature: Softens both sides of soft distillation.
        permute_labels: Shuffle the labels among the training images, for sanity checks: nothing but
            memory can help then.
        precision: ``"bf16"`` (autocast), ``"fp32"``, or ``"auto"``: bf16 on a GPU.
        compile: Train through ``torch.compile``.
        channels_last: Keep kernels and images with their channels last in memory, which some GPUs' kernels want.
        seed: Of the initial weights, the order of images, and everything random.

    Example:
        >>> Recipe(steps=100).learning_rate(0, total=100) < Recipe().lr
        True
        >>> Recipe.from_json(Recipe(lr=0.5).to_json()).lr
        0.5
    """

    epochs: Positive = 5.0
    steps: Count | None = None
    stop: Count | None = None
    enough: Share | None = None
    batch: Count = 512
    lr: Positive = 2e-3
    weight_decay: Amount = 0.05
    warmup: Share = 0.05
    final_lr: Share = 0.01
    clip: Positive | None = 1.0
    smoothing: BelowOne = 0.0
    mixup: Amount = 0.0
    erase: Share = 0.0
    jitter: BelowOne = 0.0
    flip: bool = False
    crop: Annotated[int, Range(0)] = 0
    zoom: Annotated[float, Range(0, 1, above=True)] = 1.0
    ema: BelowOne | None = None
    teacher: str | None = None
    distillation: Distillation = "hard"
    distill_weight: Share = 0.5
    temperature: Positive = 3.0
    permute_labels: bool = False
    precision: Precision = "auto"
    compile: bool = False
    channels_last: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)

    def batch_of(self, images: int) -> int:
        """Images in a batch, for a training set of so many: a small set is one batch."""
        return min(self.batch, images)

    def total_steps(self, images: int) -> int:
        """Number of batches, for a training set of so many images."""
        if self.steps is not None:
            return self.steps
        return max(1, round(self.epochs * (images // self.batch_of(images))))

    def learning_rate(self, step: int, total: int) -> float:
        """Learning rate of a step (from 0): up along a line, down along a cosine, at its end in the last step."""
        rising = round(self.warmup * total)
        if step < rising:
            return self.lr * (step + 1) / rising
        done = (step - rising) / max(total - rising - 1, 1)
        floor = self.lr * self.final_lr
        return floor + (self.lr - floor) * (1 + math.cos(math.pi * done)) / 2

    def seed_of(self, what: str, number: int = 0) -> int:
        """The seed of one random thing, such as step 17, so that a resumed run needs no state of generators."""
        return int(content_hash(str(self.seed), what, str(number))[:16], 16) >> 1

    def to_json(self) -> str:
        """As JSON, on one line."""
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def from_json(text: str) -> Recipe:
        """From what :meth:`to_json` wrote."""
        return Recipe(**json.loads(text))

    def differences(self, other: Recipe) -> list[str]:
        """Where another recipe differs, for error messages."""
        mine, theirs = dataclasses.asdict(self), dataclasses.asdict(other)
        return [f"{name}: {mine[name]} and {theirs[name]}" for name in mine if mine[name] != theirs[name]]


def recipe_for(*, photographs: bool = False, augmented: bool = False, **given: Any) -> Recipe:
    """The defaults for a kind of images and of network, with what the user chose on top.

    Args:
        photographs: Photographs are mirrored and shifted and seen more often; scenes need neither.
        augmented: The network is one that is to be trained with modern augmentation.
        **given: Fields of the recipe; one that is None counts as not given.

    Returns:
        The recipe. With ``permute_labels=True`` nothing is augmented unless asked for, as what is to be learned by
        heart must stay the same, there are more passes in smaller batches, and the run ends when all is learned.

    Example:
        >>> recipe_for(photographs=True, lr=None, batch=64).flip
        True
        >>> recipe_for(photographs=True, permute_labels=True).flip
        False
    """
    chosen = {name: value for name, value in given.items() if value is not None}
    defaults: dict[str, Any] = {"epochs": 30.0} if photographs else {}
    if chosen.get("permute_labels"):
        defaults |= BY_HEART
    else:
        defaults |= {"flip": True, "crop": 4} if photographs else {}
        defaults |= MODERN if augmented else {}
    return Recipe(**{**defaults, **chosen})
