"""What a network is trained on: pixels that stay on the device, as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from suffice.errors import OptionError
from suffice.vision.identity import content_hash


@dataclass(frozen=True, eq=False)
class Examples:
    """Images with labels, all on one device.

    Args:
        pixels: uint8 [N, 3, H, W].
        labels: int64 [N].
    """

    pixels: Tensor
    labels: Tensor

    def __post_init__(self) -> None:
        if self.pixels.dtype != torch.uint8 or self.pixels.dim() != 4 or self.pixels.shape[1] != 3:
            seen = f"{self.pixels.dtype} {list(self.pixels.shape)}"
            raise OptionError(f"The pixels are {seen}; expected uint8 [N, 3, H, W].")
        if self.labels.dtype != torch.int64 or self.labels.shape != self.pixels.shape[:1]:
            seen = f"{self.labels.dtype} {list(self.labels.shape)}"
            raise OptionError(f"The labels are {seen}; expected int64 [{len(self.pixels)}], one per image.")

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, which: slice | Tensor) -> Examples:
        """Some of them, by slice, positions [K] or mask [N]."""
        return Examples(self.pixels[which], self.labels[which])

    def spread(self, most: int) -> Examples:
        """At most so many of them, evenly taken: files are often sorted by class."""
        count = min(most, len(self))
        return self[torch.arange(count, device=self.labels.device) * len(self) // count] if count < len(self) else self


@dataclass(frozen=True, eq=False)
class TrainingData:
    """A data set that is prepared once and serves any number of runs.

    Args:
        train: What is learned from. Its images may be larger than those of the other parts, which are what networks
            see, and of the same shape: parts of them that a recipe enlarges are sharper then.
        validation: What is looked at on the way.
        classes: Name of each class.
        mean: Subtracted from pixels in [0, 1], per channel.
        std: What they are divided by then.
        name: What reports call it.
        test: What is looked at once in the end; None where there is none.
        photographs: Whether mirroring and shifting leave the class as it is; chooses defaults of the recipe.

    Example:
        >>> pixels = torch.zeros(8, 3, 4, 4, dtype=torch.uint8)
        >>> examples = Examples(pixels, torch.arange(8) % 2)
        >>> data = TrainingData(examples, examples[:2], ("even", "odd"))
        >>> data.size, len(data.train), data.device
        ((4, 4), 8, device(type='cpu'))
    """

    train: Examples
    validation: Examples
    classes: tuple[str, ...]
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    std: tuple[float, ...] = (0.25, 0.25, 0.25)
    name: str = "images"
    test: Examples | None = None
    photographs: bool = False

    def __post_init__(self) -> None:
        if len(self.classes) < 2:
            raise OptionError(f"There are {len(self.classes)} classes in {self.name}; a classifier needs two or more.")
        for what, part in (("training", self.train), ("validation", self.validation), ("test", self.test)):
            if part is None:
                continue
            if len(part) == 0:
                raise OptionError(f"There is no {what} image in {self.name}.")
            low, high = (int(v) for v in part.labels.aminmax())
            if low < 0 or high >= len(self.classes):
                raise OptionError(
                    f"The {what} labels of {self.name} go from {low} to {high}; expected 0 to {len(self.classes) - 1}."
                )
            (height, width), own = self.size, part.pixels.shape[-2:]
            larger = what == "training" and own[0] > height and own[0] * width == own[1] * height
            if own != self.size and not larger:
                seen = f"{list(own)} and {list(self.size)}"
                raise OptionError(f"The {what} and validation images of {self.name} differ in size: {seen}.")

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the images that networks see."""
        return self.validation.pixels.shape[-2], self.validation.pixels.shape[-1]

    @property
    def device(self) -> torch.device:
        """Where the pixels are."""
        return self.train.pixels.device

    def with_permuted_labels(self, seed: int) -> TrainingData:
        """The training labels shuffled among the images, once; validation and test stay true.

        Every class keeps its number of images. The shuffle is drawn on the CPU, so that it is the same on
        every device.
        """
        order = torch.randperm(len(self.train), generator=torch.Generator().manual_seed(seed))
        labels = self.train.labels[order.to(self.device)]
        return replace(self, train=Examples(self.train.pixels, labels), name=f"{self.name}, labels permuted")

    def fingerprint(self) -> str:
        """Hash of all labels and of a sample of the pixels: enough to notice that it is another data set."""
        some = torch.linspace(0, len(self.train) - 1, 16).long().to(self.device)
        parts = (self.train.labels, self.validation.labels, self.train.pixels[some])
        shape = f"{self.size} {len(self.train)} {len(self.validation)}"
        return content_hash(shape, *self.classes, *(part.cpu().numpy().tobytes() for part in parts))


class Normalize:
    """What a network takes, from pixels in [0, 1].

    Holds its numbers on the device: copying them there for each batch would make a GPU wait.

    Args:
        mean: Subtracted, per channel.
        std: Divided by then.
        device: Where the pixels will be.

    Example:
        >>> Normalize([0.5] * 3, [0.25] * 3, "cpu")(torch.ones(1, 3, 1, 1)).flatten()
        tensor([2., 2., 2.])
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], device: str | torch.device) -> None:
        self.mean = torch.tensor(mean, dtype=torch.float32, device=device)
        self.std = torch.tensor(std, dtype=torch.float32, device=device)

    def __call__(self, pixels: Tensor) -> Tensor:
        """Normalize [B, 3, H, W]."""
        return (pixels - self.mean.view(-1, 1, 1)) / self.std.view(-1, 1, 1)


def mean_and_std(pixels: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation per channel of uint8 [N, 3, H, W], as shares of 255, to three decimals."""
    counts = torch.stack([torch.bincount(pixels[:, c].flatten().int(), minlength=256) for c in range(3)]).double()
    values = torch.arange(256, dtype=torch.float64, device=pixels.device) / 255
    shares = counts / counts.sum(1, keepdim=True)
    mean = shares @ values
    std = ((shares @ values**2) - mean**2).clamp(min=0).sqrt()
    # An even color has no spread to divide by.
    return tuple(round(float(v), 3) for v in mean), tuple(max(round(float(v), 3), 0.001) for v in std)
