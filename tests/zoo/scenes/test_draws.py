"""The numbers that scenes are drawn from."""

from __future__ import annotations

import torch

from suffice.zoo.scenes.draws import Draws


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
