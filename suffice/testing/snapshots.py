"""What a method could disturb: a model, its hooks, the global state, and how to look at each.

Used by :mod:`suffice.testing.conformance`, which says what must hold.
"""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from suffice.errors import OptionError, SufficeWarning


@contextmanager
def workbench(net: Any) -> Iterator[Any]:
    """A copy of the classifier, gradients enabled, and everything global put back at the end."""
    python_state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
    # The hooks that modules share have no other way to be put back than their tables.
    shared = {name: dict(table) for name, table in _shared_hook_tables().items()}
    try:
        with torch.random.fork_rng(range(torch.cuda.device_count())), torch.enable_grad():
            yield copy.deepcopy(net)
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)  # noqa: NPY002
        for name, table in _shared_hook_tables().items():
            table.clear()
            table.update(shared[name])


def module_of(net: Any) -> nn.Module:
    """The module inside a classifier, or the module itself."""
    module = getattr(net, "module", net)
    if not isinstance(module, nn.Module):
        raise OptionError(f"net is a {type(net).__name__}; pass a Classifier or a torch.nn.Module")
    return module


def in_use(net: Any) -> None:
    """Leave traces of training: train mode, every other parameter frozen, gradients waiting."""
    module = module_of(net).train()
    for index, parameter in enumerate(module.parameters()):
        parameter.requires_grad_(index % 2 == 0)
        parameter.grad = torch.full_like(parameter, 0.5)


def model_state(net: Any) -> dict[str, object]:
    """Everything about a model that a method could disturb, by readable names."""
    module = module_of(net)
    state: dict[str, object] = {}
    for name, parameter in module.named_parameters():
        state[f"parameter {name}"] = (id(parameter), parameter.dtype, parameter.device, bits(parameter))
        state[f"requires_grad of {name}"] = parameter.requires_grad
        state[f"gradient of {name}"] = None if parameter.grad is None else bits(parameter.grad)
    for name, buffer in module.named_buffers():
        state[f"buffer {name}"] = (buffer.dtype, buffer.device, bits(buffer))
    for name, part in module.named_modules():
        where = name or "the model"
        # transformers keeps the choice of attention code here rather than on the module.
        state[f"attention of {where}"] = getattr(getattr(part, "config", None), "_attn_implementation", None)
        state[f"module {where}"] = id(part)
        state[f"type of {where}"] = type(part)
        for key, value in vars(part).items():
            # Switches (training, fused attention) and methods put over those of the class. Numbers are left
            # out: a model may keep counters of its own.
            if isinstance(value, (bool, str)) or callable(value):
                state[f"attribute {key} of {where}"] = value
    return state


def hooks(net: Any) -> dict[str, object]:
    """Every hook on a model, its parameters and all modules."""
    found: dict[str, object] = {f"hooks of all modules {name}": list(t) for name, t in _shared_hook_tables().items()}
    for name, part in module_of(net).named_modules():
        for key, table in vars(part).items():
            if key.endswith("_hooks") and isinstance(table, dict):
                found[f"{key.strip('_')} of {name or 'the model'}"] = list(table)
    for name, parameter in module_of(net).named_parameters():
        for key in ("_backward_hooks", "_post_accumulate_grad_hooks"):
            found[f"{key.strip('_')} of {name}"] = list(getattr(parameter, key, None) or ())
    return found


def _shared_hook_tables() -> dict[str, dict[int, Any]]:
    """Hooks that torch calls for every module."""
    tables = vars(torch.nn.modules.module)
    return {name: tables[name] for name in tables if name.startswith("_global_") and isinstance(tables[name], dict)}


def random_states() -> dict[str, object]:
    """The states of all global random number generators, by the library they belong to."""
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002
    states: dict[str, object] = {
        "torch": bits(torch.get_rng_state()),
        "numpy": (kind, np.asarray(keys).tobytes(), *rest),
        "Python": random.getstate(),
    }
    if torch.cuda.is_available():
        states["torch on CUDA"] = [bits(state) for state in torch.cuda.get_rng_state_all()]
    return states


def bits(values: Tensor) -> bytes:
    """The very bytes, so that NaN equals itself and 0.0 is not -0.0."""
    return values.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors agree in shape, dtype and every byte."""
    return (one.shape, one.dtype) == (other.shape, other.dtype) and bits(one) == bits(other)


class Interruption(RuntimeError):
    """The error that a check throws into the middle of the work."""


@contextmanager
def on_every_call(module: nn.Module, fail_at: int | None) -> Iterator[list[int]]:
    """Count the calls of all modules in a list of one, and raise at one of them."""
    counted = [0]

    def count(*_: object) -> None:
        counted[0] += 1
        if counted[0] == fail_at:
            raise Interruption(f"thrown by a conformance check in module call {fail_at}")

    handles = [part.register_forward_pre_hook(count) for part in module.modules()]
    try:
        yield counted
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def out_of_memory_above(module: nn.Module, most: int) -> Iterator[list[int]]:
    """Within it, a model refuses more inputs than ``most`` as a GPU does; counts refusals in a list of one."""
    refused = [0]

    def refuse(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = next(value for value in (*args, *kwargs.values()) if isinstance(value, Tensor))
        if len(given) > most:
            refused[0] += 1
            raise torch.cuda.OutOfMemoryError(f"{len(given)} inputs, and no more than {most} fit (by a check)")

    handle = module.register_forward_pre_hook(refuse, with_kwargs=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SufficeWarning)
            yield refused
    finally:
        handle.remove()
