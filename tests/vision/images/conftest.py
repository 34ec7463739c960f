import numpy as np
import pytest


@pytest.fixture
def scene():
    return np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
