"""Random numbers that depend on (seed, index, name) and on nothing else.

There is no state: the numbers of image 17 are the same alone and among others, on the CPU and on a GPU, and a new
named draw leaves all others as they were.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import torch
from torch import Tensor

from suffice.vision.noise import FACTORS, INCREMENT, as_int64, scramble_, shifted


class Draws:
    """Named random numbers for a batch of indices.

    Args:
        index: int64 [B].
        seed: Any integer.

    Example:
        >>> some, alone = Draws(torch.arange(3)), Draws(torch.tensor([2]))
        >>> some.uniform({"size": (0, 1)})["size"].shape
        torch.Size([3])
        >>> bool(some.choice("label", 16)[2] == alone.choice("label", 16)[0])
        True
    """

    def __init__(self, index: Tensor, seed: int = 0) -> None:
        start = int(scramble_(torch.tensor(as_int64(seed * INCREMENT + FACTORS[0]))))
        self._key = scramble_(index * as_int64(INCREMENT) + start)

    def words(self, *names: str) -> Tensor:
        """64 random bits for every name, int64 [names, B]."""
        # crc32 is a fixed function of the name; Python's own hash changes from run to run.
        numbers = [as_int64((zlib.crc32(name.encode()) + 1) * INCREMENT) for name in names]
        return scramble_(self._key + torch.tensor(numbers, device=self._key.device)[:, None])

    def uniform(self, ranges: Mapping[str, tuple[float, float]]) -> dict[str, Tensor]:
        """Evenly distributed numbers, each in its own range [low, high), float64 [B] by name."""
        unit = shifted(self.words(*ranges), 40).double() / (1 << 24)
        low, high = torch.tensor(list(ranges.values()), dtype=torch.float64, device=unit.device)[:, :, None].unbind(1)
        return dict(zip(ranges, (low + (high - low) * unit).unbind(0), strict=True))

    def choice(self, name: str, count: int) -> Tensor:
        """Evenly distributed among 0 … count - 1, int64 [B]; count is a power of two."""
        return self.words(name)[0] & (count - 1)
