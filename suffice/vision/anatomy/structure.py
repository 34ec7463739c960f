"""What is known about a model: where its tokens, blocks, attention and feature maps are, how to read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from torch import Tensor

from suffice.errors import AnatomyError
from suffice.plugins import did_you_mean

Form = Literal["nchw", "nhwc", "tokens", "blocked"]
Size = tuple[int, int]

# A name of a layer that ends so stands for what the layer is given, instead of what it puts out.
INPUT = ":input"


def layer_of(name: str) -> str:
    """The layer that a name is about, whether it stands for the layer's output or for its input."""
    return name.removesuffix(INPUT)


@dataclass(frozen=True)
class Layout:
    """How one layer lays out its output.

    Attributes:
        form: ``"nchw"`` [N, C, h, w]; ``"nhwc"`` [N, h, w, C]; ``"tokens"`` [N, prefix + h*w, C], row by row;
            ``"blocked"`` [N, blocks, side*side, C], square blocks and the positions in each row by row.
        grid: Rows and columns ``(h, w)`` of the map.
        prefix: Tokens before the patch tokens (``"tokens"`` only).
        side: Edge of a block in positions (``"blocked"`` only).
    """

    form: Form
    grid: Size
    prefix: int = 0
    side: int = 0

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether an output of this shape can have this layout at this grid."""
        h, w = self.grid
        if self.form == "tokens":
            return len(shape) == 3 and shape[1] == self.prefix + h * w
        if len(shape) != 4:
            return False
        if self.form == "blocked":
            whole = h % self.side == 0 and w % self.side == 0
            return whole and shape[2] == self.side**2 and shape[1] * shape[2] == h * w
        return tuple(shape[2:] if self.form == "nchw" else shape[1:3]) == self.grid

    def maps(self, activation: Tensor) -> Tensor:
        """Channel-first maps [N, C, h, w] of an activation in this layout, prefix tokens left out."""
        h, w = self.grid
        if self.form == "nchw":
            return activation
        if self.form == "nhwc":
            return activation.permute(0, 3, 1, 2)
        if self.form == "tokens":
            return activation[:, self.prefix :].transpose(1, 2).unflatten(2, (h, w))
        rows, columns = h // self.side, w // self.side
        n, _, _, channels = activation.shape
        cut = activation.reshape(n, rows, columns, self.side, self.side, channels)
        return cut.permute(0, 5, 1, 3, 2, 4).reshape(n, channels, h, w)

    def tokens(self, activation: Tensor) -> Tensor:
        """Patch tokens [N, h*w, C] of an activation in this layout, row by row, prefix tokens left out."""
        if self.form == "tokens":
            return activation[:, self.prefix :]
        return self.maps(activation).flatten(2).transpose(1, 2)


@dataclass(frozen=True)
class Anatomy:
    """The parts of one model at one input size. Names are those of ``module.named_modules()``.

    Attributes:
        kind: ``"cnn"`` or ``"transformer"``.
        size: Height and width of the input that this describes.
        target_layer: The layer that CAM-like methods read by default; the gradient of a logit is non-zero there.
        feature_layers: Layers whose outputs are feature maps, from input to output: stages of convolutional
            and hierarchical models, blocks of plain transformers.
        layouts: How the output of each layer that ``maps`` and ``tokens`` can read is laid out.
        prefix_tokens: Tokens before the patch tokens: class, distillation, registers.
        read_tokens: Which prefix tokens the head reads; empty when it pools over positions.
        blocks: Transformer blocks in order of execution.
        attention: The module of each block inside which its attention is computed.
        norms: The normalization before the attention of each block; None where a block has none.
    """

    kind: Literal["cnn", "transformer"]
    size: Size
    target_layer: str
    feature_layers: tuple[str, ...]
    layouts: Mapping[str, Layout] = field(repr=False, hash=False)
    prefix_tokens: int = 0
    read_tokens: tuple[int, ...] = ()
    blocks: tuple[str, ...] = ()
    attention: tuple[str, ...] = ()
    norms: tuple[str | None, ...] = ()

    def __post_init__(self) -> None:
        named = {*self.feature_layers, self.target_layer, *self.blocks, *filter(None, self.norms)}
        if unread := sorted(named - set(self.layouts)):
            raise AnatomyError(f"layers {unread} are named but have no Layout; give one in layouts for each")
        if self.blocks and not len(self.blocks) == len(self.attention) == len(self.norms):
            counts = f"{len(self.blocks)}, {len(self.attention)} and {len(self.norms)}"
            raise AnatomyError(f"blocks, attention and norms need one entry a block, but have {counts}")

    @property
    def token_grid(self) -> Size | None:
        """Rows and columns of the patch tokens in the last block; None when there are no blocks."""
        return self.layouts[self.blocks[-1]].grid if self.blocks else None

    def layout(self, layer: str) -> Layout:
        """The layout of a layer's output, or of its input for ``"NAME:input"``; an error where it is not known.

        A part of a block is taken to be laid out as the block. What does not fit is refused when it is read.
        """
        part = layer_of(layer)
        if part not in self.layouts:
            for block in self.blocks:
                if part.startswith(f"{block}."):
                    return self.layouts[block]
            problem = f"how layer {layer!r} lays out its output is not known.{did_you_mean(layer, self.layouts)}"
            raise AnatomyError(f"{problem} Layers that can be read: Anatomy.layouts")
        return self.layouts[part]

    def grid(self, layer: str) -> Size:
        """Rows and columns ``(h, w)`` of a layer's map."""
        return self.layout(layer).grid

    def maps(self, layer: str, activation: Tensor) -> Tensor:
        """Channel-first maps [N, C, h, w] of a layer's output or a gradient by it; a view where possible.

        Args:
            layer: A feature layer, block, norm or the target layer.
            activation: The layer's output, in the layer's own layout.
        """
        return self._checked(layer, activation).maps(activation)

    def tokens(self, layer: str, activation: Tensor) -> Tensor:
        """Patch tokens [N, h*w, C] of a layer's output, row by row, without class, distillation, register tokens."""
        return self._checked(layer, activation).tokens(activation)

    def _checked(self, layer: str, activation: Tensor) -> Layout:
        layout = self.layout(layer)
        if not layout.fits(tuple(activation.shape)):
            raise AnatomyError(
                f"output of {layer!r} has shape {tuple(activation.shape)}, but at input size {self.size} its layout is "
                f"{layout}; describe(module, size) again for the size in use"
            )
        return layout


def under(anatomy: Anatomy, prefix: str, size: Size) -> Anatomy:
    """The anatomy of a model that holds the described one as its submodule ``prefix``."""

    def name(layer: str) -> str:
        return f"{prefix}.{layer}"

    return replace(
        anatomy,
        size=size,
        target_layer=name(anatomy.target_layer),
        feature_layers=tuple(map(name, anatomy.feature_layers)),
        layouts={name(layer): layout for layer, layout in anatomy.layouts.items()},
        blocks=tuple(map(name, anatomy.blocks)),
        attention=tuple(map(name, anatomy.attention)),
        norms=tuple(norm and name(norm) for norm in anatomy.norms),
    )
