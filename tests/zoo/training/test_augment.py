import pytest
import torch
from torch.nn import functional as F

from suffice.errors import OptionError
from suffice.zoo.training import Recipe
from suffice.zoo.training.augment import augmented, erase, flip, jitter, mix, shift, zoom
from suffice.zoo.training.data import Normalize, mean_and_std
from suffice.zoo.training.distill import distillation_loss

BLACK = torch.zeros(3)


def chance(seed=0):
    return torch.Generator().manual_seed(seed)


def test_without_options_nothing_changes():
    pixels = torch.randint(0, 256, (4, 3, 6, 6), dtype=torch.uint8)
    assert torch.equal(augmented(pixels, Recipe(), BLACK, chance()), pixels / 255)


def test_mixing_by_hand():
    images = torch.tensor([0.0, 0.4, 1.0]).view(3, 1, 1, 1).expand(3, 3, 2, 2)
    mixed, targets = mix(images, torch.eye(3), 0.75)
    assert mixed[:, 0, 0, 0].tolist() == pytest.approx([0.25, 0.4, 0.75])
    assert targets.tolist() == [[0.75, 0, 0.25], [0, 1, 0], [0.25, 0, 0.75]]


def test_a_shift_moves_whole_images_and_reflects():
    pixels = torch.arange(5 * 5, dtype=torch.uint8).view(1, 1, 5, 5).expand(60, 3, 5, 5)
    padded = F.pad(pixels[:1].float(), (2, 2, 2, 2), mode="reflect").byte()[0]
    windows = {(y, x): padded[:, y : y + 5, x : x + 5] for y in range(5) for x in range(5)}
    moved = shift(pixels, 2, chance())
    places = [next(k for k, w in windows.items() if torch.equal(w, image)) for image in moved]
    assert {y for y, _ in places} == {x for _, x in places} == set(range(5))
    assert len(set(places)) > 12


def test_a_flip_mirrors_about_half():
    pixels = torch.arange(400 * 3 * 2 * 3).view(400, 3, 2, 3)
    flipped = flip(pixels, chance())
    turned = (flipped == pixels.flip(-1)).flatten(1).all(1)
    kept = (flipped == pixels).flatten(1).all(1)
    assert bool((turned ^ kept).all())
    assert 150 < int(turned.sum()) < 250


def test_a_zoom_enlarges_a_part_of_the_right_size_and_shape():
    ramp = torch.arange(64.0).add(0.5) / 64
    images = torch.stack([ramp.expand(64, 64), ramp[:, None].expand(64, 64), torch.ones(64, 64)]).expand(300, 3, 64, 64)
    zoomed = zoom(images, 0.25, chance())
    # Where the colors are places, the inner half of what is seen tells the part, away from the border.
    wide = (zoomed[:, 0, 32, 48] - zoomed[:, 0, 32, 16]) * 2
    tall = (zoomed[:, 1, 48, 32] - zoomed[:, 1, 16, 32]) * 2
    area, aspect = wide * tall, wide / tall
    assert 0.25 - 1e-3 < area.min() < 0.35
    assert 0.85 < area.max() < 1 + 1e-3
    assert 0.7 < aspect.min() < 0.8
    assert 1.25 < aspect.max() < 1.4
    left = zoomed[:, 0, 32, 32] - wide / 2
    assert left.min() > -0.01
    assert (left + wide).max() < 1.01
    assert left.std() > 0.05
    assert torch.allclose(zoomed[:, 2], torch.ones(300, 64, 64), atol=1e-5)


def test_a_zoom_of_a_larger_image_has_its_detail():
    fine = torch.zeros(1, 3, 32, 32)
    fine[..., ::2] = 1  # stripes that are gone when it is made half as large
    gray = zoom(fine, 1 - 1e-6, chance(), (16, 16))
    assert gray.shape == (1, 3, 16, 16)
    draws = zoom(fine.expand(50, 3, 32, 32), 0.2, chance(), (16, 16))
    assert (draws.amax((1, 2, 3)) - draws.amin((1, 2, 3))).max() > 0.8
    coarse = F.adaptive_avg_pool2d(fine, 16).expand(50, 3, 16, 16)
    assert (zoom(coarse, 0.2, chance()) - 0.5).abs().max() < 1e-5
    made = augmented((fine * 255).byte(), Recipe(), BLACK, chance(), (16, 16))
    assert torch.allclose(made, torch.full((1, 3, 16, 16), 0.5))


def test_zooming_is_asked_for_by_the_recipe():
    pixels = torch.randint(0, 256, (4, 3, 8, 8), dtype=torch.uint8)
    assert not torch.equal(augmented(pixels, Recipe(zoom=0.3), BLACK, chance()), pixels / 255)
    with pytest.raises(OptionError, match="zoom"):
        Recipe(zoom=0.0)


def test_erasing_paints_one_rectangle_on_the_right_share_of_images():
    images = torch.rand(600, 3, 20, 20) + 1
    erased = erase(images, 0.25, torch.tensor([0.1, 0.2, 0.3]), chance())
    changed = (erased != images).all(1)
    share = changed.flatten(1).any(1).double().mean()
    assert 0.19 < share < 0.31
    areas = []
    for image, mask in zip(erased, changed, strict=True):
        if not mask.any():
            continue
        rows, columns = mask.any(1).nonzero().flatten(), mask.any(0).nonzero().flatten()
        box = mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        assert bool(box.all())
        assert image[:, rows[0], columns[0]].tolist() == pytest.approx([0.1, 0.2, 0.3])
        areas.append(box.numel() / 400)
    assert max(areas) < 0.30
    assert min(areas) < 0.05
    assert 0.09 < sum(areas) / len(areas) < 0.18
    assert torch.equal(erase(images, 0.0, BLACK, chance()), images)


def test_jitter_keeps_the_range_and_one_factor_an_image():
    images = torch.full((50, 3, 4, 4), 0.5)
    jittered = jitter(images, 0.2, chance())
    levels = jittered[:, 0, 0, 0]
    assert bool((jittered == levels.view(-1, 1, 1, 1)).all())  # an even image has no contrast to change
    assert 0.4 <= float(levels.min()) < 0.43
    assert 0.57 < float(levels.max()) <= 0.6
    assert float(jitter(torch.rand(50, 3, 4, 4), 0.9, chance()).max()) <= 1


def test_hard_distillation_is_cross_entropy_with_the_teachers_decision():
    student, teacher = torch.randn(4, 3), torch.randn(4, 3)
    assert distillation_loss(student, teacher, Recipe()).item() == pytest.approx(
        -student.log_softmax(1)[range(4), teacher.argmax(1)].mean().item(), rel=1e-6
    )


def test_soft_distillation_by_hand():
    student, teacher = torch.randn(4, 3, dtype=torch.float64), torch.randn(4, 3, dtype=torch.float64)
    p, q = (teacher / 2).softmax(1), (student / 2).softmax(1)
    by_hand = 4 * (p * (p / q).log()).sum(1).mean()
    found = distillation_loss(student, teacher, Recipe(distillation="soft", temperature=2.0))
    assert found.item() == pytest.approx(by_hand.item(), rel=1e-5)


def test_normalization_and_its_numbers():
    pixels = torch.randint(0, 256, (50, 3, 9, 7), dtype=torch.uint8)
    pixels[:, 1] //= 2
    mean, std = mean_and_std(pixels)
    values = (pixels.double() / 255).transpose(0, 1).flatten(1)
    assert mean == pytest.approx(values.mean(1).tolist(), abs=6e-4)
    assert std == pytest.approx(values.std(1, unbiased=False).tolist(), abs=6e-4)
    done = Normalize(mean, std, "cpu")(pixels / 255).transpose(0, 1).flatten(1)
    assert done.mean(1).tolist() == pytest.approx([0, 0, 0], abs=0.01)
    assert mean_and_std(torch.zeros(2, 3, 4, 4, dtype=torch.uint8)) == ((0, 0, 0), (0.001, 0.001, 0.001))
