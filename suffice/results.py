"""What results share: choosing rows of them, and tables for other tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

import torch
from torch import Tensor

from suffice.errors import MissingExtra

if TYPE_CHECKING:
    import pyarrow

Rows = Union[int, slice, Sequence[int], Sequence[bool], Tensor]


def selected(rows: Rows, count: int) -> Tensor:
    """Positions [M] int64 that an index, a slice, a list or a mask stands for.

    Example:
        >>> selected(-1, 4), selected(slice(1, 3), 4), selected([True, False, False, True], 4)
        (tensor([3]), tensor([1, 2]), tensor([0, 3]))
    """
    every = torch.arange(count)
    if isinstance(rows, slice):
        return torch.tensor(range(count)[rows], dtype=torch.long)  # also backwards
    index = torch.as_tensor(rows, device="cpu").reshape(-1)
    if index.dtype == torch.bool:
        return every[index]
    index = index.long() if not index.numel() else index  # an empty list has no type of its own
    outside = ((index < -count) | (index >= count)).nonzero().flatten().tolist()
    if outside:
        raise IndexError(f"There are {count} results, 0 to {count - 1}; there is no {int(index[outside[0]])}.")
    return every[index]


def text_column(texts: Sequence[str], count: int) -> pyarrow.Array:
    """A column of texts, one a row; nulls where there are none."""
    import pyarrow as pa

    return pa.array(list(texts) if texts else [None] * count, pa.string())


def to_pandas(table: pyarrow.Table) -> Any:
    """A table as a data frame."""
    try:
        import pandas  # noqa: F401
    except ImportError as error:
        raise MissingExtra("to_pandas() needs pandas: pip install pandas; to_arrow() does not.") from error
    return table.to_pandas()
