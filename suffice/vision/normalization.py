"""The numbers by which pixels in [0, 1] are normalized: mean and standard deviation of each channel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from suffice.errors import OptionError

Numbers = tuple[float, ...]


def numbers_of(name: str, values: Any) -> Numbers | None:
    """Numbers of a sequence, an array or a tensor; None where none are given.

    Example:
        >>> numbers_of("mean", [0.5, 0.25, 0.75]), numbers_of("mean", None)
        ((0.5, 0.25, 0.75), None)
    """
    if values is None:
        return None
    try:
        return tuple(float(value) for value in values)
    except (TypeError, ValueError) as error:
        raise OptionError(
            f"{name}={values!r}; write three numbers, for red, green and blue, or one, as in {name}=(0.5,), for a "
            "model of gray images."
        ) from error


def check_normalization(mean: Sequence[float], std: Sequence[float]) -> tuple[Numbers, Numbers]:
    """Mean and standard deviation of three channels; an error where pixels in [0, 1] cannot be meant."""
    for name, values in (("mean", mean), ("std", std)):
        if len(values) != 3:
            raise OptionError(
                f"{name}= has {len(values)} numbers; expected 3, one for each of red, green and blue, or one in both "
                "mean= and std= for a model of gray images."
            )
    if max(mean) > 1:
        raise OptionError(
            f"mean={tuple(mean)} is no color in [0, 1]; if it is meant for pixels from 0 to 255, divide mean= and std= "
            "by 255."
        )
    if not all(0 < value < math.inf for value in std):
        raise OptionError(f"std={tuple(std)}; pixels can only be divided by numbers above 0.")
    return tuple(map(float, mean)), tuple(map(float, std))
