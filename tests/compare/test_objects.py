"""Where objects are on the grid: by boxes, and by masks that go the way of their pictures."""

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms.functional import to_tensor

from suffice import Classifier, open_images
from suffice.compare.objects import covered_cells, masks_on_grid, objects_on_grid
from suffice.errors import OptionError
from suffice.vision import Images
from suffice.vision.geometry import Geometry, GivenPreprocessing
from suffice.vision.images import Picture
from suffice.vision.images.sources import ArraySource, PilSource
from suffice.zoo.scenes import render

SIZE, SIDE = 24, 3
MIDDLE = torch.tensor([[8.0, 8.0, 16.0, 16.0]])


def test_objects_cover_cells():
    cropped_away = torch.tensor([[0.0, 0, 0, 24]])
    boxes = [MIDDLE, torch.zeros(0, 4), torch.tensor([[-5.0, -5, 4, 30]]), cropped_away]
    covered = objects_on_grid(boxes, (SIZE, SIZE), SIDE)
    assert covered[0] == pytest.approx([0, 0, 0, 0, 1, 0, 0, 0, 0])
    assert np.isnan(covered[[1, 3]]).all()
    assert covered[2] == pytest.approx([0.5, 0, 0] * 3)
    mask = torch.zeros(1, SIZE, SIZE)
    mask[0, 8:16, 8:16] = 1
    assert masks_on_grid(mask, SIDE) == pytest.approx(covered[:1])


def model(**how):
    how = {"geometry": Geometry((SIZE, SIZE)), **how}
    return Classifier(torch.nn.Flatten(), mean=[0.5] * 3, std=[0.5] * 3, name="any", device="cpu", **how)


def picture(mask, kind="PIL", boxes=None):
    """A picture of any size with a mask."""
    height, width = mask.shape if mask is not None else (SIZE, SIZE)
    if kind == "PIL":
        source = PilSource(Image.new("RGB", (width, height)), "one")
    else:
        source = ArraySource(torch.zeros(3, height, width), "one")
    return Picture("one", source, boxes=boxes, read_mask=None if mask is None else lambda: mask)


def test_masks_before_boxes_and_boxes_where_there_is_no_mask():
    corner = torch.zeros(SIZE, SIZE, dtype=torch.bool)
    corner[:8, :4] = True
    middle = ((8.0, 8.0, 16.0, 16.0),)
    pictures = [
        picture(corner, boxes=middle),
        picture(None, boxes=middle),
        picture(None),
        picture(torch.zeros_like(corner), boxes=middle),  # it is in the picture's box, and hidden
    ]
    covered = covered_cells(model(), Images(pictures), SIDE)
    assert covered[0] == pytest.approx([0.5, *[0] * 8])
    assert covered[1] == pytest.approx([0, 0, 0, 0, 1, 0, 0, 0, 0])
    assert np.isnan(covered[2:]).all()


@pytest.mark.parametrize("kind", ["PIL", "tensor"])
def test_a_mask_is_resized_and_cropped_as_its_picture_is(kind):
    """Of a wide picture the middle half is seen; the object is left of its middle, or in what is cut off."""
    mask = torch.zeros(48, 96, dtype=torch.bool)
    mask[:, :48] = True
    assert covered_cells(model(), Images([picture(mask, kind)]), 2)[0] == pytest.approx([1, 0, 1, 0])
    mask[:, 24:] = False
    assert np.isnan(covered_cells(model(), Images([picture(mask, kind)]), 2)).all()


def test_an_image_of_the_right_size_may_be_cropped_and_a_tensor_is_not():
    cropping = model(geometry=Geometry((SIZE, SIZE), resize=(48, 48)))
    frame = torch.ones(SIZE, SIZE, dtype=torch.bool)
    frame[6:18, 6:18] = False
    assert np.isnan(covered_cells(cropping, Images([picture(frame)]), 2)).all()
    assert covered_cells(cropping, Images([picture(frame, "tensor")]), 2)[0] == pytest.approx([1 - 36 / 144] * 4)


def test_what_a_callable_does_to_a_picture_it_does_to_its_mask():
    def left_half(image):
        return to_tensor(image.crop((0, 0, SIZE, SIZE)))

    mask = torch.zeros(SIZE, 2 * SIZE, dtype=torch.bool)
    mask[:, 12:] = True
    covered = covered_cells(model(geometry=GivenPreprocessing(left_half)), Images([picture(mask)]), 2)
    assert covered[0] == pytest.approx([0, 1, 0, 1])


def test_the_mask_of_a_scene_is_the_creature():
    images = open_images("scenes:test[:3]")
    parts = render(torch.arange(2_000_000, 2_000_003)).parts.any(dim=1)
    assert covered_cells(model(geometry=Geometry((56, 56))), images, 7) == pytest.approx(masks_on_grid(parts, 7))


def test_a_mask_of_another_size_is_refused():
    wrong = Picture("one", PilSource(Image.new("RGB", (30, 20)), "one"), read_mask=lambda: torch.ones(30, 20) > 0)
    with pytest.raises(OptionError, match="The mask of one has 30×20 pixels; expected 20×30"):
        covered_cells(model(), Images([wrong]), SIDE)
