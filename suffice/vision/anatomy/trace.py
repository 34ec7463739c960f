"""One forward pass of a blank image, to see what each layer puts out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from suffice.errors import AnatomyError
from suffice.plugins import did_you_mean
from suffice.vision.anatomy.preserve import preserved

Event = tuple[str, tuple[int, ...]]


def undescribed(why: str) -> AnatomyError:
    """The error for a model that cannot be described, with the way out."""
    return AnatomyError(
        f"{why}; describe this kind of model with suffice.vision.anatomy.register_anatomy(test, describe), where "
        "test(module) says whether it is one and describe(module, size) returns its Anatomy"
    )


def find_modules(module: nn.Module, names: Iterable[str]) -> dict[str, nn.Module]:
    """Submodules by name, in the order asked for; any name of a module that is used in several places."""
    found = {}
    for name in names:
        try:
            found[name] = module.get_submodule(name)
        except AttributeError:
            hint = did_you_mean(name, dict(module.named_modules(remove_duplicate=False)))
            problem = f"{type(module).__name__} has no module named {name!r}.{hint}"
            raise AnatomyError(f"{problem} All names: dict(module.named_modules())") from None
    return found


def name_of(part: nn.Module, module: nn.Module) -> str:
    """The name of a submodule inside a module."""
    name = next((name for name, own in module.named_modules() if own is part), None)
    if name is None:
        raise AnatomyError(f"The layer given, a {type(part).__name__}, is no part of this {type(module).__name__}.")
    return name


def first_tensor(output: Any) -> Tensor | None:
    """The output itself, or the first tensor of a tuple, list or mapping; None when there is none."""
    if isinstance(output, Tensor):
        return output
    if isinstance(output, dict):
        output = tuple(output.values())
    if isinstance(output, tuple | list):
        return next((found for found in map(first_tensor, output) if found is not None), None)
    return None


def trace(
    module: nn.Module,
    size: tuple[int, int],
    names: Iterable[str],
    mode: TorchFunctionMode | None = None,
    events: list[Event] | None = None,
) -> list[Event]:
    """``(name, shape)`` for each time that one of the layers completes in a forward pass of a blank image.

    The pass runs under ``mode``, which can see in ``events`` how far it is. The model is left as it was.
    """
    events = [] if events is None else events

    def note(name: str, _module: nn.Module, _inputs: Any, output: Any) -> None:
        tensor = first_tensor(output)
        if tensor is not None:
            events.append((name, tuple(tensor.shape)))

    submodules = find_modules(module, names)
    with ExitStack() as stack:
        stack.enter_context(preserved(module))
        for name, submodule in submodules.items():
            stack.callback(submodule.register_forward_hook(partial(note, name)).remove)
        if mode is not None:
            stack.enter_context(mode)
        run_blank(module, size)
    return events


def output_shapes(module: nn.Module, size: tuple[int, int], names: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Shapes of the outputs of the named layers, each of which must run once, in order of execution."""
    names = tuple(dict.fromkeys(names))
    events = trace(module, size, names)
    runs = Counter(name for name, _ in events)
    if missing := [name for name in names if name not in runs]:
        raise undescribed(f"layers {missing} of {type(module).__name__} put out no tensor in a forward pass")
    if repeated := sorted(name for name in runs if runs[name] > 1):
        raise undescribed(f"layers {repeated} of {type(module).__name__} ran several times in one forward pass")
    return dict(events)


@torch.no_grad()
def run_blank(module: nn.Module, size: tuple[int, int]) -> None:
    """Run the model on one black image, with as many channels as its first convolution takes; 3 without one."""
    channels = next((m.in_channels for m in module.modules() if isinstance(m, nn.Conv2d)), 3)
    # Any dtype and device will do as long as it is the model's own.
    like = next((p for p in module.parameters() if p.is_floating_point()), torch.empty(0))
    image = torch.zeros(1, channels, *size, dtype=like.dtype, device=like.device)
    try:
        module(image)
    except Exception as error:
        raise AnatomyError(
            f"{type(module).__name__} cannot process a blank image of shape {tuple(image.shape)}: {error}. "
            "Describe it at the input size that it was built for"
        ) from error
