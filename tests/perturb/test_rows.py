"""Arrays as tables."""

import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from suffice.perturb.rows import Rows, lexsort, rank_in_group, starts, unique

NUMBERS = st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), max_size=30)


def columns(pairs):
    table = torch.tensor(pairs, dtype=torch.long).view(-1, 2)
    return table[:, 0], table[:, 1]


@given(NUMBERS)
def test_sorting_grouping_and_ranking(pairs):
    first, second = columns(pairs)
    order = lexsort(first, second)
    expected = sorted(range(len(pairs)), key=lambda i: (pairs[i], i))
    assert order.tolist() == expected
    kept, which = unique(first, second)
    distinct = sorted(set(pairs))
    assert [pairs[i] for i in kept.tolist()] == distinct
    assert [distinct[i] for i in which.tolist()] == pairs
    ordered = sorted(a for a, _ in pairs)
    group = torch.tensor(ordered, dtype=torch.long)
    assert rank_in_group(group).tolist() == [i - ordered.index(g) for i, g in enumerate(ordered)]
    assert starts(group).tolist() == [i == ordered.index(g) for i, g in enumerate(ordered)]


def table():
    return Rows(slot=torch.tensor([1, 0, 1, 0]), region=torch.tensor([[1, 2], [3, 4], [1, 2], [5, 6]]))


def test_rows_are_chosen_in_all_columns():
    mask = torch.tensor([True, False, False, True])
    for rows in (table()[mask], table()[torch.tensor([0, 3])], table().split(mask)[0]):
        assert rows.slot.tolist() == [1, 0]
        assert rows.region.tolist() == [[1, 2], [5, 6]]
    assert table().split(mask)[1].slot.tolist() == [0, 1]
    assert len(table()[:0]) == 0


def test_tables_are_joined_sorted_and_made_distinct():
    twice = Rows.cat([table(), table()])
    assert len(twice) == 8
    single = twice.sorted_by("slot", "region").first_of_each("slot", "region")
    assert single.region.tolist() == [[3, 4], [5, 6], [1, 2]]
    more = table().but(ratio=torch.zeros(4))
    assert list(more.columns) == ["slot", "region", "ratio"]
    with pytest.raises(AttributeError, match="ratio"):
        table().ratio  # noqa: B018


def test_tables_pickle():
    assert pickle.loads(pickle.dumps(table())).slot.tolist() == [1, 0, 1, 0]
