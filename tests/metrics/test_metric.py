"""How a metric is declared."""

import pytest
import torch

from suffice.errors import OptionError
from suffice.metrics import Outcome, all_metrics, forget_metric, measure, metric
from tests.attribution.nets import pictures, small_cnn


@pytest.fixture
def highest():
    @metric("highest", higher_is_better=True, bounds=(0, 1), needs=("maps",), reference="nowhere")
    def function(given, *, power: float = 1.0):
        """The highest value."""
        return Outcome(given.maps.flatten(1).amax(dim=1) ** power)

    yield function
    forget_metric("highest")


def test_a_declared_metric(highest):
    images = pictures(2)
    found = measure(small_cnn(), images, torch.full((2, 4, 4), 0.5), "highest", power=2.0)
    assert found.values.tolist() == pytest.approx([0.25, 0.25])
    assert all_metrics()["highest"].about == "The highest value."
    with pytest.raises(OptionError, match="Did you mean 'insertion'"):
        measure(small_cnn(), images, torch.rand(2, 4, 4), "insertio")

    def positional(given, power=1.0): ...

    with pytest.raises(OptionError, match="keyword-only"):
        metric("other", higher_is_better=True, bounds=(0, 1), needs=(), reference="")(positional)
    positional.__module__ = "elsewhere"
    positional.__defaults__ = None
    with pytest.raises(OptionError):
        metric("highest", higher_is_better=True, bounds=(0, 1), needs=(), reference="")(positional)
