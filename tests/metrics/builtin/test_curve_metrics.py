"""Curves: each equals its twin under each protocol, and what happens at the edges is defined."""

import pytest
import torch
from torchvision.transforms.functional import gaussian_blur

from suffice.metrics import measure
from suffice.vision import open_images
from suffice.vision.identity import image_seed
from suffice.vision.noise import uniform_noise
from tests.attribution.nets import pictures
from tests.metrics import twins
from tests.metrics.nets import sharp_cnn
from tests.metrics.twins import Twin

SIDE = 32


def some_maps(count, side, seed=3):
    """Multiples of 1/16, so that there are ties and that enlarging by four is exact in any precision."""
    return torch.randint(-8, 9, (count, side, side), generator=torch.Generator().manual_seed(seed)) / 16


@pytest.fixture(scope="module")
def images():
    return pictures(2)


def check(images, maps, name, expected, **options):
    found = measure(sharp_cnn(), images, maps, name, **options)
    wanted = torch.tensor([expected(i) for i in range(len(images))])
    torch.testing.assert_close(found.values, wanted, atol=2e-5, rtol=1e-4)
    return found


@pytest.mark.parametrize("act", ["insertion", "deletion"])
@pytest.mark.parametrize(("protocol", "twin"), [("default", twins.default_curve), ("rise", twins.rise)])
def test_default_and_rise(images, act, protocol, twin):
    maps = some_maps(2, 8)
    check(
        images,
        maps,
        act,
        lambda i: twin(Twin(images[i]), twins.half_pixel(maps[i], SIDE), act),
        protocol=protocol,
    )


@pytest.mark.parametrize("act", ["insertion", "deletion"])
def test_vit_cx(images, act):
    maps = some_maps(2, SIDE)
    check(images, maps, act, lambda i: twins.vit_cx(Twin(images[i]), maps[i], act), protocol="vit-cx")


@pytest.mark.parametrize("act", ["insertion", "deletion"])
@pytest.mark.parametrize("side", [7, 12])
def test_igos_without_and_with_its_defect(images, act, side):
    maps = some_maps(2, side)
    right = check(images, maps, act, lambda i: twins.igos(Twin(images[i]), maps[i], act), protocol="igos")
    wrong = check(
        images,
        maps,
        act,
        lambda i: twins.igos(Twin(images[i]), maps[i], act, defect=True),
        protocol="igos",
        integration="right-defect",
    )
    assert (wrong.values > right.values).all()
    assert right.protocol["changed"] == []
    assert wrong.protocol["changed"] == ["integration"]


@pytest.mark.parametrize("act", ["insertion", "deletion"])
def test_jiang(images, act):
    maps = some_maps(2, 28)
    found = check(images, maps, act, lambda i: twins.jiang(Twin(images[i]), maps[i], act), protocol="jiang")
    assert found.curves.y.shape == (2, 54)


@pytest.mark.parametrize("act", ["insertion", "deletion"])
def test_tis_over_four_baselines_and_their_mean(images, act):
    maps, labels = some_maps(2, 8), [1, 4]
    opened = open_images(images, labels=labels)

    def canvases(i):
        twin = Twin(images[i], labels[i])
        seed = torch.tensor([image_seed(0, opened[i].id)])
        blurred = gaussian_blur(twin.pixels[None], [11, 11], [5.0, 5.0])[0]
        noise = uniform_noise(seed, torch.tensor([0]), (3, SIDE, SIDE))[0].double()
        mean, std = (torch.tensor(v).double().view(3, 1, 1) for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
        average = ((twin.pixels - mean) / std).mean().expand_as(noise)
        made = {"blur-tis": blurred, "tis-noise": noise * std + mean, "tis-mean": (average * std + mean).clamp(0, 1)}
        seen = {name: (pixels - twin.mean) / twin.std for name, pixels in made.items()}
        return twin, {**seen, "gray": torch.zeros_like(twin.x)}

    def expected(i, name):
        twin, made = canvases(i)
        return twins.tis(twin, twins.half_pixel(maps[i], SIDE), act, made[name])

    found = measure(sharp_cnn(), opened, maps, act, "tis")
    assert found.protocol["target_class"] == "label"
    assert found.targets.tolist() == labels
    for name in ("blur-tis", "gray", "tis-noise", "tis-mean"):
        wanted = torch.tensor([expected(i, name) for i in range(2)])
        torch.testing.assert_close(found.parts[name].values, wanted, atol=2e-5, rtol=1e-4)
    mean = torch.stack([part.values for part in found.parts.values()]).mean(dim=0)
    torch.testing.assert_close(found.values, mean)
    torch.testing.assert_close(found.curves.areas(found.curves.y), mean)


@pytest.mark.parametrize(("name", "least"), [("pos", False), ("neg", True)])
def test_eea_and_chefer_count_correct_decisions(name, least):
    images, labels = pictures(6), [0, 1, 2, 3, 4, 0]
    labels[:3] = sharp_cnn().predict(images[:3]).targets.tolist()
    maps = some_maps(6, 8)
    opened = open_images(images, labels=labels)

    def large(i):
        return twins.half_pixel(maps[i], SIDE)

    def judged(i):
        return Twin(images[i], labels[i])

    eea = check(opened, maps, name, lambda i: twins.eea(judged(i), large(i), least, judged(i).hit), protocol="eea")
    assert eea.values.max() <= 90 + 1e-4
    chefer = check(opened, maps, name, lambda i: twins.chefer(judged(i), large(i), least), protocol="chefer")
    assert 0 < chefer.mean < 1


@pytest.mark.parametrize(("name", "least"), [("deletion", False), ("lerf", True)])
def test_eea_deletion_and_its_insertion(images, name, least):
    maps = some_maps(2, 8)

    def expected(i):
        twin = Twin(images[i], 2)
        return twins.eea(twin, twins.half_pixel(maps[i], SIDE), least, twin.score)

    check(images, maps, name, expected, protocol="eea", targets=2)


@pytest.mark.parametrize(("name", "least"), [("morf", False), ("lerf", True)])
def test_regions_are_averages_of_the_map_and_square(images, name, least):
    maps = some_maps(2, 16)

    def expected(i):
        twin = Twin(images[i])
        coarse = [maps[i, 4 * r : 4 * r + 4, 4 * c : 4 * c + 4].mean() for r in range(4) for c in range(4)]
        cells = twins.order_of(torch.stack(coarse))
        order = [
            (8 * (cell // 4) + r) * SIDE + 8 * (cell % 4) + c
            for cell in (cells[::-1] if least else cells)
            for r in range(8)
            for c in range(8)
        ]
        said = twins.by_pixels(twin.x, twin.black(), order, range(0, 1025, 64), twin.score)
        return twins.trapezoid(said, [k / 16 for k in range(17)])

    check(images, maps, name, expected, units=4, baseline="black")


def test_ins_del_is_the_difference_with_its_own_baselines(images):
    maps = some_maps(2, 8)
    found = measure(sharp_cnn(), images, maps, ["insertion", "deletion", "ins-del"], "rise")
    torch.testing.assert_close(found["ins-del"].values, found["insertion"].values - found["deletion"].values)
    assert set(found["ins-del"].parts) == {"insertion", "deletion"}
    torch.testing.assert_close(found["ins-del"].parts["deletion"].curves.y, found["deletion"].curves.y)


def test_the_ends_of_curves_are_the_baseline_and_the_image(images):
    net = sharp_cnn()
    found = measure(net, images, some_maps(2, 8), ["insertion", "deletion", "lerf"], baseline="black")
    whole = net.predict(images).confidences
    nothing = net(torch.zeros_like(images))[range(2), found["insertion"].targets]
    for name, first, last in (("insertion", nothing, whole), ("deletion", whole, nothing), ("lerf", whole, nothing)):
        curves = found[name].curves
        assert curves.x[0] == 0
        assert curves.x[-1] == 1
        torch.testing.assert_close(curves.y[:, 0], first)
        torch.testing.assert_close(curves.y[:, -1], last)
        torch.testing.assert_close(curves.whole, whole)
        torch.testing.assert_close(curves.hidden, nothing)


def test_constant_maps_go_from_the_top_left():
    net, images = sharp_cnn(), pictures(1)
    rows = -torch.arange(1024.0).view(1, 32, 32)
    for name in ("insertion", "deletion", "lerf", "pos", "neg"):
        constant = measure(net, images, torch.full((1, 32, 32), 0.3), name)
        torch.testing.assert_close(constant.values, measure(net, images, rows, name).values, rtol=0, atol=1e-6)


def test_only_the_order_counts_and_not_the_magnitude(images):
    maps = some_maps(2, SIDE)
    one = measure(sharp_cnn(), images, maps, ["insertion", "deletion"])
    other = measure(sharp_cnn(), images, 1e-3 * (maps + 1) ** 3, ["insertion", "deletion"])
    for name in one.metrics:
        torch.testing.assert_close(one[name].values, other[name].values, rtol=0, atol=1e-7)
