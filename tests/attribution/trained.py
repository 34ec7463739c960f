"""The zoo's trained transformers, and scenes that they were not trained on, for tests of methods."""

import torch

import suffice

# Name: the tokens that its head reads.
TRAINED = {"deit": [0], "deit-distilled": [0, 1]}


def trained(name, dtype=torch.float32):
    net = suffice.load(f"zoo/{name}", device="cpu")
    net.module.to(dtype)
    return net


def scenes():
    """Eight images and a class of each: in turn one that the scene does not show, and the one it shows."""
    images = suffice.open_images("scenes:test[:8]")
    return images, [label if number % 2 else (label + 1) % 16 for number, label in enumerate(images.labels)]
