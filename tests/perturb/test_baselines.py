"""Baselines against literal computations in pixel space."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn.functional import conv2d, pad

from suffice.errors import OptionError
from suffice.perturb import list_baselines, make_baseline, register_baseline
from suffice.perturb.baselines import _baselines, gaussian_kernel, rise_kernel, separable_blur

MEAN = (0.485, 0.456, 0.406)


@pytest.fixture
def pixels():
    return torch.rand(2, 3, 64, 48, generator=torch.Generator().manual_seed(0))


def literal_blur(pixels, kernel, border):
    """Convolve with the two-dimensional kernel in float64."""
    weights = torch.from_numpy(np.outer(kernel, kernel)).expand(3, 1, -1, -1)
    reach = len(kernel) // 2
    padded = pad(pixels.double(), (reach,) * 4, mode="reflect" if border == "reflect" else "constant")
    return conv2d(padded, weights, groups=3).float()


def test_every_baseline_is_an_image(pixels):
    for name in list_baselines():
        made = make_baseline(name, pixels, mean=MEAN)
        assert made.shape == pixels.shape
        assert made.min() >= 0
        assert made.max() <= 1


def test_blur_tis_is_torchvisions_gaussian(pixels):
    from torchvision.transforms.functional import gaussian_blur

    assert torch.allclose(make_baseline("blur-tis", pixels), gaussian_blur(pixels, 11, 5.0), atol=1e-6)


def test_blur_is_nearly_a_box_of_51():
    kernel = gaussian_kernel(51, 50)
    assert round(kernel[25], 4) == 0.0205
    assert round(kernel[0], 4) == 0.0181
    image = torch.rand(1, 3, 72, 90, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(make_baseline("blur", image), literal_blur(image, kernel, "reflect"), atol=1e-5)


def test_blur_widens_with_the_image():
    edge = torch.zeros(1, 3, 8, 600)
    edge[..., 300:] = 1
    gray = make_baseline("blur", edge)[0, 0, 4]
    assert ((gray > 0.001) & (gray < 0.999)).sum().item() == 150


def test_blur_of_an_image_smaller_than_the_kernel_reflects_again_and_again():
    line = torch.rand(1, 3, 1, 5)
    kernel = gaussian_kernel(51, 50)
    mirrored = [int(abs((i + 4) % 8 - 4)) for i in range(-25, 30)]
    literal = [sum(kernel[k] * line[0, 0, 0, mirrored[x + k]] for k in range(51)) for x in range(5)]
    assert torch.allclose(make_baseline("blur", line)[0, 0, 0], torch.stack(literal).float(), atol=1e-6)


def test_blur_rise_bleeds_the_mean_color_in(pixels):
    # Literally: normalize, convolve with zero padding, undo the normalization.
    kernel = rise_kernel()
    square = np.outer(kernel, kernel)
    assert (round(square[5, 5], 4), round(square[0, 0], 4)) == (0.0088, 0.0077)
    mean, std = torch.tensor(MEAN).view(3, 1, 1), torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
    literal = literal_blur((pixels - mean) / std, kernel, "zero") * std + mean
    assert torch.allclose(make_baseline("blur-rise", pixels, mean=MEAN), literal, atol=1e-5)


def test_colors(pixels):
    assert make_baseline("black", pixels).eq(0).all()
    assert torch.equal(make_baseline("gray", pixels, mean=MEAN)[1, :, 5, 5], torch.tensor(MEAN))
    assert torch.equal(make_baseline("mean", pixels, mean=MEAN), make_baseline("gray", pixels, mean=MEAN))
    assert torch.allclose(make_baseline("image-mean", pixels)[1, 2], pixels[1, 2].mean())


def test_the_canvases_of_tis_are_the_same_for_all_models(pixels):
    mean, std = torch.tensor(MEAN).view(3, 1, 1), torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
    noise, average = (make_baseline(name, pixels, mean=(0.1, 0.2, 0.3)) for name in ("tis-noise", "tis-mean"))
    uniform = (noise - mean) / std
    assert uniform.min() >= -1e-5
    assert uniform.max() <= 1 + 1e-5
    assert uniform.mean(dim=(2, 3)).tolist() == [pytest.approx([0.5] * 3, abs=0.03)] * 2
    one_number = ((pixels - mean) / std).mean(dim=(1, 2, 3), keepdim=True)
    assert torch.allclose(average, one_number * std + mean, atol=1e-5)


def test_noise_belongs_to_the_image_not_to_its_place(pixels):
    together = make_baseline("noise", pixels, ids=["a", "b"], seed=3)
    swapped = make_baseline("noise", pixels.flip(0), ids=["b", "a"], seed=3)
    alone = make_baseline("noise", pixels[1:], ids=["b"], seed=3)
    assert torch.equal(together, swapped.flip(0))
    assert torch.equal(together[1:], alone)
    assert not torch.equal(together[0], together[1])
    assert not torch.equal(together, make_baseline("noise", pixels, ids=["a", "b"], seed=4))
    assert abs(together.mean().item() - 0.5) < 0.02


def test_given_baselines(pixels, tmp_path):
    assert torch.equal(make_baseline(lambda x: 1 - x, pixels), 1 - pixels)
    one = torch.rand(3, 64, 48)
    assert torch.equal(make_baseline(one, pixels)[1], one)
    red = Image.new("RGB", (48, 64), (255, 0, 0))
    red.save(tmp_path / "red.png")
    for given in (red, tmp_path / "red.png", str(tmp_path / "red.png")):
        assert make_baseline(given, pixels)[1, :, 3, 3].tolist() == [1, 0, 0]


def test_a_function_may_write_into_what_it_is_given(pixels):
    before = pixels.clone()
    assert make_baseline(lambda given: given.zero_(), pixels).eq(0).all()
    assert torch.equal(pixels, before)


def test_a_baseline_can_be_added(pixels):
    @register_baseline("test-white")
    def white(scene):
        return torch.ones_like(scene.pixels)

    try:
        assert make_baseline("test-white", pixels).eq(1).all()
    finally:
        del _baselines["test-white"]


def test_a_random_baseline_of_ones_own_follows_the_image_not_its_place(pixels):
    @register_baseline("test-random")
    def random(scene):
        return torch.stack([torch.rand(3, 64, 48, generator=torch.Generator().manual_seed(s)) for s in scene.seeds])

    try:
        together = make_baseline("test-random", pixels)
        assert torch.equal(make_baseline("test-random", pixels.flip(0)), together.flip(0))
        assert torch.equal(make_baseline("test-random", pixels[1:]), together[1:])
    finally:
        del _baselines["test-random"]


def test_mistakes_are_named(pixels):
    with pytest.raises(OptionError, match="no baseline 'blurr'; there are black, blur"):
        make_baseline("blurr", pixels)
    with pytest.raises(OptionError, match=r"outside \[0, 1\]"):
        make_baseline(lambda x: x - 3, pixels)
    for given in (torch.rand(3, 9, 9), torch.rand(5, 3, 64, 48), [Image.new("RGB", (48, 64))] * 3, lambda x: 3):
        with pytest.raises(OptionError, match=r"The baseline has shape .*; expected \[2, 3, 64, 48\] or"):
            make_baseline(given, pixels)


def test_separable_blur_keeps_a_flat_image(pixels):
    flat = torch.full_like(pixels, 0.3)
    assert torch.allclose(separable_blur(flat, gaussian_kernel(51, 50), "reflect"), flat)
