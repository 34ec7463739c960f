"""What results share: choosing rows, and tables for other tools."""

import builtins

import numpy as np
import pyarrow as pa
import pytest
import torch

from suffice.errors import MissingExtra, OptionError
from suffice.results import load_tensors, selected, text_column, to_pandas


@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        (0, [0]),
        (-1, [4]),
        (np.int64(3), [3]),
        (torch.tensor(2), [2]),
        (slice(None), [0, 1, 2, 3, 4]),
        (slice(1, -1), [1, 2, 3]),
        (slice(None, None, -2), [4, 2, 0]),
        (slice(9, None), []),
        ([], []),
        ([4, 0, 0], [4, 0, 0]),
        ((1, -1), [1, 4]),
        (range(2, 4), [2, 3]),
        (np.array([1, 2]), [1, 2]),
        (torch.tensor([3, -2]), [3, 3]),
        ([True, False, True, False, False], [0, 2]),
        (torch.tensor([False] * 4 + [True]), [4]),
        (np.array([False] * 5), []),
    ],
)
def test_rows_are_chosen_as_in_a_list(rows, kept):
    found = selected(rows, 5)
    assert found.dtype == torch.int64
    assert found.tolist() == kept


@pytest.mark.parametrize("rows", [5, -6, [0, 5], torch.tensor([-6])])
def test_rows_that_are_not_there_are_an_error(rows):
    with pytest.raises(IndexError, match=r"There are 5 results, 0 to 4; there is no (5|-6)"):
        selected(rows, 5)


@pytest.mark.parametrize("rows", [[True, False], 0.5, "a"])
def test_what_is_no_choice_of_rows_is_an_error(rows):
    with pytest.raises((IndexError, TypeError)):
        selected(rows, 5)


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\x08\0\0\0\0\0\0\0{}      more"])
def test_a_file_that_is_damaged_is_a_named_error(content, tmp_path):
    file = tmp_path / "maps.safetensors"
    file.write_bytes(content)
    with pytest.raises(OptionError, match=r"maps\.safetensors (is damaged, or no safetensors file|holds no maps)"):
        load_tensors(file, "maps", "key")
    with pytest.raises(OptionError, match="There are no maps at"):
        load_tensors(tmp_path, "maps", "key")


def test_texts_are_a_column_with_or_without_them():
    assert text_column(("a", "b"), 2).to_pylist() == ["a", "b"]
    empty = text_column((), 2)
    assert empty.to_pylist() == [None, None]
    assert empty.type == pa.string()


def test_a_data_frame_needs_pandas(monkeypatch):
    pytest.importorskip("pandas")
    table = pa.table({"a": [1, 2]})
    assert to_pandas(table)["a"].tolist() == [1, 2]
    whole = builtins.__import__

    def without_pandas(name, *args):
        if name == "pandas":
            raise ImportError(name)
        return whole(name, *args)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(MissingExtra, match=r"pip install pandas; to_arrow\(\) does not"):
        to_pandas(table)


def test_tensors_as_bytes_are_the_file(tmp_path):
    from suffice.results import save_tensors, tensors_from_bytes, tensors_to_bytes

    tensors, about = {"a": torch.rand(2, 3).t(), "none": torch.zeros(0, 1)}, {"key": ["é", None]}
    file = save_tensors(tmp_path / "some", tensors, about)
    for found, said in (
        tensors_from_bytes(file.read_bytes()),
        tensors_from_bytes(tensors_to_bytes(tensors, about)),
        load_tensors(file, "some", "key"),
    ):
        assert said == about
        assert found.keys() == tensors.keys()
        assert all(torch.equal(found[name], tensors[name]) for name in tensors)
