"""Module names: finding them, and suggesting one when there is none."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from torch import nn

from suffice.errors import AnatomyError


def suggest(name: str, known: Iterable[str]) -> str:
    """A sentence with the known names closest to ``name``; empty when none is close.

    Example:
        >>> suggest("block.3", ["blocks.3", "head"])
        " Did you mean 'blocks.3'?"
    """
    close = difflib.get_close_matches(name, list(known), n=3)
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else ""


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
                f"{type(module).__name__} has no module named {name!r}.{suggest(name, known)} "
                "All names: dict(module.named_modules())"
            ) from None
    return found
