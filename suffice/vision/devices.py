"""Where a model can be."""

from __future__ import annotations

import torch

from suffice.errors import OptionError


def default_device() -> torch.device:
    """The GPU where there is one, else the CPU."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def usable_device(device: str | torch.device | None) -> torch.device:
    """The device that is meant, by default :func:`default_device`; one that is not there is an error that says so.

    Example:
        >>> usable_device("tpu")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        suffice.errors.OptionError: device='tpu' cannot be used here: ...
    """
    if device is None:
        return default_device()
    try:
        wanted = torch.device(device)
        torch.zeros(1, device=wanted)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        # No such kind, none of that kind, or one that is full or broken: PyTorch's own words tell these apart.
        raise OptionError(f"device={str(device)!r} cannot be used here: {str(error).splitlines()[0]}") from error
    return wanted
