"""Arrays and tensors as pixels."""

import numpy as np
import pytest
import torch

from suffice.errors import ImageError
from suffice.vision.images import open_images
from suffice.vision.images.arrays import pixels_of_tensor
from tests.vision.images.files import decoded


@pytest.mark.parametrize("make", [torch.from_numpy, np.asarray], ids=["tensor", "array"])
def test_uint8_and_float_are_scaled_alike(make, scene):
    first = make(np.ascontiguousarray(scene.transpose(2, 0, 1)))
    expected = torch.from_numpy(scene).permute(2, 0, 1) / 255
    for source in (first, first / 255):
        pixels = decoded(source)
        assert pixels.dtype == torch.float32
        assert pixels.is_contiguous()
        assert torch.allclose(pixels, expected, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f4", ">u2", np.uint16, np.uint8])
def test_array_types(dtype):
    full = {"u": np.iinfo(dtype).max if np.dtype(dtype).kind == "u" else 1, "f": 1}[np.dtype(dtype).kind]
    array = np.full((2, 3, 3), full, dtype=dtype)
    array[0, 0] = 0
    pixels = decoded(array)
    assert pixels.dtype == torch.float32
    assert pixels[:, 0, 0].tolist() == [0, 0, 0]
    assert pixels[:, 1, 2].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((5, 7), [(3, 5, 7)]),
        ((5, 7, 3), [(3, 5, 7)]),
        ((5, 7, 1), [(3, 5, 7)]),
        ((5, 7, 4), [(3, 5, 7)]),
        ((3, 5, 7), [(3, 5, 7)]),
        ((1, 5, 7), [(3, 5, 7)]),
        ((3, 7, 3), [(3, 3, 7)]),  # ambiguous: channels last
        ((2, 5, 7, 3), [(3, 5, 7)] * 2),
        ((2, 3, 5, 7), [(3, 5, 7)] * 2),
        ((2, 5, 7, 1), [(3, 5, 7)] * 2),
    ],
)
def test_array_shapes(shape, expected):
    images = open_images(np.zeros(shape, dtype=np.uint8))
    assert [tuple(picture.decode().shape) for picture in images] == expected


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((3, 5, 7), 1), ((1, 5, 7), 1), ((5, 7), 1), ((2, 3, 5, 7), 2), ((2, 1, 5, 7), 2), ((3, 7, 3), 1),
    ],
)  # fmt: skip
def test_tensor_shapes(shape, expected):
    images = open_images(torch.zeros(shape))
    assert [tuple(p.decode().shape) for p in images] == [(3, shape[-2], shape[-1])] * expected


@pytest.mark.parametrize(
    "source",
    [
        np.zeros((5, 7, 2), np.uint8), np.zeros(5, np.uint8), np.zeros((2, 2, 5, 7, 3), np.uint8),
        np.zeros((0, 5, 3), np.uint8), np.zeros((0, 5, 7, 3), np.uint8),
        torch.zeros(2, 5, 7), torch.zeros(5), torch.zeros(0, 3, 5, 7), torch.zeros(3, 0, 7),
        torch.zeros(()),
    ],
    ids=lambda source: f"{type(source).__name__}{tuple(source.shape)}",
)  # fmt: skip
def test_shapes_that_are_no_image(source):
    with pytest.raises(ImageError, match="shape"):
        open_images(source)


def test_tensor_with_channels_last_gets_a_hint():
    with pytest.raises(ImageError, match=r"movedim\(-1, -3\)"):
        open_images(torch.zeros(5, 7, 3))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.bool, torch.complex64])
def test_types_that_are_no_pixels(dtype):
    with pytest.raises(ImageError, match="expected uint8, uint16, or float"):
        open_images(torch.zeros(3, 4, 4, dtype=dtype))
    with pytest.raises(ImageError, match="expected uint8, uint16, or float"):
        open_images(torch.zeros(4, 4, 3, dtype=dtype).numpy())


@pytest.mark.parametrize("make", [lambda t: t, lambda t: t.numpy()], ids=["tensor", "array"])
def test_values_outside_the_unit_interval(make):
    pixels = torch.rand(2, 3, 4, 4)
    for value in (-0.5, 1.5, -2.1):
        pixels[1, 2, 3, 3] = value
        with pytest.raises(ImageError, match=r"looks normalized: give pixels in \[0, 1\]"):
            open_images(make(pixels))
    for value in (float("nan"), float("inf"), -float("inf")):
        pixels[1, 2, 3, 3] = value
        with pytest.raises(ImageError, match=r"give pixels in \[0, 1\]"):
            open_images(make(pixels))
    with pytest.raises(ImageError, match=r"divide by 255"):
        open_images(make(torch.full((3, 4, 4), 200.0)))


def test_rounding_is_clipped():
    assert decoded(torch.full((3, 2, 2), 1.000001)).max() == 1
    assert decoded(torch.full((3, 2, 2), -0.000001)).min() == 0


def test_alpha_of_arrays_over_white():
    array = np.array([[[200, 100, 0, 0], [200, 100, 0, 51], [200, 100, 0, 255]]], dtype=np.uint8)
    expected = [[1, 1, 1], [0.8 + 0.2 * 200 / 255, 0.8 + 0.2 * 100 / 255, 0.8], [200 / 255, 100 / 255, 0]]
    assert torch.allclose(decoded(array)[:, 0].T, torch.tensor(expected))


def test_tensor_with_gradient_and_readonly_array():
    assert not decoded(torch.rand(3, 4, 4, requires_grad=True)).requires_grad
    array = np.zeros((4, 4, 3), dtype=np.uint8)
    array.flags.writeable = False
    assert decoded(array[::-1]).shape == (3, 4, 4)


def test_pixels_of_tensor_keeps_batches():
    batch = pixels_of_tensor(torch.full((2, 1, 4, 4), 51, dtype=torch.uint8))
    assert batch.shape == (2, 3, 4, 4)
    assert torch.allclose(batch, torch.tensor(0.2))
    assert pixels_of_tensor(torch.rand(3, 4, 4)).shape == (3, 4, 4)
    with pytest.raises(ImageError, match="looks normalized"):
        pixels_of_tensor(torch.randn(2, 3, 8, 8))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint16, torch.float32, torch.float16])
def test_pixels_of_a_tensor_are_a_copy_whose_channels_are_apart(dtype, channels):
    tensor = torch.zeros(2, channels, 4, 4).to(dtype)
    pixels_of_tensor(tensor)[:, 0].add_(1)
    assert not tensor.float().any()
    assert not pixels_of_tensor(tensor).add_(torch.arange(3.0).view(3, 1, 1))[:, 0].any()


def test_decoding_gives_a_copy():
    pixels = torch.zeros(3, 2, 2)
    decoded(pixels).fill_(1)
    assert pixels.max() == 0
