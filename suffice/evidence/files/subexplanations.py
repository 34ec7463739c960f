"""The table of sub-explanations: all that was evaluated in and below the MSEs, region by region."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from suffice.errors import OptionError
from suffice.perturb.regions import Grid
from suffice.vision.provenance import KEY, as_json

if TYPE_CHECKING:
    import pyarrow

    from suffice.evidence.result import Evidence


def subexplanation_table(evidence: Sequence[Evidence]) -> pyarrow.Table:
    """One row for each region that was evaluated in or below an MSE, the MSEs among them.

    Returns:
        Columns: ``image``, ``image_id``, ``index``, ``target``; ``cells``, ``size``, ``ratio``; ``mse`` (its number
        among the MSEs of the image, from 0; null where it is none), ``under`` (the numbers of the MSEs that it lies
        strictly below).

    Example:
        >>> from suffice import find_evidence
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(0, 3)], grid=2, low=0.5)
        >>> found = find_evidence(oracle.classifier(8), oracle.image(8), targets=1, grid=2, baseline="black")
        >>> table = found.subexplanations()
        >>> table["cells"].to_pylist(), table["mse"].to_pylist(), table["under"].to_pylist()
        ([[0, 3], [0], [3]], [0, None, None], [[], [0], [0]])
    """
    import pyarrow as pa

    return pa.concat_tables([_schema().empty_table(), *map(_rows, evidence)])


def write_subexplanations(evidence: Iterable[Evidence], path: str | Path, about: Mapping[str, Any]) -> Path:
    """Write the table of sub-explanations to a Parquet file, however large.

    Args:
        evidence: One image after the other.
        path: The file.
        about: What it comes from, :attr:`EvidenceSet.about`; the file says so.
    """
    from suffice.evidence.files.storage import BLOCK, write_blocks

    every = iter(evidence)
    blocks = iter(lambda: list(islice(every, BLOCK)), [])
    return write_blocks(path, _schema().with_metadata({KEY: as_json(about)}), map(subexplanation_table, blocks))


def _schema() -> pyarrow.Schema:
    import pyarrow as pa

    numbers = pa.list_(pa.int32())
    return pa.schema(
        {
            "image": pa.string(), "image_id": pa.string(), "index": pa.int64(), "target": pa.int64(),
            "cells": numbers, "size": pa.int64(), "ratio": pa.float32(), "mse": pa.int64(), "under": numbers,
        }
    )  # fmt: skip


def _rows(evidence: Evidence) -> pyarrow.Table:
    """The rows of one image."""
    import pyarrow as pa

    grid, regions = evidence.grid, evidence.regions
    if not len(regions) and any(mse.cells for mse in evidence.mses):
        raise OptionError(f"The evidence of {evidence.name} was kept without its regions.")
    mses = grid.from_cells(mse.cells for mse in evidence.mses)
    same, within = _compared(grid, regions, mses)
    number = torch.full((len(regions),), -1)
    rows, numbers = same.nonzero(as_tuple=True)
    number[rows] = numbers
    of_image = (evidence.name, evidence.image_id, evidence.index, evidence.target)
    columns = [pa.array([value] * len(regions), field.type) for value, field in zip(of_image, _schema(), strict=False)]
    columns += [
        _lists(grid.to_bits(regions)),
        pa.array(grid.count(regions).numpy()),
        pa.array(evidence.ratios.float().numpy()),
        pa.array(number.numpy(), mask=(number < 0).numpy()),
        _lists(within & ~same),
    ]
    return pa.table(columns, _schema())


def _compared(grid: Grid, regions: Tensor, mses: Tensor) -> tuple[Tensor, Tensor]:
    """Whether each of M regions is each of K MSEs, and whether it lies within it, bool [M, K] both."""
    words, of_mses = grid.as_words(regions)[:, None], grid.as_words(mses)[None]
    return (words == of_mses).all(dim=2), ((words & ~of_mses) == 0).all(dim=2)


def _lists(bits: Tensor) -> pyarrow.ListArray:
    """The positions of the bits that are set in each row, bool [M, n], as one list a row."""
    import pyarrow as pa

    ends = torch.cat([torch.zeros(1, dtype=torch.long), bits.sum(dim=1).cumsum(0)])
    positions = bits.nonzero()[:, 1]
    return pa.ListArray.from_arrays(pa.array(ends.int().numpy()), pa.array(positions.int().numpy()))
