"""The code of the classes, and the numbers that everything is drawn from."""

from __future__ import annotations

from itertools import combinations, product

import torch

from suffice.zoo.scenes import CLASSES, CODE, PARTS, TYPES, classes_with, types_of
from suffice.zoo.scenes.colors import color
from suffice.zoo.scenes.draws import Draws, mix


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


def slow_mix(word: int) -> int:
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) % 2**64
    return word ^ (word >> 31)


def test_mix_is_splitmix_on_unsigned_words():
    words = torch.randint(-(2**62), 2**62, (200,)) * 2 + 1
    expected = [slow_mix(word % 2**64) for word in words.tolist()]
    assert [word % 2**64 for word in mix(words).tolist()] == expected


def test_draws_depend_on_seed_index_and_name_only():
    draws = Draws(torch.arange(100), seed=3)
    both = draws.uniform({"a": (0, 1), "b": (0, 1)})
    assert torch.equal(both["a"], draws.uniform({"a": (0, 1)})["a"])
    assert torch.equal(both["a"][40:50], Draws(torch.arange(40, 50), seed=3).uniform({"a": (0, 1)})["a"])
    assert not (both["a"] == both["b"]).any()
    assert not (both["a"] == Draws(torch.arange(100), seed=4).uniform({"a": (0, 1)})["a"]).any()


def test_draws_are_even_and_unrelated():
    values = Draws(torch.arange(50_000)).uniform({"a": (-1, 3), "b": (0, 1)})
    assert -1 <= values["a"].min() < -0.999
    assert 2.999 < values["a"].max() < 3
    histogram = torch.histc(values["a"].float(), 50, -1, 3).double()
    assert ((histogram - 1000) ** 2 / 1000).sum() < 100  # chi square, 49 degrees: beyond with 1 in 40,000
    pairs = torch.corrcoef(torch.stack([values["a"], values["b"], values["a"].roll(1)]))
    assert (pairs - torch.eye(3)).abs().max() < 0.02


def test_draws_take_any_seed():
    for seed in (-1, 2**63, 2**200):
        assert Draws(torch.arange(2), seed).choice("label", 16).max() < 16


def test_colors_have_their_lightness():
    gray = color(torch.linspace(0, 1, 11), 0.0, torch.zeros(11))
    assert (gray.amax(dim=1) - gray.amin(dim=1)).max() < 1e-3
    assert (gray[1:, 0] > gray[:-1, 0]).all()
    red = color(torch.tensor([0.63]), 0.25, torch.tensor([29 / 360]))[0]
    assert red[0] > 0.9
    assert red[1:].max() < 0.25
