"""What tests of commands share."""

import pytest
from PIL import Image


@pytest.fixture
def photos(tmp_path):
    """A folder with two photographs."""
    for name, size in (("one", (80, 60)), ("two", (50, 90))):
        Image.effect_noise(size, 80).convert("RGB").save(tmp_path / f"{name}.png")
    return tmp_path
