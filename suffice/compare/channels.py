"""Do a few channels decide? The strongest activation of each channel in the last block, over many images.

With batch normalization a few channels have much larger activations than the rest, and dominate the prediction; with
layer normalization they are more even (Jiang, Khorram, Li, CVPR 2024, Figure 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from suffice.compare.pairwise import Level, Numbers
from suffice.errors import OptionError
from suffice.options import Count
from suffice.perturb.batch import Batch
from suffice.perturb.runner import Runner
from suffice.progress import counted, reports
from suffice.vision import Model, as_classifier, open_images
from suffice.vision.stream import OnError, stream


@dataclass(frozen=True, eq=False)
class Activations:
    """The strongest activation of each channel of a layer.

    Attributes:
        model: Name of the model.
        layer: Name of the layer.
        maxima: Of each image and channel the largest activation over all places, [N, C].
        names: Name of each image.
    """

    model: str
    layer: str
    maxima: Tensor
    names: tuple[str, ...] = ()

    @property
    def sorted_means(self) -> Numbers:
        """Mean over images of the maximum of each channel, largest first, [C]: the curve of Figure 5."""
        return np.sort(self.maxima.double().mean(dim=0).numpy())[::-1]

    @property
    def dominance(self) -> float:
        """How unevenly the means are spread over channels: their Gini index, from 0 (all alike) to nearly 1 (one)."""
        return gini(self.sorted_means)

    def interval(self, level: Level = 0.95, draws: Count = 999, seed: int = 0) -> tuple[float, float]:
        """Bootstrap interval of :attr:`dominance` over images."""
        random, values = np.random.default_rng(seed), self.maxima.double().numpy()
        count = len(values)
        drawn = [gini(values[random.integers(0, count, count)].mean(axis=0)) for _ in range(draws)]
        low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)

    def __repr__(self) -> str:
        images, channels = self.maxima.shape
        return f"Activations({self.model!r}, {self.layer!r}, {channels} channels, n={images})"


@reports("Looking inside")
def activations(
    net: Model,
    images: Any,
    layer: str | None = None,
    *,
    batch_size: Count | Literal["auto"] = "auto",
    on_error: OnError = "raise",
    progress: bool = False,
) -> Activations:
    """Find the strongest activation of each channel of a layer in each image.

    Args:
        net: The classifier.
        images: Anything that :func:`suffice.open_images` takes.
        layer: Name of the layer; default: the last with spatial detail.
        batch_size: Images per forward.
        on_error: ``"raise"`` the error of an image that cannot be read, or ``"skip"`` it.
        progress: Show how far it is.

    Example:
        >>> from suffice import load
        >>> found = activations(load("zoo/resnet", device="cpu"), "scenes:test[:4]")
        >>> found.maxima.shape[0], 0 < found.dominance < 1
        (4, True)
    """
    net = as_classifier(net)
    name = layer or net.anatomy.target_layer
    runner = Runner(net, batch_size=batch_size).variant("inside")
    opened = open_images(images)
    batches = stream(opened, net.geometry, batch_size=runner.batch_size, on_error=on_error)
    maxima: list[Tensor] = []
    names: list[str] = []
    with torch.no_grad():
        for decoded in counted(batches, name, len(opened), 1):
            index = decoded.index.tolist()
            pixels = decoded.pixels.to(net.device)
            none = torch.zeros(len(pixels), dtype=torch.long, device=net.device)
            batch = Batch(net, pixels, none, [opened[i].name for i in index], 0, runner)
            maps = net.anatomy.maps(name, batch.activations([name])[name])
            maxima.append(maps.flatten(2).amax(dim=2).float().cpu())
            names += [opened[i].name for i in index]
    if not maxima:
        raise OptionError("None of the images could be read.")
    return Activations(net.name, name, torch.cat(maxima), tuple(names))


def gini(values: Numbers) -> float:
    """How unevenly values [C] are spread: 0 where all are alike, 1 - 1/C where one has all; below 0 counts as 0.

    Example:
        >>> gini(np.array([1.0, 1, 1, 1])), gini(np.array([0.0, 0, 0, 4]))
        (0.0, 0.75)
    """
    ordered = np.sort(np.clip(np.asarray(values, dtype=float), 0, None))
    total, count = ordered.sum(), len(ordered)
    if total == 0:
        return 0.0
    ranks = np.arange(1, count + 1)
    return float(2 * (ranks * ordered).sum() / (count * total) - (count + 1) / count)
