"""Incomplete batches are filled up to few sizes where each costs time of its own."""

import pytest
import torch
from torch import nn

from suffice import Runner
from suffice.perturb.sizes import filled, size_for, sizes_of
from tests.perturb.test_runner import WORKS, pictures, small_cnn

GPU, CPU = torch.device("cuda"), torch.device("cpu")


def separable():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3, groups=8), nn.Flatten(), nn.LazyLinear(2))


def test_networks_with_convolutions_get_few_sizes_on_gpus():
    cnn, patches = small_cnn().module, nn.Sequential(nn.Conv2d(3, 8, 4, 4), nn.Flatten())
    assert [sizes_of(module, GPU) for module in (cnn, separable(), patches)] == ["few", "doubled", "any"]
    assert sizes_of(separable(), CPU) == "any"


@pytest.mark.parametrize(("sizes", "most"), [("few", 17), ("doubled", 11), ("full", 1)])
@pytest.mark.parametrize("batch_size", [1, 7, 100, 1000])
def test_sizes_are_few_and_hold_what_they_must(sizes, most, batch_size):
    found = [size_for(count, batch_size, sizes) for count in range(1, batch_size + 1)]
    assert all(count <= size <= batch_size for count, size in enumerate(found, start=1))
    assert len(set(found)) <= most
    assert found == sorted(found)
    assert size_for(batch_size + 3, batch_size, sizes) == batch_size + 3  # what is more than a batch stays as it is


def test_the_last_row_fills_a_batch():
    rows = torch.arange(3.0)[:, None]
    assert filled(rows, 5).flatten().tolist() == [0, 1, 2, 2, 2]
    assert filled(rows, 3) is rows


@pytest.mark.parametrize("sizes", ["few", "doubled"])
def test_what_fills_a_batch_changes_neither_answers_nor_gradients_nor_counts(sizes):
    net, images = small_cnn(), pictures(5)
    plain, few = (Runner(net, batch_size=32) for _ in range(2))
    few._sizes, seen = sizes, []
    forward = few._forward
    few._forward = lambda inputs: (seen.append(len(inputs)), forward(inputs))[1]
    torch.testing.assert_close(few.scores(images), plain.scores(images), atol=1e-6, rtol=1e-5)
    gradients = []
    for runner in (plain, few):
        leaf = net.normalize(images).requires_grad_()
        (gradient,) = torch.autograd.grad(runner.logits_with_graph(leaf)[:, 1].sum(), leaf)
        gradients.append(gradient)
    torch.testing.assert_close(gradients[1], gradients[0], atol=1e-6, rtol=1e-4)
    assert seen == [{"few": 6, "doubled": 8}[sizes]] * 2
    assert few.counters.forwards == plain.counters.forwards == 10


def test_whoever_looks_inside_sees_images_only(monkeypatch):
    monkeypatch.setattr("suffice.perturb.runner.sizes_of", lambda *_, **__: "few")
    runner = Runner(small_cnn())
    found = {work: runner.variant(work)._sizes for work in WORKS}
    assert {work for work, sizes in found.items() if sizes == "few"} == {"scores", "gradients"}
