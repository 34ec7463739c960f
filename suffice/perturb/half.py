"""Half precision: models in it, and what they say in float32."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from suffice.errors import OptionError


def at_least_float32(values: Tensor) -> Tensor:
    """Values of a model in half precision as float32, so that sums over them are exact enough; others as they are."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def in_precision(module: nn.Module, dtype: torch.dtype) -> nn.Module:
    """A module with its numbers in another precision, those of batch normalization as they are.

    Variances cost nothing to keep, lose most by rounding, and can exceed what fp16 holds.
    """
    kept = {
        name: {key: value.detach().clone() for key, value in part.state_dict(keep_vars=True).items()}
        for name, part in module.named_modules()
        if isinstance(part, _BatchNorm)
    }
    finite = {name: bool(value.isfinite().all()) for name, value in module.state_dict(keep_vars=True).items()}
    module = module.to(dtype=dtype)
    for name, numbers in kept.items():
        for key, value in numbers.items():
            getattr(module.get_submodule(name), key).data = value
    for name, value in module.state_dict(keep_vars=True).items():
        if finite[name] and not value.isfinite().all():
            raise OptionError(f"{name} of the model has numbers too large for {dtype}; use precision='bf16' or 'fp32'.")
    return module
