"""Pictures in and out."""

import base64
import io

import pytest
import torch
from PIL import Image

from suffice.draw import as_image, data_uri, from_png, small_picture, to_png
from suffice.errors import OptionError


@pytest.mark.parametrize("size", [(20, 30), (300, 100)])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_small_pictures_keep_what_is_small_and_shrink_what_is_large(size, batch):
    pixels = torch.rand(*batch, 3, *size)
    small = small_picture(pixels)
    assert small.dtype == torch.uint8
    if max(size) <= 128:
        torch.testing.assert_close(small, (pixels * 255).round().byte())
    else:
        assert small.shape == (*batch, 3, 128, 43)
        torch.testing.assert_close(small.float().mean() / 255, pixels.mean(), atol=0.02, rtol=0)


def test_small_pictures_of_bytes_are_copies():
    pixels = torch.randint(0, 256, (3, 8, 8), dtype=torch.uint8)
    small = small_picture(pixels)
    assert torch.equal(small, pixels)
    assert small.data_ptr() != pixels.data_ptr()
    large = torch.full((3, 200, 200), 77, dtype=torch.uint8)
    assert torch.equal(small_picture(large), torch.full((3, 128, 128), 77, dtype=torch.uint8))


def test_png_comes_back():
    pixels = torch.randint(0, 256, (3, 5, 7), dtype=torch.uint8)
    assert torch.equal(from_png(to_png(pixels)), pixels)
    assert to_png(pixels).startswith(b"\x89PNG")


def test_any_one_picture_will_do():
    array = torch.randint(0, 256, (3, 5, 7), dtype=torch.uint8)
    images = [as_image(picture) for picture in (array, array.float() / 255, as_image(array), to_png(array))]
    assert all(image.tobytes() == images[0].tobytes() for image in images)
    with pytest.raises(OptionError, match=r"picture\[0\]"):
        as_image(array[None])
    with pytest.raises(OptionError, match="got 2"):
        as_image([array, array])


@pytest.mark.parametrize(("size", "kind", "shown"), [((9, 6), "png", (396, 264)), ((900, 600), "jpeg", (400, 267))])
def test_data_uris_are_sharp_where_tiny_and_small_where_large(size, kind, shown):
    head, _, data = data_uri(Image.new("RGB", size, "green")).partition(",")
    assert head == f"data:image/{kind};base64"
    assert Image.open(io.BytesIO(base64.b64decode(data))).size == shown
