"""Geometry against the libraries' own transforms."""

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import transforms

from suffice.errors import ImageTooLarge, OptionError
from suffice.vision.geometry import Geometry, GivenPreprocessing, split_preprocessing
from suffice.vision.images import open_images
from suffice.vision.stream import stream


def photograph(width, height):
    generator = np.random.default_rng(0)
    small = generator.integers(0, 255, (12, 16, 3), dtype=np.uint8)
    return Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC)


PICTURES = [
    photograph(500, 375),
    photograph(333, 500),
    photograph(100, 90),
    photograph(224, 224),
    photograph(1000, 91),
]


@pytest.mark.parametrize("picture", PICTURES, ids=lambda p: f"{p.width}x{p.height}")
@pytest.mark.parametrize("crop_pct", [0.875, 0.9, 1.0])
@pytest.mark.parametrize("mode", ["center", "squash"])
def test_equals_timms_transform_before_normalization(picture, crop_pct, mode):
    from timm.data import create_transform

    from suffice.vision.geometry import resize_for

    theirs = create_transform(
        (3, 224, 224),
        interpolation="bicubic",
        crop_pct=crop_pct,
        crop_mode=mode,
        mean=(0, 0, 0),
        std=(1, 1, 1),
    )
    rule = "crop" if mode == "center" else "squash"
    ours = Geometry((224, 224), rule, resize_for((224, 224), crop_pct), "bicubic")
    assert torch.equal(ours(picture), theirs(picture))


@pytest.mark.parametrize("picture", PICTURES, ids=lambda p: f"{p.width}x{p.height}")
def test_equals_torchvisions_preset_before_normalization(picture):
    from torchvision.models import ResNet50_Weights, ViT_B_16_Weights

    for weights in (
        ResNet50_Weights.IMAGENET1K_V1,
        ResNet50_Weights.IMAGENET1K_V2,
        ViT_B_16_Weights.IMAGENET1K_SWAG_E2E_V1,
    ):
        preset = weights.transforms()
        geometry, mean, std = split_preprocessing(preset)
        normalized = (geometry(picture) - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)
        assert isinstance(geometry, Geometry)
        assert torch.allclose(normalized, preset(picture), atol=1e-6)


def test_a_compose_is_split_before_its_normalization():
    from timm.data import create_transform

    transform = create_transform((3, 64, 64), mean=(0.1, 0.2, 0.3), std=(0.4, 0.5, 0.6))
    geometry, mean, std = split_preprocessing(transform)
    pixels = geometry(PICTURES[0])
    normalized = (pixels - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)
    assert geometry.size == (64, 64)
    assert torch.allclose(normalized, transform(PICTURES[0]))


def test_a_callable_that_normalizes_in_secret_is_refused():
    with pytest.raises(OptionError, match="seems to normalize"):
        GivenPreprocessing(lambda picture: torch.full((3, 8, 8), -2.0))
    with pytest.raises(OptionError, match="must return a float tensor"):
        GivenPreprocessing(lambda picture: picture)
    with pytest.raises(OptionError, match="For a model of gray images write size="):
        GivenPreprocessing(transforms.Compose([transforms.Grayscale(), transforms.ToTensor()]))
    imagenet = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.485, 0.456, 0.406), (0.229,) * 3)])
    with pytest.raises(OptionError, match="seems to normalize"):  # also where a gray picture would stay in [0, 1]
        GivenPreprocessing(lambda picture: imagenet(picture))


def test_a_resize_of_tensors_may_overshoot():
    resize = transforms.Resize((24, 24), transforms.InterpolationMode.BICUBIC)
    geometry = GivenPreprocessing(transforms.Compose([transforms.ToTensor(), resize]))
    board = Image.fromarray(np.kron(np.indices((5, 5)).sum(0) % 2, np.full((20, 20), 255)).astype(np.uint8))
    overshot = resize(transforms.ToTensor()(board.convert("RGB")))
    assert overshot.min() < -0.04
    assert torch.equal(geometry(board.convert("RGB")), overshot.clamp(0, 1))


def test_tensors_of_the_input_size_are_taken_as_they_are():
    pixels = torch.rand(3, 32, 32)
    assert torch.equal(Geometry((32, 32), resize=(40, 40))(pixels), pixels)
    assert Geometry((32, 32), resize=(40, 40))(torch.rand(3, 50, 60)).shape == (3, 32, 32)


def test_a_tensor_is_resized_like_a_picture():
    picture = PICTURES[0]
    tensor = torch.from_numpy(np.array(picture)).permute(2, 0, 1).float() / 255
    geometry = Geometry((64, 64), resize=(72, 72))
    assert (geometry(picture) - geometry(tensor)).abs().max() < 0.02


@pytest.mark.parametrize("rule", ["crop", "squash"])
@pytest.mark.parametrize(("width", "height"), [(500, 375), (300, 600), (224, 224)])
def test_boxes_move_with_the_pixels(rule, width, height):
    # A white box on black: where the white is afterwards, there the box must be.
    box = (width // 3, height // 4, width // 3 + 90, height // 4 + 120)
    array = np.zeros((height, width, 3), dtype=np.uint8)
    array[box[1] : box[3], box[0] : box[2]] = 255
    geometry = Geometry((224, 224), rule, resize=(256, 256))
    white = geometry(Image.fromarray(array))[0] > 0.5
    rows, columns = white.any(dim=1).nonzero().flatten(), white.any(dim=0).nonzero().flatten()
    (x0, y0, x1, y1) = geometry.boxes([box], width=width, height=height)[0]
    seen = (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)
    assert all(abs(a - b) <= 1 for a, b in zip((x0, y0, x1, y1), map(int, seen), strict=True))


def test_oblong_inputs():
    geometry = Geometry((96, 192))
    for picture in PICTURES:
        assert geometry(picture).shape == (3, 96, 192)


def test_with_rule():
    geometry = Geometry((224, 224), "crop", (256, 256))
    assert geometry.with_rule("crop") is geometry
    assert geometry.with_rule("squash") == Geometry((224, 224), "squash")


def test_mistakes_are_named():
    with pytest.raises(OptionError, match="'crop' or 'squash'"):
        Geometry((8, 8), "stretch")
    with pytest.raises(OptionError, match="interpolation"):
        Geometry((8, 8), interpolation="magic")
    for size in ((8,), (3, 8, 8)):
        with pytest.raises(OptionError, match=r"size=.* it can be a list of 2, each of them a whole number"):
            Geometry(size)


def test_lists_are_sizes_too():
    pixels = torch.rand(3, 8, 8)
    geometry = Geometry([8, 8], resize=[10, 10])
    assert geometry == Geometry((8, 8), resize=(10, 10))
    assert torch.equal(geometry(pixels), pixels)


def test_a_line_of_pixels_is_refused_before_it_fills_the_memory():
    images = open_images([Image.new("RGB", (1, 100_000)), Image.new("RGB", (9, 9))])
    found = stream(images, Geometry((224, 224)), on_error="skip")
    assert [batch.index.tolist() for batch in found] == [[1]]
    assert found.skipped[0].reason.startswith("image[0]: 1 × 100000 pixels would be 224 × 22400000 before")
    with pytest.raises(ImageTooLarge):
        Geometry((224, 224))(torch.zeros(3, 100_000, 1))
    assert Geometry((8, 8), "squash")(Image.new("RGB", (1, 100_000))).shape == (3, 8, 8)
