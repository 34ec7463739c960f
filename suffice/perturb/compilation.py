"""Functions compiled so that any number of models, batch sizes and kinds of arguments may follow each other."""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from suffice.errors import OptionError

_numbers = itertools.count()


class Compiled:
    """A function of tensors and what can be hashed, compiled once for every kind of arguments.

    torch remembers what it compiled by code object, up to a small number of versions each, and runs uncompiled beyond
    it; so each version has one of its own. It holds for types, shapes but the first, and gradient modes; the first
    sizes of arguments come from the batch size, but for those marked dynamic.
    """

    def __init__(self, function: Callable[..., Any], batch_size: Callable[[], int]) -> None:
        self.function, self.batch_size = function, batch_size
        self.versions: dict[Any, Callable[..., Any]] = {}

    def __call__(self, *args: Any) -> Any:
        """What the function returns, by the version for arguments of this kind."""
        modes = (torch.is_grad_enabled(), torch.is_inference_mode_enabled())
        kind = (self.batch_size(), *modes, *(_kind(value) for value in args))
        if kind not in self.versions:
            self.versions[kind] = torch.compile(_with_own_code(self.function), dynamic=False)
        try:
            return self.versions[kind](*args)
        except RuntimeError as error:
            if "C++ compiler" not in str(error):
                raise
            raise OptionError("compile=True needs a C++ compiler such as g++, and there is none.") from error


def _kind(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    return value.dtype, value.device, tuple(value.shape[1:]), value.requires_grad, value.is_inference()


def _with_own_code(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function with a code object of its own."""
    code = function.__code__
    code = code.replace(co_name=f"{code.co_name}_{next(_numbers)}")
    made = types.FunctionType(code, function.__globals__, code.co_name, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made
