"""The explainer: a network that looks at an image and says how much of each cell to keep."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from suffice.errors import AnatomyError
from suffice.vision import Classifier
from suffice.vision.anatomy import Anatomy
from suffice.vision.anatomy.copies import forget_computed, working_copy
from suffice.vision.anatomy.trace import first_tensor

# Parts of names by which libraries call what turns patches and positions into tokens.
EMBEDDINGS = ("embed", "conv_proj", "cls_token", "class_token", "dist_token", "reg_token")


class Trunk(nn.Module):
    """A copy of a classifier's module, up to its last layer with spatial detail.

    Args:
        net: The classifier; any whose anatomy is known.

    Attributes:
        layer: Where features are read: the last tokens of a transformer, after its final normalization where there is
            one, or the last feature maps of a CNN.
        grid: Rows and columns there.
        channels: Numbers at each position.
        is_transformer: Whether there are tokens.
        unused: Names of parameters that features do not depend on, such as those of the classifier's own head.
    """

    def __init__(self, net: Classifier) -> None:
        super().__init__()
        anatomy = net.anatomy
        self.layer = last_layer(anatomy)
        self.layout = anatomy.layout(self.layer)
        self.grid, self.size = self.layout.grid, net.size
        self.is_transformer = anatomy.kind == "transformer"
        self.module = working_copy(net.module)
        self.register_buffer("mean", torch.tensor(net.mean).view(-1, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(net.std).view(-1, 1, 1), persistent=False)
        self.to(net.device)
        named = {name: p.requires_grad_() for name, p in self.module.named_parameters() if p.is_floating_point()}
        with torch.inference_mode(False), torch.enable_grad():
            features = self(torch.zeros(1, 3, *net.size, device=net.device))
            slopes = torch.autograd.grad(features.sum(), list(named.values()), allow_unused=True) if named else ()
        self.channels = features.shape[-1]
        self.unused = frozenset(name for name, slope in zip(named, slopes, strict=True) if slope is None)

    def train(self, mode: bool = True) -> Trunk:
        """Stay in evaluation mode, as published: no dropout, and no running statistics of masked images."""
        return super().train(False)

    def forward(self, pixels: Tensor) -> Tensor:
        """Features [N, h·w, C], row by row, of pixels [N, 3, H, W] in [0, 1] of any size."""
        if tuple(pixels.shape[-2:]) != self.size:
            pixels = interpolate(pixels, self.size, mode="bilinear", antialias=True)
        inputs = (pixels - self.get_buffer("mean")) / self.get_buffer("std")
        like = next((p for p in self.module.parameters() if p.is_floating_point()), inputs)
        forget_computed(self.module)
        handle = self.module.get_submodule(self.layer).register_forward_hook(_stop_here)
        try:
            self.module(inputs.to(like.dtype))
        except _Reached as reached:
            return self.layout.tokens(reached.features)
        finally:
            handle.remove()
        raise AnatomyError(f"layer {self.layer!r} of {type(self.module).__name__} did not run, so it cannot be read")


class Explainer(nn.Module):
    """A trunk and a head: masks of images, one forward for each.

    At every position of the trunk's features a head of two linear layers with tanh between them (transformers), or of
    one linear layer, that is, a 1×1 convolution (CNNs), gives a number, and the sigmoid of it is how much of the
    position to keep.

    Args:
        net: The classifier whose module, copied, is the trunk: the explained one itself, or another.
        seed: Of the head's first weights.

    Example:
        >>> import suffice
        >>> explainer = Explainer(suffice.load("zoo/deit", device="cpu"))
        >>> explainer(torch.rand(2, 3, 56, 56)).shape, explainer.grid
        (torch.Size([2, 14, 14]), (14, 14))
    """

    def __init__(self, net: Classifier, *, seed: int = 0) -> None:
        super().__init__()
        self.trunk = Trunk(net)
        self.trunk_name = net.name
        self.head = make_head(self.trunk.channels, hidden=self.trunk.is_transformer, seed=seed).to(net.device)

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of masks."""
        return self.trunk.grid

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return next(self.head.parameters()).device

    def forward(self, pixels: Tensor) -> Tensor:
        """Masks [N, h, w] in [0, 1], 1 = keep, of pixels [N, 3, H, W] in [0, 1]."""
        return self.masks(self.trunk(pixels))

    def masks(self, features: Tensor) -> Tensor:
        """Masks [N, h, w] of features [N, h·w, C]."""
        return self.head(features)[..., 0].sigmoid().unflatten(1, self.grid)

    def trained_parameters(self) -> list[nn.Parameter]:
        """What training changes: the head and the trunk, but for the embeddings of patches and positions."""
        return [
            *(p for name, p in self.trunk.module.named_parameters() if self._learns(name, p)),
            *self.head.parameters(),
        ]

    def needed_weights(self) -> dict[str, Tensor]:
        """The state without what masks do not depend on."""
        unused = {f"trunk.module.{name}" for name in self.trunk.unused}
        return {name: value for name, value in self.state_dict().items() if name not in unused}

    def _learns(self, name: str, parameter: nn.Parameter) -> bool:
        embeds = self.trunk.is_transformer and any(part in name for part in EMBEDDINGS)
        return parameter.is_floating_point() and name not in self.trunk.unused and not embeds


def make_head(channels: int, *, hidden: bool, seed: int, outputs: int = 1) -> nn.Sequential:
    """A head over positions, from [..., channels] to [..., outputs]; the caller's generators are left as they were."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        before: list[nn.Module] = [nn.Linear(channels, channels), nn.Tanh()] if hidden else []
        return nn.Sequential(*before, nn.Linear(channels, outputs))


def last_layer(anatomy: Anatomy) -> str:
    """The last layer of a model with spatial detail, whether or not its patch tokens are used for the decision.

    Example:
        >>> import suffice
        >>> [last_layer(suffice.load(name, device="cpu").anatomy) for name in ("zoo/deit", "zoo/pit", "zoo/resnet")]
        ['norm', 'transformers.1.blocks.1', 'layer4']
    """
    if anatomy.kind == "cnn":
        return anatomy.feature_layers[-1]
    known = {*anatomy.blocks, *anatomy.feature_layers}
    inside = tuple(f"{block}." for block in known)
    # What is laid out as positions and lies in no block is the normalization after the last of them.
    after = [name for name in anatomy.layouts if name not in known and not name.startswith(inside)]
    return after[-1] if after else anatomy.blocks[-1]


class _Reached(Exception):
    """No error: the forward pass has come far enough."""

    def __init__(self, features: Tensor) -> None:
        self.features = features


def _stop_here(layer: nn.Module, _inputs: Any, output: Any) -> None:
    """End a forward pass at a layer: what follows is not needed, and may work in place on what was read."""
    found = first_tensor(output)
    if found is None:
        raise AnatomyError(f"the layer that an explainer reads, a {type(layer).__name__}, puts out no tensor")
    raise _Reached(found)
