"""Run a model in evaluation mode and leave it exactly as it was."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from operator import is_
from types import MappingProxyType
from typing import Any

import torch
from torch import nn

_CONTAINERS = frozenset((dict, OrderedDict, list, set))
# Modules that are being preserved now in this thread, and whether their parameters are frozen. Whoever preserves one
# again inside need not: saving every attribute of a large model takes longer than a small batch.
_preserved: ContextVar[Mapping[int, bool]] = ContextVar("preserved", default=MappingProxyType({}))


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode inside; afterwards each submodule is in the mode it was in.

    Where none is in training mode, it costs a walk through the submodules; inside :func:`preserved`, nothing.
    """
    training = [] if id(module) in _preserved.get() else [part for part in module.modules() if part.training]
    _set_training(training, False)
    try:
        yield
    finally:
        _set_training(training, True)


def _set_training(submodules: list[nn.Module], training: bool) -> None:
    # Not module.eval(): it may be overridden to do more than to set the flag. And not by setting the attribute, which
    # takes a module long, unless it keeps the flag elsewhere, as scripted ones do.
    for submodule in submodules:
        if "training" in submodule.__dict__:
            submodule.__dict__["training"] = training
        else:
            submodule.training = training


@contextmanager
def preserved(module: nn.Module, frozen: bool = False) -> Iterator[None]:
    """Evaluation mode inside; afterwards every submodule's attributes, flags and hooks are as before.

    A forward pass may write to a module even in evaluation mode: LeViT caches its position biases, Swin of
    transformers shrinks its window, transformers installs hooks for ``output_attentions``. So attributes are
    put back one by one, rather than only those that this package itself changes. ``frozen`` also takes all parameters
    out of the autograd graph inside.
    """
    before = _preserved.get()
    if before.get(id(module), False) or (id(module) in before and not frozen):
        yield
        return
    submodules = list(module.modules())
    trainable = [parameter for parameter in _parameters(submodules) if parameter.requires_grad] if frozen else []
    with ExitStack() as stack:
        stack.enter_context(evaluating(module))
        restore = _restorer(submodules)
        stack.callback(_preserved.reset, _preserved.set({**before, id(module): frozen}))
        if any(_is_compiled(submodule) for submodule in submodules) and hasattr(torch.compiler, "set_stance"):
            # Hooks set after compilation are not part of the compiled graph.
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        stack.callback(restore)
        for submodule in submodules:
            for flag in ("grad_checkpointing", "gradient_checkpointing"):
                # Checkpointing runs blocks a second time during the backward pass, hooks included.
                if submodule.__dict__.get(flag) is True:
                    setattr(submodule, flag, False)
        stack.callback(_set_requires_grad, trainable, True)
        _set_requires_grad(trainable, False)
        yield


def _set_requires_grad(parameters: list[nn.Parameter], requires_grad: bool) -> None:
    for parameter in parameters:
        parameter.requires_grad_(requires_grad)


def _is_compiled(submodule: nn.Module) -> bool:
    # Not hasattr: a module takes long to find out that it has no such attribute.
    return "_orig_mod" in submodule.__dict__.get("_modules", ()) or submodule._compiled_call_impl is not None


def _parameters(submodules: list[nn.Module]) -> dict[nn.Parameter, None]:
    """Each parameter once; shorter than ``module.parameters()``, which walks through the modules again."""
    return {p: None for submodule in submodules for p in submodule._parameters.values() if p is not None}


def _restorer(submodules: list[nn.Module]) -> Callable[[], None]:
    """What puts back attributes of submodules, and the content of plain containers, where hooks and buffers live.

    Of all submodules together rather than one by one: a model has hundreds, and what little is done for each counts.
    """
    saved = [(submodule.__dict__, submodule.__dict__.copy()) for submodule in submodules]
    containers = [value for _, own in saved for value in own.values() if type(value) in _CONTAINERS]
    empty = [container for container in containers if not container]  # most tables of hooks
    filled = [(container, container.copy()) for container in containers if container]

    def restore() -> None:
        for now, attributes in saved:
            if now.keys() != attributes.keys() or not all(map(is_, now.values(), attributes.values())):
                for name in [name for name in now if name not in attributes]:
                    del now[name]
                now.update(attributes)
        if any(empty):
            for container in empty:
                container.clear()
        for container, content in filled:
            if not _same(container, content):
                container.clear()
                if isinstance(container, list):
                    container.extend(content)
                else:
                    container.update(content)

    return restore


def _same(container: Any, content: Any) -> bool:
    """Equal by identity: comparing tensors with == would not give one answer."""
    if isinstance(container, set):
        return set(map(id, container)) == set(map(id, content))
    if isinstance(container, dict) and not all(map(is_, container.values(), content.values())):
        return False
    return len(container) == len(content) and all(map(is_, container, content))
