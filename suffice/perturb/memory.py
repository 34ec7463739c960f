"""What has been answered: (image, region) → confidence, for millions of regions, in arrays.

Answers lie in a few runs sorted by a 64-bit hash of their key. A look-up is a binary search in each run; new answers
become a run of their own, and runs of similar length are merged, so that there are never more than about log₂ of
them. Keys are compared in full after the search: two keys with the same hash cost a repeated question at worst,
never a wrong answer.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

_SPREAD = -7046029254386353131  # 2**64 / golden ratio, odd, as a signed number


class Keys(NamedTuple):
    """Questions in order of their hash."""

    hash: Tensor  # [K] int64, ascending
    columns: Tensor  # [K, 1 + words] int64: image, then the region's words

    def take(self, rows: Tensor) -> Keys:
        """Some of them."""
        return Keys(self.hash.index_select(0, rows), self.columns.index_select(0, rows))


class _Run(NamedTuple):
    keys: Keys
    values: Tensor  # [K, columns] float32


class Memory:
    """Answers of ``columns`` numbers by image and region; beyond ``limit`` the largest run, the oldest, is let go."""

    def __init__(self, limit: int = 1 << 23, columns: int = 1) -> None:
        self.limit, self.columns = limit, columns
        self._runs: list[_Run] = []

    def __len__(self) -> int:
        return sum(len(run.values) for run in self._runs)

    def look_up(self, keys: Keys) -> tuple[Tensor, Tensor]:
        """Whether each of some distinct questions is known, bool [K], and its answer [K, columns], 0 where unknown."""
        known = torch.zeros_like(keys.hash, dtype=torch.bool)
        values = torch.zeros(len(known), self.columns, device=known.device)
        for run in self._runs:
            row = torch.searchsorted(run.keys.hash, keys.hash).clamp_(max=len(run.values) - 1)
            here = (run.keys.columns.index_select(0, row) == keys.columns).all(dim=1)
            values = torch.where(here[:, None], run.values.index_select(0, row), values)
            known |= here
        return known, values

    def store(self, keys: Keys, values: Tensor) -> None:
        """Keep new answers, [K, columns] float32, of distinct questions not yet known."""
        if not len(values):
            return
        self._runs.append(_Run(keys, values))
        while len(self._runs) > 1 and len(self._runs[-1].values) * 2 > len(self._runs[-2].values):
            last, before = self._runs.pop(), self._runs.pop()
            self._runs.append(_merge(before, last))
        while len(self) > self.limit and len(self._runs) > 1:
            self._runs.pop(0)
        if len(self) > self.limit:
            self._runs.clear()

    def forget(self, images: Tensor) -> None:
        """Let go of all answers about some images, [M] int64."""
        kept = []
        for run in self._runs:
            stays = (~torch.isin(run.keys.columns[:, 0], images)).nonzero().flatten()
            if len(stays):
                kept.append(_Run(run.keys.take(stays), run.values.index_select(0, stays)))
        self._runs = kept


def distinct(images: Tensor, words: Tensor) -> tuple[Keys, Tensor]:
    """Sort questions about images [K] and the words of their regions [K, words], and drop repeated ones.

    Returns the distinct questions [D], and for each of the K questions which of them it is [K].
    """
    columns = torch.cat([images[:, None], words], dim=1)
    hashes, order = _hash(columns).sort()
    columns = columns.index_select(0, order)
    first = torch.ones_like(hashes, dtype=torch.bool)
    first[1:] = (columns[1:] != columns[:-1]).any(dim=1)
    number = torch.empty_like(order)
    number[order] = first.cumsum(0) - 1
    rows = first.nonzero().flatten()
    return Keys(hashes, columns).take(rows), number


def _merge(a: _Run, b: _Run) -> _Run:
    hashes, order = torch.cat([a.keys.hash, b.keys.hash]).sort()
    columns = torch.cat([a.keys.columns, b.keys.columns]).index_select(0, order)
    return _Run(Keys(hashes, columns), torch.cat([a.values, b.values]).index_select(0, order))


def _hash(columns: Tensor) -> Tensor:
    """Mix the columns [K, C] into one well-spread number each, [K] int64."""
    mixed = torch.zeros_like(columns[:, 0])
    for column in columns.unbind(dim=1):
        mixed = (mixed ^ column) * _SPREAD  # wraps around
        mixed = mixed ^ (mixed >> 32 & 0xFFFFFFFF)
    return mixed
