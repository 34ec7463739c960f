"""Random numbers that depend on (seed, index, name) and on nothing else.

There is no state: the numbers of image 17 are the same alone and among others, on the CPU and on a GPU, and a new
named draw leaves all others as they were.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import torch
from torch import Tensor

_WORD = 1 << 64
_STEP = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB


def _signed(word: int) -> int:
    """The same 64 bits as torch's int64 writes them."""
    word %= _WORD
    return word - _WORD if word >= _WORD // 2 else word


def _shifted(words: Tensor, bits: int) -> Tensor:
    # The shift of int64 drags the sign along; a shift of unsigned words brings in zeros.
    return (words >> bits) & ((1 << (64 - bits)) - 1)


def mix(words: Tensor) -> Tensor:
    """Scatter 64-bit words so that any change of the input changes about half of the output (splitmix64).

    Args:
        words: int64, any shape.

    Returns:
        int64, same shape; a permutation of all words.

    Example:
        >>> mix(torch.tensor([0, 1])).tolist()
        [0, 6238072747940578789]
    """
    words = (words ^ _shifted(words, 30)) * _signed(_FIRST)
    words = (words ^ _shifted(words, 27)) * _signed(_SECOND)
    return words ^ _shifted(words, 31)


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
        start = int(mix(torch.tensor(_signed(seed * _STEP + _FIRST))))
        self._key = mix(index * _signed(_STEP) + start)

    def words(self, *names: str) -> Tensor:
        """64 random bits for every name, int64 [names, B]."""
        # crc32 is a fixed function of the name; Python's own hash changes from run to run.
        numbers = [_signed((zlib.crc32(name.encode()) + 1) * _STEP) for name in names]
        return mix(self._key + torch.tensor(numbers, device=self._key.device)[:, None])

    def uniform(self, ranges: Mapping[str, tuple[float, float]]) -> dict[str, Tensor]:
        """Evenly distributed numbers, each in its own range [low, high), float64 [B] by name."""
        unit = _shifted(self.words(*ranges), 40).double() / (1 << 24)
        low, high = torch.tensor(list(ranges.values()), dtype=torch.float64, device=unit.device)[:, :, None].unbind(1)
        return dict(zip(ranges, (low + (high - low) * unit).unbind(0), strict=True))

    def choice(self, name: str, count: int) -> Tensor:
        """Evenly distributed among 0 … count - 1, int64 [B]; count is a power of two."""
        return self.words(name)[0] & (count - 1)
