"""Grids, and regions as bit sets.

A region is a set of cells of a grid. It is stored as bits in int64 words: cell ``i`` (row-major) is bit ``i % 64`` of
word ``i // 64``. One word covers every grid up to 8×8, and regions of such a grid are tensors ``[K]``; larger grids
take more words, ``[K, words]``. So set algebra is arithmetic on whole arrays: ``a | b`` is the union, ``a & b`` the
intersection, ``a & ~b`` the difference, and equal regions are equal numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from suffice.errors import OptionError

WORD = 64


@dataclass(frozen=True)
class Grid:
    """An image cut into ``side`` × ``side`` cells.

    Example:
        >>> grid = Grid(7)
        >>> regions = grid.from_cells([(17, 24, 25), ()])
        >>> regions
        tensor([50462720,        0])
        >>> grid.to_cells(regions)
        [(17, 24, 25), ()]
        >>> grid.count(grid.complement(regions))
        tensor([46, 49])
    """

    side: int = 7

    def __post_init__(self) -> None:
        if not isinstance(self.side, int) or self.side < 1:
            raise OptionError(f"A grid has a whole number of cells a side, 1 or more; not {self.side!r}.")

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.side**2

    @property
    def words(self) -> int:
        """Number of int64 words that a region takes."""
        return -(-self.cells // WORD)

    def empty(self, count: int, device: torch.device | str | None = None) -> Tensor:
        """``count`` regions without a cell, [K] or [K, words]."""
        shape = (count,) if self.words == 1 else (count, self.words)
        return torch.zeros(shape, dtype=torch.long, device=device)

    def full(self, count: int, device: torch.device | str | None = None) -> Tensor:
        """``count`` regions of all cells, [K] or [K, words]."""
        return self.complement(self.empty(count, device))

    def from_cells(self, regions: Iterable[Iterable[int]], device: torch.device | str | None = None) -> Tensor:
        """Regions from lists of cells.

        Args:
            regions: For each region its cells, in any order.
            device: Where to put them.

        Returns:
            Regions, [K] or [K, words] int64.
        """
        try:
            listed = [[int(c) for c in region] for region in regions]
        except (TypeError, ValueError) as error:
            raise OptionError("Regions are lists of cells, such as [(17, 24, 25), (30,)].") from error
        for cell in (c for region in listed for c in region):
            if not 0 <= cell < self.cells:
                raise OptionError(
                    f"A {self.side}×{self.side} grid has cells 0 to {self.cells - 1}; there is no {cell}."
                )
        bits = torch.zeros(len(listed), self.cells, dtype=torch.bool)
        rows = [k for k, region in enumerate(listed) for _ in region]
        bits[rows, [c for region in listed for c in region]] = True
        return self.from_bits(bits.to(device))

    def to_cells(self, regions: Tensor) -> list[tuple[int, ...]]:
        """The cells of each region, ascending."""
        bits = self.to_bits(regions).cpu()
        cells = bits.nonzero()[:, 1].tolist()
        ends = bits.sum(dim=1).cumsum(0).tolist()
        return [tuple(cells[start:end]) for start, end in zip([0, *ends], ends, strict=False)]

    def from_bits(self, bits: Tensor) -> Tensor:
        """Regions from one truth value a cell.

        Args:
            bits: Bool [K, cells].

        Returns:
            Regions, [K] or [K, words] int64.
        """
        words = pack_bits(bits)
        return words[:, 0] if self.words == 1 else words

    def to_bits(self, regions: Tensor) -> Tensor:
        """One truth value a cell, bool [K, cells]."""
        # Byte by byte, by a table: eight truth values at once.
        numbers = self.as_words(regions).view(torch.uint8).flatten().int()
        eights = _bits_of_bytes(str(regions.device)).index_select(0, numbers)
        return eights.view(torch.bool).view(-1, self.words * WORD)[:, : self.cells]

    def count(self, regions: Tensor) -> Tensor:
        """Number of cells of each region, [K] int64."""
        # Counts of 2, 4 and 8 bits side by side in each word; a product adds up the bytes.
        words = regions - (regions >> 1 & 0x5555555555555555)
        words = (words & 0x3333333333333333) + (words >> 2 & 0x3333333333333333)
        words = words + (words >> 4) & 0x0F0F0F0F0F0F0F0F
        return self.as_words(words * 0x0101010101010101 >> 56).sum(dim=1)

    def complement(self, regions: Tensor) -> Tensor:
        """The cells that each region does not have."""
        spare = self.words * WORD - self.cells
        last = (1 << (WORD - spare)) - 1 if spare else -1
        if self.words == 1:
            return ~regions & last
        flipped = ~regions
        flipped[:, -1] &= last
        return flipped

    def is_subset(self, inner: Tensor, outer: Tensor) -> Tensor:
        """Whether each region of ``inner`` lies within its partner in ``outer``, bool [K]."""
        return (self.as_words(inner & ~outer) == 0).all(dim=1)

    def single(self, cells: Tensor) -> Tensor:
        """The region of just one cell, for each cell [K]."""
        one = torch.ones_like(cells)
        if self.words == 1:
            return one << cells
        regions = self.empty(len(cells), cells.device)
        return regions.scatter_(1, (cells // WORD)[:, None], (one << cells % WORD)[:, None])

    def without_each(self, regions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Every way to take one cell out of each region.

        Returns:
            For each way, in order of region and cell: index of the region [M], the cell [M], and what remains
            [M] or [M, words].
        """
        parent, cell = self.to_bits(regions).nonzero(as_tuple=True)
        return parent, cell, regions.index_select(0, parent) ^ self.single(cell)

    def with_each(self, regions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Every way to put one more cell into each region; see :meth:`without_each`."""
        parent, cell, _ = self.without_each(self.complement(regions))
        return parent, cell, regions.index_select(0, parent) | self.single(cell)

    def keys(self, group: Tensor, regions: Tensor) -> tuple[Tensor, ...]:
        """Columns that order regions by a group, [K] from 0 to 16,383, and then by themselves.

        It is but one column where both fit into a word, as in grids up to 7×7; it takes half the time to sort.
        """
        return (group << self.cells | regions,) if self.cells <= WORD - 15 else (group, regions)

    def as_words(self, regions: Tensor) -> Tensor:
        """Regions as [K, words], however many words they have; a view."""
        expected = "[K]" if self.words == 1 else f"[K, {self.words}]"
        if regions.dtype != torch.long or regions.dim() != (1 if self.words == 1 else 2):
            raise OptionError(
                f"Regions of a {self.side}×{self.side} grid are int64 {expected}; "
                f"got {regions.dtype} {list(regions.shape)}."
            )
        return regions[:, None] if self.words == 1 else regions


def pack_bits(bits: Tensor) -> Tensor:
    """Truth values [K, n] as bits of int64 words, [K, words].

    Example:
        >>> pack_bits(torch.tensor([[True, False, True]]))
        tensor([[5]])
    """
    padded = torch.nn.functional.pad(bits, (0, -bits.shape[1] % WORD)).unflatten(1, (-1, WORD))
    # A sum of distinct powers of two is their union; bit 63 is the sign, and wraps around as it should.
    return (padded.long() << torch.arange(WORD, device=bits.device)).sum(dim=2)


@lru_cache(maxsize=8)
def _bits_of_bytes(device: str) -> Tensor:
    """The eight bits of each byte, [256]: as the eight bytes of an int64, the lowest first in memory."""
    numbers = torch.arange(256)[:, None] >> torch.arange(8) & 1
    return numbers.to(torch.uint8).view(torch.long)[:, 0].to(device)
