"""The images that explainers learn from."""

import torch

from suffice.attribution.learned.images import ExplainerImages


def images(held_out):
    count = len(held_out)
    pixels, places = torch.zeros(count, 3, 2, 2, dtype=torch.uint8), torch.arange(count)
    return ExplainerImages(pixels, places, places, held_out, name="some")


def test_images_to_look_at_are_of_all_that_are_held_out():
    held_out = torch.ones(11, dtype=torch.bool)
    held_out[3] = False
    some = images(held_out)
    assert some.to_look_at(5).tolist() == [0, 2, 5, 7, 9]
    assert some.to_look_at(99).tolist() == some.validation.tolist()
