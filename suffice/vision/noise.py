"""Noise that belongs to an image: the same in any batch, in any order, on every device."""

from __future__ import annotations

import math

import torch
from torch import Tensor

# The increment of the SplitMix64 generator, and the factors of its finalizer.
INCREMENT = 0x9E3779B97F4A7C15
FACTORS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_24_BITS = (1 << 24) - 1


def normal_noise(seeds: Tensor, draws: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Standard normal noise [B, *shape], float32, a function of a seed and the number of the draw alone.

    Each number is computed from its own position, so there is no generator whose state would depend on what was drawn
    before, and one call serves many images. Devices agree up to the rounding of logarithm and cosine.

    Args:
        seeds: One for each image, [B] int64, such as :func:`suffice.vision.identity.image_seed`.
        draws: Which draw of that seed, [B] int64, 0 or more. Draws are only comparable for one shape.
        shape: Of the noise for one image.

    Example:
        >>> seeds, draws = torch.tensor([5, 6, 5]), torch.tensor([0, 0, 0])
        >>> noise = normal_noise(seeds, draws, (3, 8, 8))
        >>> torch.equal(noise[0], noise[1]), torch.equal(noise[0], noise[2])
        (False, True)
    """
    count = math.prod(shape)
    bits = _random_bits(seeds, draws, -(-count // 2))
    # Box and Muller: two uniform numbers are the radius and the angle of two normal ones. The radius needs one above 0.
    radius = shifted(bits, 40).add_(1).float().mul_(2**-24).log_().mul_(-2).sqrt_()
    angle = (bits >> 8).bitwise_and_(_24_BITS).float().mul_(2 * math.pi * 2**-24)
    both = torch.cat([radius * angle.cos(), radius * angle.sin()], dim=1)
    return both[:, :count].reshape(-1, *shape)


def uniform_noise(seeds: Tensor, draws: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Uniform noise in [0, 1), the same on every device; arguments and shapes as of :func:`normal_noise`."""
    bits = _random_bits(seeds, draws, math.prod(shape))
    return shifted(bits, 40).float().mul_(2**-24).reshape(-1, *shape)


def _random_bits(seeds: Tensor, draws: Tensor, count: int) -> Tensor:
    """64 random bits for each of ``count`` positions in each draw, [B, count] int64."""
    position = draws[:, None] * count + torch.arange(1, count + 1, device=seeds.device)
    return scramble_(position.mul_(as_int64(INCREMENT)).add_(seeds[:, None]))


def scramble_(words: Tensor) -> Tensor:
    """Scatter int64 words in place, so that any change of one changes about half of its bits.

    This is the finalizer of SplitMix64, a permutation of all words.
    """
    for shift, factor in zip((30, 27), FACTORS, strict=True):
        words ^= shifted(words, shift)
        words *= as_int64(factor)
    words ^= shifted(words, 31)
    return words


def shifted(words: Tensor, by: int) -> Tensor:
    """Words shifted right with zeros coming in, where int64 would bring in copies of the sign."""
    return (words >> by).bitwise_and_((1 << (64 - by)) - 1)


def as_int64(word: int) -> int:
    """The lowest 64 bits of a number, as torch's int64 writes them."""
    return (word + (1 << 63)) % (1 << 64) - (1 << 63)
