"""Noise that belongs to an image: normal, independent, and a function of seed and draw alone."""

import math

import pytest
import torch

from suffice.vision.identity import image_seed
from suffice.vision.noise import as_int64, normal_noise, scramble_, uniform_noise


def drawn(seeds, draws, shape=(3, 40, 40)):
    return normal_noise(torch.tensor(seeds), torch.tensor(draws), shape)


def test_it_is_standard_normal():
    noise = drawn([image_seed(0, str(i)) for i in range(40)], [0] * 40).double().flatten()
    count = noise.numel()
    assert abs(noise.mean()) < 4 / math.sqrt(count)
    assert noise.square().mean() == pytest.approx(1, abs=4 * math.sqrt(2 / count))
    # All of it has the right shape, not only its moments: the largest gap to the normal distribution (Kolmogorov).
    steps = torch.arange(1, count + 1) / count
    normal = torch.special.ndtr(noise.sort().values)
    assert (normal - steps).abs().max() < 1.9 / math.sqrt(count)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda n: n[:, :, 1:], lambda n: n[:, :, :-1]),  # neighboring rows
        (lambda n: n[..., 1:], lambda n: n[..., :-1]),  # neighboring columns
        (lambda n: n[:, 1:], lambda n: n[:, :-1]),  # channels
        (lambda n: n[1:], lambda n: n[:-1]),  # draws
        (lambda n: n.flatten(1)[:, :2400], lambda n: n.flatten(1)[:, 2400:]),  # the two of a pair
    ],
)
@pytest.mark.parametrize("of", ["draws", "seeds"])
def test_no_part_of_it_tells_about_another(one, other, of):
    noise = drawn([7] * 30, list(range(30))) if of == "draws" else drawn(list(range(30)), [0] * 30)
    a, b = one(noise).double(), other(noise).double()
    for product in (a * b, (a.square() - 1) * (b.square() - 1) / 2):
        assert abs(product.mean()) < 4.5 / math.sqrt(product.numel())


def test_it_is_a_function_of_seed_and_draw_alone():
    seeds, draws = [5, 2**63 - 1, 5, 0], [3, 0, 4, 3]
    together = drawn(seeds, draws)
    for i, (seed, draw) in enumerate(zip(seeds, draws, strict=True)):
        torch.testing.assert_close(drawn([seed], [draw])[0], together[i], atol=1e-5, rtol=0)
    assert len({tuple(n.flatten()[:3].tolist()) for n in together}) == 4


def test_an_odd_number_of_values_is_no_special_case():
    assert drawn([1], [0], (3, 5, 7)).shape == (1, 3, 5, 7)
    assert drawn([1], [0], (1,)).isfinite().all()


def slow_scramble(word: int) -> int:
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) % 2**64
    return word ^ (word >> 31)


def test_scramble_is_splitmix_on_unsigned_words():
    words = torch.randint(-(2**62), 2**62, (200,)) * 2 + 1
    expected = [slow_scramble(word % 2**64) for word in words.tolist()]
    assert [word % 2**64 for word in scramble_(words.clone()).tolist()] == expected


def test_uniform_noise_is_a_function_of_seed_and_draw_alone():
    first = uniform_noise(torch.tensor([5]), torch.tensor([3]), (2, 2))
    assert torch.equal(first, uniform_noise(torch.tensor([6, 5]), torch.tensor([0, 3]), (2, 2))[1:])
    assert (first >= 0).all()
    assert (first < 1).all()


def test_the_lowest_64_bits_as_torch_writes_them():
    assert as_int64(2**64 - 1) == -1
    assert as_int64(2**64 + 5) == 5
