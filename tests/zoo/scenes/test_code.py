"""The code of the classes."""

from __future__ import annotations

from itertools import combinations, product

import torch

from suffice.zoo.scenes import CLASSES, CODE, PARTS, TYPES, classes_with, types_of


def test_sixteen_classes_of_five_parts_with_four_types():
    assert len(CLASSES) == len(set(CLASSES)) == len(set(CODE)) == 16
    assert len(PARTS) == len(TYPES) == 5
    assert all(len(set(kinds)) == 4 for kinds in TYPES)
    assert {kind for word in CODE for kind in word} == {0, 1, 2, 3}


def test_any_two_parts_determine_the_class_and_each_pair_of_types_occurs():
    for first, second in combinations(range(5), 2):
        pairs = [(word[first], word[second]) for word in CODE]
        assert sorted(pairs) == sorted(product(range(4), repeat=2))


def test_one_part_leaves_four_candidates():
    for slot, kind in product(range(5), range(4)):
        assert sum(word[slot] == kind for word in CODE) == 4
        assert len(classes_with({PARTS[slot]: TYPES[slot][kind]})) == 4


def test_two_classes_differ_in_four_parts_or_more():
    for one, other in combinations(CODE, 2):
        assert sum(a != b for a, b in zip(one, other, strict=True)) >= 4


def test_types_of_reads_the_code():
    labels = torch.tensor([15, 0, 7])
    assert types_of(labels).tolist() == [list(CODE[15]), list(CODE[0]), list(CODE[7])]
