"""The benchmark of metrics counts what goes through the model."""

import pytest

from suffice import open_images
from suffice.bench import benchmark_metrics
from tests.attribution.nets import pictures, small_cnn


@pytest.mark.parametrize(("metrics", "forwards"), [(("insertion",), 4 + 1), (("insertion", "deletion"), 2 * 3 + 2)])
def test_metrics_share_the_ends_of_their_curves(metrics, forwards):
    timing = benchmark_metrics(small_cnn(), open_images(pictures(3)), metrics, batch_size=4, steps=4)
    assert timing.images == 3
    assert timing.forwards == forwards
    assert timing.images_per_second > 0
    assert timing.efficiency == pytest.approx(timing.forwards * timing.images_per_second / timing.bare)
