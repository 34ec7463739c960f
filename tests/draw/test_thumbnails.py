"""Regions of pictures: what is kept, what is hidden, and the border between."""

import numpy as np
import pytest
import torch

from suffice.draw import Thumbnails, as_image, region_picture, small_picture
from suffice.draw.thumbnails import hidden_picture, outline
from suffice.errors import OptionError
from suffice.perturb import Grid, RegionMasks, make_baseline


@pytest.mark.parametrize("size", [(70, 70), (65, 100)])
def test_region_picture_keeps_cells_and_dims_the_rest(size):
    grid, cells = Grid(5), (0, 7, 8, 24)
    pixels = torch.rand(3, *size, generator=torch.Generator().manual_seed(1))
    shown = np.array(region_picture(pixels, grid, cells)).astype(int)
    original = (pixels * 255).round().permute(1, 2, 0).numpy().astype(int)
    mask = RegionMasks(grid.from_cells([cells]), grid).rows(slice(1), size, torch.device("cpu"))[0].numpy()
    border = (shown == [0x1B, 0x24, 0x30]).all(axis=2)
    assert 0 < border.mean() < 0.2
    assert (shown == original)[mask & ~border].all()
    veil = np.array([0xE6, 0xEA, 0xEF])
    assert (abs(shown - (0.15 * original + 0.85 * veil)) <= 1)[~mask & ~border].all()


def test_region_picture_shows_the_baseline():
    grid, picture = Grid(2), torch.ones(3, 40, 40)
    by_name = region_picture(picture, grid, (0,), "black", "baseline")
    given = region_picture(picture, grid, (0,), torch.zeros(3, 40, 40), "baseline")
    for shown in (by_name, given):
        assert shown.getpixel((30, 30)) == (0, 0, 0)
        assert shown.getpixel((5, 5)) == (255, 255, 255)


def test_region_picture_of_nothing_and_of_cells_that_are_not_there():
    shown = region_picture(torch.zeros(3, 20, 20), Grid(2), ())
    assert len(shown.getcolors()) == 1
    with pytest.raises(OptionError, match="there is no 4"):
        region_picture(torch.zeros(3, 20, 20), Grid(2), (4,))


def test_outline_is_the_border_between_kept_and_hidden():
    cells, side = {0, 1, 5, 6, 10}, 4
    unit = set()
    for x0, y0, x1, y1 in outline(cells, side):
        steps = max(x1 - x0, y1 - y0)
        unit |= {(x0 + (x1 > x0) * i, y0 + (y1 > y0) * i, y0 == y1) for i in range(steps)}
    kept = {divmod(cell, side) for cell in cells}
    across = {(x, y, True) for x in range(4) for y in range(5) if ((y, x) in kept) != ((y - 1, x) in kept)}
    down = {(x, y, False) for x in range(5) for y in range(4) if ((y, x) in kept) != ((y, x - 1) in kept)}
    assert unit == across | down


def test_drawings_with_other_pictures_or_keys_have_names_of_their_own():
    black, white = (region_picture(torch.full((3, 8, 8), v), Grid(2), range(4)) for v in (0.0, 1.0))
    made = [Thumbnails(2, photo, key=key) for photo in (None, black, white) for key in ("a", "b")]
    assert len({thumbs.prefix for thumbs in made}) == 6
    assert Thumbnails(2, black, key="a").prefix == made[2].prefix


def test_a_shape_is_defined_once():
    thumbs = Thumbnails(2, region_picture(torch.zeros(3, 8, 8), Grid(2), ()))
    first = thumbs.region(0, 0, 20, (0, 1))
    before = thumbs.definitions()
    assert thumbs.region(0, 0, 20, (0, 1)) == first
    assert thumbs.definitions() == before
    assert before.count("<clipPath") == 2  # the frame, and the two cells


def test_a_baseline_that_is_given_is_dimmed_unless_told_otherwise():
    grid, picture = Grid(2), torch.ones(3, 40, 40)
    dimmed = region_picture(picture, grid, (0,), "black")
    assert dimmed.getpixel((30, 30)) == pytest.approx((0xE6 / 2, 0xEA / 2, 0xEF / 2), abs=1)
    assert dimmed.getpixel((5, 5)) == (255, 255, 255)
    assert region_picture(picture, grid, (0,), "black", "fade").getpixel((30, 30))[0] > 225
    with pytest.raises(OptionError, match="needs the baseline"):
        region_picture(picture, grid, (0,), hide="dim")


def test_a_small_copy_is_blurred_as_much_as_what_it_is_a_copy_of():
    """The blur of 224 pixels and that of a copy of 128 look alike; made from the copy as it is, it does not."""
    rough = torch.rand(1, 3, 9, 9, generator=torch.Generator().manual_seed(0))
    seen = torch.nn.functional.interpolate(rough, (224, 224), mode="bilinear")[0].clamp(0, 1)
    truth = small_picture(make_baseline("blur", seen[None])[0]).float()
    copy = small_picture(seen)
    shown = torch.from_numpy(np.array(hidden_picture(as_image(copy), "blur", hide="baseline"))).permute(2, 0, 1)
    naive = make_baseline("blur", copy[None].float() / 255)[0] * 255
    assert (shown - truth).abs().mean() < 1.5
    assert (naive - truth).abs().mean() > 5


def test_frames_can_be_dashed_and_lines_heavier():
    thumbs, heavy = Thumbnails(2), Thumbnails(2, weight=2)
    solid, dashed = thumbs.region(0, 0, 20, (0,), ring=True), thumbs.region(0, 0, 20, (0,), ring=True, dashed=True)
    assert "dasharray" not in solid
    assert "dasharray" in dashed
    assert 'stroke-width="0.18"' in solid
    assert 'stroke-width="0.36"' in heavy.region(0, 0, 20, (0,), ring=True)
