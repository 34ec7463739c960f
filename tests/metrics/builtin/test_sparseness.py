"""Sparseness."""

import pytest
import torch

from suffice.metrics import measure
from tests.attribution.nets import pictures, small_cnn
from tests.metrics import twins


@pytest.mark.parametrize("protocol", ["default", "tis"])
def test_sparseness_is_the_gini_index(protocol):
    maps = torch.randn(3, 6, 5)
    found = measure(small_cnn(), pictures(3), maps, "sparseness", protocol, targets=0)
    for i in range(3):
        own = maps[i].double()
        expected = twins.gini(own.abs() if protocol == "default" else own - own.min() + 1e-7)
        assert float(found.values[i]) == pytest.approx(expected, rel=1e-5)


def test_sparseness_at_the_extremes():
    maps = torch.stack([torch.zeros(10, 10), torch.full((10, 10), 3.0), torch.zeros(10, 10)])
    maps[2, 4, 4] = -2.0
    assert measure(small_cnn(), pictures(3), maps, "sparseness").values.tolist() == pytest.approx([0, 0, 0.99])
    shifted = measure(small_cnn(), pictures(3), maps, "sparseness", values="shifted")
    assert shifted.values.tolist() == pytest.approx([0, 0, 0.01], abs=1e-6)
