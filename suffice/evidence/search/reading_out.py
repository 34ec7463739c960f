"""Reading finished images out of a search: from tensors over slots and rows to values of one image each."""

from __future__ import annotations

from typing import Any, get_args

from torch import Tensor

from suffice.evidence.result import MSE, Stopped
from suffice.perturb.rows import Rows, group_sizes

REASONS: tuple[Stopped, ...] = get_args(Stopped)


def cut_by_slot(rows: Rows, done: Tensor) -> list[Rows]:
    """Rows that belong to the slots that are done, bool [slots]: cut by slot, on the CPU.

    Example:
        >>> import torch
        >>> rows = Rows(slot=torch.tensor([2, 0, 2]), ratio=torch.tensor([0.1, 0.2, 0.3]))
        >>> [one.ratio for one in cut_by_slot(rows, torch.tensor([True, False, True]))]
        [tensor([0.2000]), tensor([0.1000, 0.3000])]
    """
    order = rows.slot.sort(stable=True).indices
    lengths = group_sizes(rows.slot, len(done))[done].tolist()
    # Parts are copied: a view of one image's rows would keep those of all the others in memory.
    cut = {name: [p.clone() for p in c[order].cpu().split(lengths)] for name, c in rows.columns.items()}
    return [Rows(**dict(zip(cut, parts, strict=True))) for parts in zip(*cut.values(), strict=True)]


def records(columns: dict[str, Tensor], rows: Tensor) -> list[dict[str, Any]]:
    """Some rows, bool [K], of columns [K], each as a dict.

    Example:
        >>> import torch
        >>> records({"level": torch.tensor([3, 4])}, torch.tensor([False, True]))
        [{'level': 4}]
    """
    chosen = rows.nonzero().flatten()
    values = zip(*(column[chosen].tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in values]


def evidence_fields(mses: tuple[MSE, ...], below: Rows, facts: dict[str, Any], spent: dict[str, int]) -> dict[str, Any]:
    """The fields of one image's :class:`~suffice.evidence.Evidence` that a search knows."""
    return facts | {
        "mses": mses,
        "regions": below.region,
        "ratios": below.ratio,
        "stopped": REASONS[facts["stopped"]],
        "spent": {name: number for name, number in spent.items() if number},
    }
