"""The classifier: a module bound to its own preprocessing, label names and family."""

from __future__ import annotations

import functools
import numbers
import operator
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, Union

import torch
from torch import Tensor, nn

from suffice.errors import OptionError
from suffice.options import Count, check_options
from suffice.plugins import did_you_mean
from suffice.progress import counted, reports
from suffice.vision.anatomy.preserve import evaluating
from suffice.vision.batching import BatchLoop
from suffice.vision.devices import usable_device
from suffice.vision.families import default_family
from suffice.vision.geometry import Geometry, GivenPreprocessing, Rule, split_preprocessing
from suffice.vision.images import open_images
from suffice.vision.images.arrays import pixels_of_tensor
from suffice.vision.normalization import check_normalization, numbers_of
from suffice.vision.outputs import Predictions, class_scores, warn_of_nan
from suffice.vision.stream import OnError, stream
from suffice.vision.trial import GrayInput, check_channels, check_labels

if TYPE_CHECKING:
    from suffice.vision.anatomy import Anatomy

Score = Literal["softmax", "sigmoid", "logit"]
Targets = Union[None, int, str, Sequence[int | str], Tensor]
SCORES: dict[str, Callable[[Tensor], Tensor]] = {
    "softmax": lambda logits: logits.softmax(dim=-1),
    "sigmoid": torch.sigmoid,
    "logit": lambda logits: logits,
}


def targets_of(targets: Targets, index: Sequence[int], count: int) -> int | str | list[int | str] | None:
    """The targets (None, one for all, or one for each of ``count`` images) of the images at some positions.

    Tensors, NumPy arrays, their scalars and pandas Series are taken as the plain values that they hold.
    """
    plain: Any = targets
    if hasattr(plain, "tolist"):
        plain = plain.reshape(-1).tolist() if getattr(plain, "ndim", 1) > 1 else plain.tolist()
    if plain is None or isinstance(plain, (int, str)):
        return plain
    if not isinstance(plain, Sequence):
        raise OptionError(f"targets={plain!r}; write None, a class for all images, or a list with one for each.")
    if len(plain) != count:
        raise OptionError(f"{len(plain)} targets were given for {count} images; give one for all or one per image.")
    return [plain[i] for i in index]


class Classifier:
    """A module bound to its own preprocessing, label names and family; what every function takes.

    Calling it maps pixels to scores, ``[N, 3, H, W]`` in [0, 1] to ``[N, classes]``, with gradients where they are
    enabled, so it is also a ``forward_func`` for Captum.

    Args:
        module: Any module that returns class scores as a tensor, or in a tuple, dict or ``ModelOutput``. It is used
            in evaluation mode and left in the mode it was in. A module of timm brings its preprocessing and labels
            along, in its ``pretrained_cfg``; what is given here goes before it.
        size: Input height and width, or one number for both.
        mean: Mean of each channel, in [0, 1]. One number, and one as ``std``, for a module that takes gray images: it
            gets the gray of color images, while masks and gradients stay in color.
        std: Standard deviation of each channel.
        preprocess: A callable from PIL image to tensor, instead of ``size``, ``mean`` and ``std``; such as
            ``weights.transforms()`` of torchvision, timm's ``create_transform(...)``, or your own.
        geometry: Resize and crop, where ``size`` alone (short side to ``size``, center crop) does not say it.
        resize: ``"crop"`` or ``"squash"`` to overrule the resize rule of the weights; see :class:`Geometry`.
        labels: Name of each class.
        synsets: WordNet id of each class, where the classes are ImageNet's.
        name: How tables and files call the model.
        family: Group for comparisons; default by name, see :func:`suffice.vision.families.default_family`.
        score: What the confidence is: ``"softmax"`` probability, ``"sigmoid"`` or the ``"logit"`` itself.
        device: Move the module there; default: leave it where it is.

    Raises:
        OptionError: The preprocessing is not known (it is never guessed), the module takes images of other channels, or
            there are more or fewer labels than classes.

    Example:
        >>> module = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 2))
        >>> net = Classifier(module, size=32, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5), labels=["cat", "dog"])
        >>> net(torch.rand(4, 3, 32, 32)).shape
        torch.Size([4, 2])
        >>> net.predict(torch.rand(4, 3, 32, 32)).targets.shape
        torch.Size([4])
    """

    checkpoint: str | None = None
    """Name of the file that the weights came from, where :func:`suffice.load` read one."""

    def __init__(
        self,
        module: nn.Module,
        *,
        size: int | tuple[int, int] | None = None,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        preprocess: Callable[[Any], Any] | None = None,
        geometry: Geometry | GivenPreprocessing | None = None,
        resize: Rule | None = None,
        labels: Sequence[str] | None = None,
        synsets: Sequence[str] | None = None,
        name: str | None = None,
        family: str | None = None,
        score: Score = "softmax",
        device: str | torch.device | None = None,
    ) -> None:
        if not isinstance(module, nn.Module):
            raise OptionError(f"A classifier is made from an nn.Module, not from {type(module).__name__}.")
        check_options({"score": score, "resize": resize}, Classifier.__init__)
        pair = (int(size), int(size)) if isinstance(size, (int, numbers.Integral)) else size
        mean, std = numbers_of("mean", mean), numbers_of("std", std)
        if preprocess is not None:
            geometry, own_mean, own_std = split_preprocessing(preprocess, pair)
            mean, std = mean or own_mean or (0.0, 0.0, 0.0), std or own_std or (1.0, 1.0, 1.0)
        elif geometry is None and pair is not None:
            geometry = Geometry(pair)
        if geometry is None or mean is None or std is None:
            from suffice.vision.libraries import timm_knowledge

            known = timm_knowledge(module)
            geometry, mean, std = geometry or known.get("geometry"), mean or known.get("mean"), std or known.get("std")
            if labels is None:
                labels, synsets = known.get("labels"), known.get("synsets")
            name, family = name or known.get("name"), family or known.get("family")
        if geometry is None or mean is None or std is None:
            lacking = [n for n, v in (("size", geometry), ("mean", mean), ("std", std)) if v is None]
            raise OptionError(
                f"The preprocessing of {name or type(module).__name__} is not known: {', '.join(lacking)} missing. "
                "Write size=, mean= and std=, or preprocess= with the callable that the model was trained with, such "
                "as weights.transforms() of torchvision."
            )
        if resize is not None:
            if not isinstance(geometry, Geometry):
                raise OptionError("resize= needs a known geometry; a preprocess= callable already resizes its own way.")
            geometry = geometry.with_rule(resize)

        if len(mean) == len(std) == 1:
            module = module if isinstance(module, GrayInput) else GrayInput(module)
            mean, std = [*mean] * 3, [*std] * 3
        self.module = module if device is None else module.to(usable_device(device))
        self.geometry = geometry
        self.mean, self.std = check_normalization(mean, std)
        self.labels = None if labels is None else [str(label) for label in labels]
        self.synsets = None if synsets is None else list(synsets)
        self.name = name or type(module).__name__
        self.family = family or default_family(self.name) or "other"
        self.score = score
        check_channels(self.module, self.name, self._trial)
        if self.labels is not None:
            check_labels(self.module, self.name, len(self.labels), self._trial)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the input."""
        return self.geometry.size

    @property
    def device(self) -> torch.device:
        """Where the module is."""
        tensor = next(chain(self.module.parameters(), self.module.buffers()), None)
        return torch.device("cpu") if tensor is None else tensor.device

    @property
    def dtype(self) -> torch.dtype:
        """The floating point type that the module computes in."""
        return next((p.dtype for p in self.module.parameters() if p.is_floating_point()), torch.float32)

    @functools.cached_property
    def anatomy(self) -> Anatomy:
        """Where the model keeps its tokens, attention, blocks and feature maps."""
        from suffice.vision.anatomy import describe

        return describe(self.module, self.size)

    def to(self, device: str | torch.device) -> Classifier:
        """Move the module, as ``nn.Module.to`` does; returns this classifier."""
        self.module.to(usable_device(device))
        return self

    def __call__(self, pixels: Tensor) -> Tensor:
        """Scores [N, classes], float32, of pixels [N, 3, H, W] in [0, 1]."""
        with self.evaluating():
            return self.scores(self.logits(self.normalize(pixels)))

    def normalize(self, pixels: Tensor) -> Tensor:
        """Pixels [N, 3, H, W] in [0, 1] as the module wants them."""
        mean = torch.tensor(self.mean, device=pixels.device).view(-1, 1, 1)
        std = torch.tensor(self.std, device=pixels.device).view(-1, 1, 1)
        return ((pixels - mean) / std).to(self.dtype)

    def logits(self, normalized: Tensor) -> Tensor:
        """The module's own class scores [N, classes], float32, of normalized input [N, 3, H, W]."""
        return class_scores(self.module(normalized)).float()

    def scores(self, logits: Tensor) -> Tensor:
        """Logits [N, classes] as the chosen score, such as softmax probabilities."""
        if self.score == "softmax" and logits.shape[-1] == 1:
            raise OptionError(
                f"{self.name} has one output, and the softmax of one number is always 1; write score='sigmoid'."
            )
        return SCORES[self.score](logits)

    def evaluating(self) -> AbstractContextManager[None]:
        """Evaluation mode inside; afterwards each submodule is in the mode it was in."""
        return evaluating(self.module)

    def prepare(self, images: Any) -> Tensor:
        """Images, as :func:`suffice.open_images` takes them, as float32 pixels [N, 3, H, W] on the module's device."""
        if isinstance(images, Tensor) and images.dim() == 4 and tuple(images.shape[-2:]) == self.size:
            # What is ready stays where it is: no round trip over the host.
            return pixels_of_tensor(images).to(self.device)
        return torch.cat([batch.pixels for batch in stream(open_images(images), self.geometry)]).to(self.device)

    @reports("Predicting")
    @torch.no_grad()
    def predict(
        self,
        images: Any,
        *,
        batch_size: Count = 64,
        on_error: OnError = "raise",
        progress: bool = False,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Predictions:
        """Predict the class of each image that can be read.

        Args:
            images: Anything that :func:`suffice.open_images` takes.
            batch_size: Images per forward; halved, with one warning, when memory runs out.
            on_error: ``"raise"`` the error of an image that cannot be read, or ``"skip"`` it and record it in
                ``.skipped``.
            progress: Show how far it is, with the time left.
            on_progress: Called with (images done, images in all) after each batch.
        """
        opened = open_images(images)
        batches = stream(opened, self.geometry, batch_size=batch_size, on_error=on_error)
        loop = BatchLoop(batch_size, self.device)
        index: list[Tensor] = []
        scores: list[Tensor] = []
        for batch in counted(batches, "predictions", len(opened), each=1):
            index.append(batch.index)
            scores.extend(loop.run(len(batch.pixels), functools.partial(self._forward, batch.pixels)))
            if on_progress is not None:
                on_progress(int(batch.index[-1]) + 1, len(opened))
        rows = torch.cat(index) if index else torch.zeros(0, dtype=torch.long)
        table = torch.cat(scores) if scores else torch.zeros(0, len(self.labels or ()))
        warn_of_nan(table, self.name)
        return Predictions(table, rows, [opened[i].name for i in rows.tolist()], self.labels, batches.skipped)

    @torch.no_grad()
    def _trial(self) -> Tensor:
        """What the module says of a gray image, [1, classes]."""
        with self.evaluating():
            return self.logits(self.normalize(torch.full((1, 3, *self.size), 0.5, device=self.device)))

    def _forward(self, pixels: Tensor, rows: slice) -> Tensor:
        return self(pixels[rows].to(self.device)).cpu()

    def class_index(self, label: int | str) -> int:
        """The index of the class that a label means: an index, a class name, or a WordNet id such as ``"n02123045"``.

        Raises:
            OptionError: No class has that label; the message suggests close ones.
        """
        if not isinstance(label, str):
            try:
                label = operator.index(label)
            except TypeError as error:
                raise OptionError(f"A class is an index, a name or a WordNet id, and not {label!r}.") from error
            if self.labels is not None and not 0 <= label < len(self.labels):
                raise OptionError(f"{self.name} has classes 0 to {len(self.labels) - 1}; there is no class {label}.")
            return label
        wanted = label.strip().lower()
        for names in (self.synsets, self.labels):
            matches = [i for i, n in enumerate(names or ()) if n.lower() == wanted]
            if len(matches) == 1:
                return matches[0]
            if matches:  # ImageNet has two classes named "crane", and two named "maillot"
                raise OptionError(f"{label!r} names the classes {matches} of {self.name}; write one index instead.")
        if wanted.lstrip("-").isdigit():
            return self.class_index(int(wanted))
        hint = did_you_mean(label, self.labels or ())
        reason = "" if self.labels else " It has no label names: give the index, or labels= when making the classifier."
        raise OptionError(f"{self.name} has no class {label!r}.{hint}{reason}")

    def targets(self, targets: Targets, whole: Tensor) -> Tensor:
        """Targets as every function takes them, as class indices [N], int64.

        Args:
            targets: None (the predicted class), one index or label for all, or a list or tensor with one per image.
            whole: Scores [N, classes] of the whole images.
        """
        count, classes = whole.shape
        plain = targets_of(targets, range(count), count)
        if plain is None:
            return whole.argmax(dim=1)
        indices = [self.class_index(t) for t in ([plain] * count if isinstance(plain, (int, str)) else plain)]
        if wrong := [i for i in indices if not 0 <= i < classes]:
            raise OptionError(f"{self.name} has classes 0 to {classes - 1}; there is no class {wrong[0]}.")
        return torch.tensor(indices, dtype=torch.long, device=whole.device)

    def replace(self, **changes: Any) -> Classifier:
        """A classifier of the same module with something changed, such as ``net.replace(score="logit")``."""
        kept = ["module", "mean", "std", "labels", "synsets", "name", "family", "score"]
        if changes.get("preprocess") is None:
            kept += [] if "size" in changes else ["geometry"]
        elif split_preprocessing(changes["preprocess"])[1] is not None:  # it brings its own
            kept = [name for name in kept if name not in ("mean", "std")]
        made = Classifier(**{**{name: getattr(self, name) for name in kept}, **changes})
        made.checkpoint = self.checkpoint
        return made

    def with_module(self, module: nn.Module) -> Classifier:
        """The same classifier of another module, such as one with other weights."""
        return self.replace(module=module)

    def __repr__(self) -> str:
        height, width = self.size
        return f"Classifier({self.name!r}, family={self.family!r}, size={height}×{width}, device={str(self.device)!r})"
