"""Information curves: each equals its twin, and what happens at the edges is defined."""

import io

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.interpolate import griddata, interp1d

from suffice.metrics import measure
from suffice.metrics.builtin.information_metrics import SHARES, information_of, interpolated, known_at_start
from suffice.testing import AnyOf
from suffice.vision import open_images
from suffice.vision.identity import image_seed
from tests.attribution.nets import pictures
from tests.metrics.nets import sharp_cnn
from tests.metrics.twins import Twin


def revealed(image, values, start):
    """The image as its pixels are added, step by step as the definition has it, one channel at a time."""
    full = np.round(image.permute(1, 2, 0).numpy() * 255).astype(np.uint8)

    def blurred(mask):
        mask = mask.copy()
        for r, c in ((0, 0), (0, -1), (-1, 0), (-1, -1)):
            mask[r, c] = True
        made = full.astype(np.float64)
        for channel in range(3):
            plane = full[:, :, channel].astype(np.float64)
            made[:, :, channel][~mask] = griddata(
                np.argwhere(mask), plane[mask], np.argwhere(~mask), method="linear", fill_value=plane.mean()
            )
        return np.round(made).astype(np.uint8)

    masks = [start, *((values >= np.quantile(values, 1 - share)) | start for share in SHARES)]
    return [*map(blurred, masks), full]


def entropy(picture):
    file = io.BytesIO()
    Image.fromarray(picture).save(file, format="webp", lossless=True, quality=100)
    return len(file.getvalue())


def information_twin(twin, pictures_of_steps, held_by_steps, kind, minimum, monotone):
    """The curve at 1001 places and its area."""

    def said(picture):
        x = (torch.from_numpy(picture).permute(2, 0, 1).double() / 255 - twin.mean) / twin.std
        return getattr(twin, kind)(x)

    s0, *said_of_steps, s1 = map(said, pictures_of_steps)
    e0, *entropies, e1 = held_by_steps
    if s1 < minimum or s0 >= s1 or e0 >= e1:
        return None
    points, highest = [], 0.0
    for held, value in zip(entropies, said_of_steps, strict=True):
        x = np.clip((held - e0) / (e1 - e0), 0, 1)
        y = np.clip((value - s0) / (s1 - s0), 0, 1)
        highest = max(highest, y)
        points.append((x, highest if monotone else y))
    xs, ys = zip(*points, (0.0, 0.0), (1.0, 1.0), strict=True)
    places = np.linspace(0, 1, 1001)
    curve = np.append(interp1d(xs, ys)(places[:-1]), 1.0)
    return np.trapezoid(curve, places)


@pytest.fixture(scope="module")
def textured():
    """Images, their maps, and each image as its pixels are added, with the information that it holds then."""
    generator = torch.Generator().manual_seed(0)
    noise, maps = torch.rand(5, 3, 32, 32, generator=generator), torch.rand(5, 32, 32, generator=generator)
    images = open_images(((pictures(5) * 0.7 + 0.3 * noise).clamp(0, 1) * 255).round() / 255)
    pixels = torch.stack([picture.decode() for picture in images])
    steps = []
    for image, values, picture in zip(pixels, maps, images, strict=True):
        start = known_at_start((32, 32), 0.01, image_seed(0, picture.id))
        assert start.sum() == 10
        shown = revealed(image, values.double().numpy(), start)
        steps.append((shown, [entropy(picture) for picture in shown]))
    return images, pixels, maps, steps


@pytest.mark.parametrize("monotone", [True, False])
def test_information_curves(textured, monotone):
    images, pixels, maps, steps = textured
    both = measure(sharp_cnn(), images, maps, ["sic", "aic"], minimum=0.2, monotone=monotone)
    for name, kind in (("sic", "score"), ("aic", "hit")):
        found, judged = both[name], 0
        for i in range(5):
            expected = information_twin(Twin(pixels[i]), *steps[i], kind, 0.2, monotone)
            if expected is None:
                assert found.values[i].isnan()
            else:
                judged += 1
                # A point at the very left may stand before or behind the origin: one of a thousand places.
                assert float(found.values[i]) == pytest.approx(expected, abs=2e-3)
        assert int(found.judged.sum()) == judged
        assert judged >= (2 if name == "sic" else 1)
        assert found.reported == pytest.approx(float(found.curves.areas(found.curves.median)))


def textured_oracle():
    """A bright cell in a dark, noisy image, and an oracle that looks for it."""
    oracle = AnyOf([(5,)], grid=4, high=0.97, low=0.03)
    image = 0.35 * torch.rand(3, 32, 32, generator=torch.Generator().manual_seed(2))
    image[:, 8:16, 8:16] += 0.6
    return oracle.classifier(32), image[None]


def test_little_information_is_enough_if_it_is_the_right_one():
    net, image = textured_oracle()
    maps = torch.zeros(2, 4, 4)
    maps[0, 1, 1], maps[1] = 1.0, torch.arange(16.0).view(4, 4)
    maps[1, 1, 1] = -1.0
    found = measure(net, image.expand(2, -1, -1, -1), maps, ["aic", "sic"], enlargement="nearest", targets=1)
    for name in found.metrics:
        scores = found[name]
        assert scores.judged.all()
        assert scores.values[0] > 0.85
        assert scores.values[1] < 0.5
        assert scores.curves.x.shape == (1001,)


def test_images_that_the_rules_leave_out_are_not_judged():
    net, image = textured_oracle()
    images = torch.cat([image, torch.full_like(image, 0.9), torch.rand_like(image) * 0.3])
    found = measure(net, images, torch.rand(3, 8, 8), "sic", targets=1)
    assert found.judged.tolist() == [True, False, False]  # the blur says the same; the score is low
    assert found.mean == pytest.approx(float(found.values[0]))
    torch.testing.assert_close(found.curves.mean, found.curves.y[0])


def test_interpolation_keeps_what_is_known_and_planes_as_they_are():
    ramp = np.stack([np.add.outer(np.arange(20) * 3, np.arange(20) * 2)] * 3, axis=2).astype(np.uint8)
    known = known_at_start((20, 20), 0.05, 3)
    assert np.array_equal(interpolated(ramp, known), ramp)
    noise = np.random.default_rng(0).integers(0, 256, (20, 20, 3), dtype=np.uint8)
    assert np.array_equal(interpolated(noise, known)[known], noise[known])
    assert np.array_equal(interpolated(noise, np.ones((20, 20), bool)), noise)
    assert information_of(noise) > information_of(interpolated(noise, known)) > information_of(np.zeros_like(noise))
