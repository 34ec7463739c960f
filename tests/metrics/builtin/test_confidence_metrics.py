"""Average drop and increase of the score."""

import pytest
import torch

from suffice.errors import OptionError
from suffice.metrics import measure
from tests.attribution.nets import pictures
from tests.metrics import twins
from tests.metrics.nets import sharp_cnn
from tests.metrics.twins import Twin


@pytest.mark.parametrize("protocol", ["default", "eea"])
def test_drop_and_increase(protocol):
    images = pictures(6)
    raw = torch.rand(6, 8, 8, generator=torch.Generator().manual_seed(1))
    maps, targets = raw if protocol == "eea" else 5 * raw - 9, [0, 1, 2, 3, 4, 0]
    found = measure(sharp_cnn(), images, maps, ["adp", "pic"], protocol, targets=targets)
    for i in range(6):
        twin = Twin(images[i], targets[i])
        mask = twins.half_pixel(maps[i], 32)
        if protocol == "default":
            mask = (mask - mask.min()) / (mask.max() - mask.min())
        y, o = twin.score(twin.x), twin.score((twin.pixels * mask - twin.mean) / twin.std)
        scale = 100 if protocol == "eea" else 1
        assert float(found["adp"].values[i]) == pytest.approx(scale * max(0, y - o) / y, rel=1e-3, abs=1e-4 * scale)
        assert float(found["pic"].values[i]) == scale * (y < o)
    assert 0 < found["pic"].mean < found["pic"].values.max()


def test_drop_and_increase_share_their_forwards_and_refuse_what_is_no_mask():
    images = pictures(2)
    with pytest.raises(OptionError, match=r"range from -0.5 to -0.5. Write mask='min-max'"):
        measure(sharp_cnn(), images, torch.full((2, 8, 8), -0.5), "adp", mask="raw")
    nothing = measure(sharp_cnn(), images, torch.full((2, 8, 8), 7.0), "adp")
    black = sharp_cnn()(torch.zeros_like(images)).gather(1, nothing.targets[:, None])[:, 0]
    whole = sharp_cnn().predict(images).confidences
    torch.testing.assert_close(nothing.values, (whole - black).clamp(min=0) / whole)


def test_a_map_of_ones_loses_nothing():
    images = pictures(2)
    found = measure(sharp_cnn(), images, torch.ones(2, 8, 8), ["adp", "pic"], mask="raw")
    assert found["adp"].values.tolist() == pytest.approx([0, 0], abs=1e-6)
    assert found["pic"].values.tolist() == [0, 0]
