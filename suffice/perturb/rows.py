"""Arrays as tables: sort rows by several columns, find groups, rank within groups.

Columns are tensors with one entry a row, [K], or several, [K, words] (regions of large grids). All of it runs on the
device of the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor


class Rows:
    """A table: tensors [K] or [K, words] on one device as attributes; rows are chosen in all of them at once.

    Example:
        >>> rows = Rows(slot=torch.tensor([0, 1, 1]), ratio=torch.tensor([0.2, 0.9, 0.4]))
        >>> rows[rows.ratio > 0.3].slot
        tensor([1, 1])
        >>> rows.sorted_by("slot", "ratio").ratio
        tensor([0.2000, 0.4000, 0.9000])
    """

    def __init__(self, **columns: Tensor) -> None:
        self.columns = columns

    def __getattr__(self, name: str) -> Tensor:
        try:
            return self.__dict__["columns"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, rows: Tensor | slice) -> Rows:
        """Some rows, by a mask, bool [K], by their positions, or by a slice."""
        if isinstance(rows, slice):
            return Rows(**{name: column[rows] for name, column in self.columns.items()})
        if rows.dtype == torch.bool:
            rows = rows.nonzero().flatten()  # once, not once for each column
        # On CPUs it is several times as fast as square brackets.
        return Rows(**{name: column.index_select(0, rows) for name, column in self.columns.items()})

    def split(self, mask: Tensor) -> tuple[Rows, Rows]:
        """The rows where a mask, bool [K], is true, and the others."""
        return self[mask], self[~mask]

    def but(self, **columns: Tensor) -> Rows:
        """The same rows with other or more columns."""
        return Rows(**self.columns | columns)

    def sorted_by(self, *names: str) -> Rows:
        """The rows by the first of these columns, then the second, and so on."""
        return self[lexsort(*(self.columns[name] for name in names))]

    def first_of_each(self, *names: str) -> Rows:
        """The first of each run of rows that are equal in these columns."""
        return self[starts(*(self.columns[name] for name in names))]

    @staticmethod
    def cat(parts: Sequence[Rows]) -> Rows:
        """The rows of several tables with the same columns, one after the other."""
        return Rows(**{name: torch.cat([part.columns[name] for part in parts]) for name in parts[0].columns})


def lexsort(*columns: Tensor) -> Tensor:
    """The order [K] int64 that sorts rows by the first column, then the second, and so on.

    Example:
        >>> lexsort(torch.tensor([1, 0, 1]), torch.tensor([5, 9, 2]))
        tensor([1, 2, 0])
    """
    keys = [key for column in columns for key in (column.unbind(1) if column.dim() == 2 else (column,))]
    order = keys[-1].sort(stable=True).indices
    for key in reversed(keys[:-1]):
        order = order.index_select(0, key.index_select(0, order).sort(stable=True).indices)
    return order


def starts(*columns: Tensor) -> Tensor:
    """Whether each row differs from the one before it, bool [K]; the first row does.

    Example:
        >>> starts(torch.tensor([3, 3, 4, 3]))
        tensor([ True, False,  True,  True])
    """
    first = torch.ones(len(columns[0]), dtype=torch.bool, device=columns[0].device)
    if len(first) > 1:
        changed = [c[1:] != c[:-1] for c in columns]
        first[1:] = reduce(torch.logical_or, [c.any(dim=1) if c.dim() == 2 else c for c in changed])
    return first


def rank_in_group(group: Tensor) -> Tensor:
    """Number each row within its run of equal entries, from 0; [K] int64.

    Example:
        >>> rank_in_group(torch.tensor([7, 7, 9, 9, 9]))
        tensor([0, 1, 0, 1, 2])
    """
    row = torch.arange(len(group), device=group.device)
    begin = torch.where(starts(group), row, torch.zeros_like(row)).cummax(0).values if len(group) else row
    return row - begin


def group_sizes(group: Tensor, groups: int) -> Tensor:
    """How many rows belong to each of so many groups, [groups] int64; a GPU need not be waited for.

    Example:
        >>> group_sizes(torch.tensor([2, 0, 2]), 4)
        tensor([1, 0, 2, 0])
    """
    return torch.zeros(groups, dtype=torch.long, device=group.device).scatter_add_(0, group, torch.ones_like(group))


def unique(*columns: Tensor) -> tuple[Tensor, Tensor]:
    """Distinct rows, sorted: the first occurrence of each [D], and for each row which distinct one it is [K]."""
    order = lexsort(*columns)
    first = starts(*(c.index_select(0, order) for c in columns))
    place = torch.empty_like(order)
    place[order] = first.cumsum(0) - 1
    return order.index_select(0, first.nonzero().flatten()), place
