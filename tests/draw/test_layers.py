"""Layered graphs: rows keep their distance, and edges do not cross without need."""

import itertools
import random

import pytest

from suffice.draw import lay_out
from suffice.draw.layers import crossings


def random_graph(seed):
    """Rows of different lengths, and edges from each to the next."""
    chance = random.Random(seed)
    numbers = itertools.count()
    rows = [[next(numbers) for _ in range(chance.randint(1, 9))] for _ in range(5)]
    edges = [
        (parent, child)
        for above, below in itertools.pairwise(rows)
        for parent in above
        for child in chance.sample(below, min(len(below), chance.randint(0, 3)))
    ]
    return rows, edges


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("across", [100.0, 2000.0])
def test_rows_keep_their_distance_and_the_width(seed, across):
    rows, edges = random_graph(seed)
    layers = lay_out(rows, edges, across, least=10.0, most=50.0, spare=1.0)
    assert [sorted(row) for row in layers.rows] == rows
    assert layers.room == sorted(layers.room, reverse=True)
    assert all(10 <= room <= 50 for room in layers.room)
    for row, room in zip(layers.rows, layers.room, strict=True):
        centers = [layers.centers[node] for node in row]
        assert all(b - a >= room - 1e-6 for a, b in itertools.pairwise(centers))
        assert centers[0] >= room / 2 - 1e-6
        assert centers[-1] <= layers.width - room / 2 + 1e-6
    assert crossings(layers.rows, edges) <= crossings(rows, edges)


def test_crossings_that_need_not_be_are_undone():
    rows, edges = [[0, 1, 2], [3, 4, 5], [6, 7, 8]], [(0, 5), (1, 4), (2, 3), (5, 7), (4, 6), (3, 8)]
    assert crossings(rows, edges) > 0
    layers = lay_out(rows, edges, 100.0, 10.0, 30.0)
    assert crossings(layers.rows, edges) == 0
    assert layers.centers[0] == pytest.approx(layers.centers[5])
    assert layers.centers[5] == pytest.approx(layers.centers[7])


def test_crossings_are_counted_as_by_hand():
    counts = []
    for seed in range(5):
        rows, edges = random_graph(seed)
        index = {node: (depth, i) for depth, row in enumerate(rows) for i, node in enumerate(row)}
        crossed = sum(
            index[a][0] == index[c][0] and (index[a][1] - index[c][1]) * (index[b][1] - index[d][1]) < 0
            for (a, b), (c, d) in itertools.combinations(edges, 2)
        )
        counts.append(crossings(rows, edges))
        assert counts[-1] == crossed
    assert max(counts) > 0


def test_nothing_to_lay_out():
    assert lay_out([], [], 100.0, 10.0, 30.0).rows == []
