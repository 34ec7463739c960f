"""What results share: choosing rows of them, tables for other tools, and files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save, save_file
from torch import Tensor

from suffice.errors import MissingExtra, OptionError

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


def save_tensors(path: str | Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> Path:
    """Write tensors to one safetensors file, with what is not a tensor as JSON in its metadata.

    Args:
        path: Of the file; the suffix ``.safetensors`` may be left out.
        tensors: By name.
        about: Whatever belongs to them, by name.

    Returns:
        The path of the file.
    """
    file = _with_suffix(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    save_file(_apart(tensors), file, _texts(about))
    return file


def tensors_to_bytes(tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> bytes:
    """What :func:`save_tensors` writes, for places that are not files."""
    return save(_apart(tensors), _texts(about))


def tensors_from_bytes(content: bytes) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors, and what belongs to them, of :func:`tensors_to_bytes`."""
    head = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])  # of the format: its length, and JSON
    return load(content), {name: json.loads(text) for name, text in head["__metadata__"].items()}


def load_tensors(path: str | Path, kind: str, key: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`save_tensors` wrote.

    Args:
        path: Of the file; the suffix ``.safetensors`` may be left out.
        kind: What is expected there, for errors.
        key: What such a file says about itself; others are refused.

    Returns:
        The tensors, and what belongs to them.
    """
    file = _with_suffix(path)
    if not file.is_file():
        raise OptionError(f"There are no {kind} at {file}.")
    try:
        with safe_open(file, "pt") as opened:
            texts = opened.metadata() or {}
            if key not in texts:
                raise OptionError(f"{file} holds no {kind}, or not as save() writes them.")
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 (it is no dict)
    except SafetensorError as error:
        raise OptionError(f"{file} is damaged, or no safetensors file: {error}.") from error
    return tensors, {name: json.loads(text) for name, text in texts.items()}


def _apart(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors with memory of their own, as the format needs them."""
    return {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}


def _texts(about: Mapping[str, Any]) -> dict[str, str]:
    return {name: json.dumps(value, ensure_ascii=False, default=repr) for name, value in about.items()}


def _with_suffix(path: str | Path) -> Path:
    file = Path(path)
    return file if file.suffix == ".safetensors" else file.with_name(file.name + ".safetensors")
