"""A rule for convolutional models that no family covers, by watching one forward pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from torch import nn
from torch.overrides import TorchFunctionMode

from suffice.errors import AnatomyError
from suffice.vision.anatomy.attention import computes_attention
from suffice.vision.anatomy.structure import Anatomy, Layout, Size
from suffice.vision.anatomy.trace import Event, trace, undescribed

# These read and write [N, C, h, w] by definition, so their outputs anchor what other layers' outputs mean.
NORMS = (nn.BatchNorm2d, nn.InstanceNorm2d, nn.GroupNorm)
POOLS = (nn.MaxPool2d, nn.AvgPool2d, nn.LPPool2d)
CHANNELS_FIRST = (nn.Conv2d, nn.ConvTranspose2d, nn.PixelUnshuffle, *NORMS, *POOLS)
GLOBAL_POOLS = (nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d)


def generic_cnn(module: nn.Module, size: Size) -> Anatomy:
    """Describe a convolutional model that is not of a known family.

    The target is the last layer that puts out a map before global pooling or flattening. Feature layers are
    the last ones at each resolution. Layers that run several times, such as one pool for all stages, are
    neither, since it would be unclear which run is meant.

    A layer's output counts as [N, C, h, w] when the layer is channels-first by definition, or when its last
    two axes equal those of the latest such layer and its first three do not fit [N, h, w, C] as well.

    Attention between convolutions, as in MobileViT, is no obstacle: such a model is described by its maps alone.
    """
    watcher = _AttentionWatcher()
    parts = {name: part for name, part in module.named_modules() if name}
    events = trace(module, size, parts, mode=watcher, events=watcher.events)
    runs = Counter(name for name, _ in events)
    maps: list[tuple[int, str, Size]] = []
    anchor: Size | None = None
    for when, (name, shape) in enumerate(events):
        if len(shape) != 4 or isinstance(parts[name], GLOBAL_POOLS):
            continue
        if isinstance(parts[name], CHANNELS_FIRST):
            if shape[2] * shape[3] > 1 and _proportioned(shape[2:], size):
                anchor = (shape[2], shape[3])
                if runs[name] == 1:
                    maps.append((when, name, anchor))
        elif runs[name] == 1 and anchor is not None and shape[2:] == anchor and shape[1:3] != anchor:
            maps.append((when, name, anchor))
    if not maps:
        raise _unknown(module, f"it has no convolution that runs once and puts out more than 1×1 at size {size}")

    end, target, grid = maps[-1]
    if watcher.last_attention > end:
        raise _unknown(module, "it computes attention behind its last map")
    for name, shape in events[end + 1 :]:
        if len(shape) == 3:
            raise _unknown(module, f"layer {name!r} puts out tokens, shape {shape}")
        if len(shape) == 4 and shape[1:3] == grid and shape[2:] != grid:
            raise _unknown(module, f"layer {name!r} puts out channels-last maps, shape {shape}")

    features: dict[Size, str] = {}
    for _, name, resolution in maps:
        smallest = next(reversed(features), None)
        # A shortcut may still put out the previous resolution: only same or smaller ones follow the main path.
        if smallest is None or resolution[0] * resolution[1] <= smallest[0] * smallest[1]:
            features[resolution] = name
    layouts = {name: Layout("nchw", resolution) for resolution, name in features.items()}
    layouts[target] = Layout("nchw", grid)
    return Anatomy("cnn", size, target, tuple(features.values()), layouts)


def _proportioned(grid: tuple[int, ...], size: Size) -> bool:
    """Whether a grid has about the proportions of the image; patches set side by side, as in MobileViT, have not."""
    stretch = grid[0] * size[1] / (grid[1] * size[0])
    return 0.5 <= stretch <= 2


class _AttentionWatcher(TorchFunctionMode):
    """Notes how many layers had completed when attention was last computed; -1 where it never was."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Event] = []
        self.last_attention = -1

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if computes_attention(func, args, kwargs or {}):
            self.last_attention = len(self.events)
        return func(*args, **(kwargs or {}))


def _unknown(module: nn.Module, why: str) -> AnatomyError:
    kind = f"{type(module).__module__}.{type(module).__qualname__}"
    return undescribed(f"the structure of {kind} is not known, and it is not a plain convolutional model: {why}")
