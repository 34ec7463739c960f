"""Submodules by name."""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn

from suffice.errors import AnatomyError
from suffice.plugins import did_you_mean


def find_modules(module: nn.Module, names: Iterable[str]) -> dict[str, nn.Module]:
    """Submodules by name.

    Args:
        module: The model.
        names: Names as in ``module.named_modules()``; any name of a module that is used in several places.

    Returns:
        The submodules, in the order asked for.

    Raises:
        AnatomyError: If a name does not exist.

    Example:
        >>> list(find_modules(nn.Sequential(nn.ReLU()), ["0"]))
        ['0']
    """
    found = {}
    for name in names:
        try:
            found[name] = module.get_submodule(name)
        except AttributeError:
            known = dict(module.named_modules(remove_duplicate=False))
            raise AnatomyError(
                f"{type(module).__name__} has no module named {name!r}.{did_you_mean(name, known)} "
                "All names: dict(module.named_modules())"
            ) from None
    return found
