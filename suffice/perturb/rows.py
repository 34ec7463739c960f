"""Arrays as tables: sort rows by several columns, find groups, rank within groups.

Columns are tensors with one entry a row, [K], or several, [K, words] (regions of large grids). All of it runs on the
device of the columns.
"""

from __future__ import annotations

import torch
from torch import Tensor


def lexsort(*columns: Tensor) -> Tensor:
    """The order that sorts rows by the first column, then the second, and so on.

    Args:
        *columns: [K] or [K, words].

    Returns:
        Positions [K] int64.

    Example:
        >>> lexsort(torch.tensor([1, 0, 1]), torch.tensor([5, 9, 2]))
        tensor([1, 2, 0])
    """
    keys = [key for column in columns for key in (column.unbind(1) if column.dim() == 2 else (column,))]
    order = torch.arange(len(keys[0]), device=keys[0].device)
    for key in reversed(keys):
        order = order[key[order].sort(stable=True).indices]
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
        first[1:] = torch.stack([c.any(dim=1) if c.dim() == 2 else c for c in changed]).any(dim=0)
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


def unique(*columns: Tensor) -> tuple[Tensor, Tensor]:
    """Distinct rows, sorted.

    Args:
        *columns: [K] or [K, words].

    Returns:
        For each distinct row the position of its first occurrence [D], and for each row which distinct one it is [K].
    """
    order = lexsort(*columns)
    first = starts(*(c[order] for c in columns))
    place = torch.empty_like(order)
    place[order] = first.cumsum(0) - 1
    return order[first], place
