"""The benchmark of the search, and its twin that asks one question at a time."""

import pytest

from suffice.bench import benchmark_evidence
from suffice.evidence import Settings
from suffice.testing import AnyOf


@pytest.mark.parametrize("twin_images", [0, 1])
def test_timing(twin_images):
    oracle = AnyOf([(0, 1), (8,)], grid=3)
    timing = benchmark_evidence(
        oracle.classifier(12), oracle.image(12), settings=Settings(grid=3, max_size=3, baseline="black"), batch_size=4,
        twin_images=twin_images,
    )  # fmt: skip
    assert timing.images == 1
    assert 0 < timing.forwards_per_image <= 2**9 + 1
    assert timing.efficiency == pytest.approx(timing.forwards_per_image * timing.images_per_second / timing.bare)
    assert (timing.speed_up is None) is (twin_images == 0)
