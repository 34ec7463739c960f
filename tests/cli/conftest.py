"""What tests of commands share."""

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def photos(tmp_path):
    """A folder with two photographs."""
    noise = np.random.default_rng(0)
    for name, shape in (("one", (60, 80)), ("two", (90, 50))):
        gray = Image.fromarray(noise.integers(256, size=shape, dtype=np.uint8))
        gray.convert("RGB").save(tmp_path / f"{name}.png")
    return tmp_path
