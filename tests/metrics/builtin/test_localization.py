"""Pointing, energy, localization."""

import math
from dataclasses import replace

import pytest
import torch
from PIL import Image

from suffice.errors import OptionError
from suffice.metrics import measure
from suffice.vision import open_images
from suffice.vision.images import Images
from tests.attribution.nets import pictures, small_cnn
from tests.metrics import twins

SIDE = 32


def inside(r, c, boxes):
    return any(x0 <= c + 0.5 < x1 and y0 <= r + 0.5 < y1 for x0, y0, x1, y1 in boxes)


def some_boxes(count, generator):
    made = []
    for _ in range(count):
        corner, size = torch.rand(2, 2, generator=generator) * 20, 6 + torch.rand(2, 2, generator=generator) * 12
        made.append([(*a.tolist(), *(a + s).tolist()) for a, s in zip(corner, size, strict=True)])
    return made


@pytest.mark.parametrize("tolerance", [0, 1.5, 6])
def test_pointing_game(tolerance):
    generator = torch.Generator().manual_seed(4)
    maps, boxes = torch.rand(30, 8, 8, generator=generator), some_boxes(30, generator)
    found = measure(small_cnn(), pictures(30), maps, "pointing-game", boxes=boxes, tolerance=tolerance)
    for i in range(30):
        top, left = divmod(twins.order_of(twins.half_pixel(maps[i], SIDE))[0], SIDE)
        near = [
            inside(r, c, boxes[i])
            for r in range(SIDE)
            for c in range(SIDE)
            if (r - top) ** 2 + (c - left) ** 2 <= tolerance**2
        ]
        assert float(found.values[i]) == any(near)
    assert 0 < found.mean < 1


@pytest.mark.parametrize("values", ["positive", "absolute"])
def test_energy(values):
    generator = torch.Generator().manual_seed(4)
    maps, boxes = torch.rand(4, 8, 8, generator=generator) - 0.4, some_boxes(4, generator)
    found = measure(small_cnn(), pictures(4), maps, "energy-pointing-game", boxes=boxes, values=values)
    for i in range(4):
        large = twins.half_pixel(maps[i], SIDE).tolist()
        total = within = 0.0
        for r in range(SIDE):
            for c in range(SIDE):
                energy = abs(large[r][c]) if values == "absolute" else max(large[r][c], 0.0)
                total += energy
                within += energy * inside(r, c, boxes[i])
        assert float(found.values[i]) == pytest.approx(within / total, rel=1e-4)


def flooded_box(bright):
    """The box around the largest part, found by flooding from each pixel."""
    seen, best = set(), []
    for start in [(r, c) for r in range(SIDE) for c in range(SIDE) if bright[r][c]]:
        part, todo = [], [start]
        while todo:
            r, c = todo.pop()
            if (r, c) in seen or not (0 <= r < SIDE and 0 <= c < SIDE and bright[r][c]):
                continue
            seen.add((r, c))
            part.append((r, c))
            todo += [(r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)]
        best = part if len(part) > len(best) else best
    rows, columns = [r for r, _ in best], [c for _, c in best]
    return min(columns), min(rows), max(columns) + 1, max(rows) + 1


@pytest.mark.parametrize("threshold", [0.2, 0.7, "mean"])
def test_localization(threshold):
    generator = torch.Generator().manual_seed(7)
    maps = torch.randint(-8, 9, (6, 8, 8), generator=generator) / 16
    boxes = some_boxes(6, generator)
    found = measure(small_cnn(), pictures(6), maps, "localization", boxes=boxes, threshold=threshold, overlap=None)
    for i in range(6):
        large = twins.half_pixel(maps[i], SIDE)
        low, high = large.min(), large.max()
        level = large.mean() if threshold == "mean" else low + threshold * (high - low)
        x0, y0, x1, y1 = flooded_box((large >= level - 1e-7).tolist())
        best = 0.0
        for a0, b0, a1, b1 in boxes[i]:
            common = max(0, min(x1, a1) - max(x0, a0)) * max(0, min(y1, b1) - max(y0, b0))
            best = max(best, common / ((x1 - x0) * (y1 - y0) + (a1 - a0) * (b1 - b0) - common))
        assert float(found.values[i]) == pytest.approx(best, rel=1e-4)
    hits = measure(small_cnn(), pictures(6), maps, "localization", boxes=boxes, threshold=threshold, overlap=0.2)
    assert torch.equal(hits.values, (found.values >= 0.2).float())


def test_large_boxes_are_left_out_by_their_union():
    halves = [[(0, 0, 16, 32), (8, 0, 16, 32)], [(0, 0, 16, 32), (15, 0, 17, 32)], [(0, 0, 15, 32)], []]
    maps = torch.zeros(4, 32, 32)
    maps[:, 5, 5] = 1.0
    for name in ("pointing-game", "energy-pointing-game"):
        found = measure(small_cnn(), pictures(4), maps, name, "tis", boxes=halves, target_class="predicted")
        assert found.judged.tolist() == [False, False, True, False]
        assert found.mean == pytest.approx(1.0)
        every = measure(small_cnn(), pictures(4), maps, name, boxes=halves)
        assert every.judged.tolist() == [True, True, True, False]


def test_constant_maps():
    maps, boxes = torch.zeros(1, 8, 8), [(0, 0, 16, 16)]
    names = ["pointing-game", "energy-pointing-game", "localization"]
    found = measure(small_cnn(), pictures(1), maps, names, boxes=boxes, overlap=0.25)
    assert found["pointing-game"].mean == 1.0  # the first pixel
    assert found["energy-pointing-game"].mean == pytest.approx(0.25)  # as much as the box covers
    assert found["localization"].mean == 1.0  # the whole image, of which the box is a quarter


def test_boxes_of_images_move_with_the_pixels(tmp_path):
    file = tmp_path / "wide.png"
    Image.new("RGB", (128, 64), (90, 120, 30)).save(file)
    picture = open_images(str(file))[0]
    images = Images([replace(picture, boxes=((64.0, 0.0, 96.0, 64.0),))])  # right half of the middle square
    maps = torch.zeros(1, 32, 32)
    maps[0, 10, 17] = 1.0
    assert measure(small_cnn(), images, maps, "pointing-game").mean == 1.0
    maps = maps.flip(2)
    assert measure(small_cnn(), images, maps, "pointing-game").mean == 0.0
    tensor = Images([replace(open_images(pictures(1))[0], boxes=((16.0, 0.0, 32.0, 32.0),))])
    assert measure(small_cnn(), tensor, maps.flip(2), "pointing-game").mean == 1.0


@pytest.mark.parametrize(
    ("boxes", "message"),
    [
        (None, "No image has boxes; write boxes="),
        ([(0, 0, 4, 4)], "Boxes of 1 images were given for 2 images"),
        ([(0, 0, 4), (0, 0, 4)], r"shape \[3\]; expected \(x0, y0, x1, y1\) each"),
    ],
)
def test_wrong_boxes_are_refused(boxes, message):
    with pytest.raises(OptionError, match=message):
        measure(small_cnn(), pictures(2), torch.rand(2, 8, 8), "pointing-game", boxes=boxes)


def test_boxes_as_tensors():
    maps = torch.rand(3, 8, 8)
    one = torch.tensor([[2, 2, 20, 20], [0, 0, 9, 9], [4, 5, 30, 31]])
    found = measure(small_cnn(), pictures(3), maps, "energy-pointing-game", boxes=one)
    same = measure(small_cnn(), pictures(3), maps, "energy-pointing-game", boxes=one[:, None].float())
    torch.testing.assert_close(found.values, same.values)
    assert not math.isnan(found.mean)
