"""The zoo's trained transformers, and scenes that they were not trained on, for tests of methods."""

import functools

import torch

import suffice

# Name: the tokens that its head reads.
TRAINED = {"deit": [0], "deit-distilled": [0, 1]}


@functools.cache
def trained(name, dtype=torch.float32):
    """A network of the zoo, loaded once for all tests: none may change it."""
    net = suffice.load(f"zoo/{name}", device="cpu")
    net.module.to(dtype).eval()
    assert net.anatomy  # found once
    return net


@functools.cache
def untrained(name):
    """An architecture of the zoo with random weights, made once for all tests: none may change it."""
    torch.manual_seed(0)
    net = suffice.load(f"zoo/{name}", pretrained=False, device="cpu")
    net.module.eval()
    return net


@functools.cache
def scenes():
    """Eight images [8, 3, 56, 56], drawn once, and a class of each: in turn one not in the scene, and the one in it."""
    images = suffice.open_images("scenes:test[:8]")
    targets = [label if number % 2 else (label + 1) % 16 for number, label in enumerate(images.labels)]
    return trained("deit").prepare(images), targets
