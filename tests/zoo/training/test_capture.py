"""Recorded steps do what steps do."""

import pytest
import torch

from suffice.zoo.training import Examples, Recipe, TrainingData, train
from suffice.zoo.training import capture as module
from suffice.zoo.training.capture import CapturedStep

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="steps are recorded on a GPU only")


def test_without_a_gpu_the_step_itself_is_called():
    seen = []
    step = CapturedStep(seen.append, torch.device("cpu"))
    for value in range(5):
        step(torch.tensor(value))
    assert [int(v) for v in seen] == [0, 1, 2, 3, 4]


@gpu
def test_replays_see_new_inputs_and_new_random_numbers():
    device = torch.device("cuda")
    generator = torch.Generator(device)
    drawn, total = torch.zeros(4, device=device), torch.zeros((), device=device)

    def step(value):
        drawn.copy_(torch.rand(4, generator=generator, device=device) + torch.rand(4, device=device))
        total.add_(value)

    captured = CapturedStep(step, device, (generator,))
    found = []
    for number in range(8):
        generator.manual_seed(number)
        torch.cuda.manual_seed(number)
        captured(torch.tensor(float(number), device=device))
        found.append(drawn.clone())
    assert total.item() == sum(range(8))
    for number, numbers in enumerate(found):  # as without a recording
        expected = torch.rand(4, generator=generator.manual_seed(number), device=device)
        torch.cuda.manual_seed(number)
        assert torch.equal(numbers, expected + torch.rand(4, device=device))


@gpu
def test_what_cannot_be_recorded_is_said_and_done_anyway():
    total = torch.zeros((), device="cuda")

    def step(value):
        total.add_(value.item())

    captured = CapturedStep(step, total.device)
    for _ in range(module.WARM_UP):
        captured(torch.ones((), device="cuda"))
    with pytest.warns(UserWarning, match="cannot be recorded"):
        captured(torch.ones((), device="cuda"))
    captured(torch.ones((), device="cuda"))
    assert total.item() == module.WARM_UP + 2


@gpu
@pytest.mark.parametrize("compile", [False, True])
def test_training_comes_out_as_without_recording(monkeypatch, compile):
    labels = torch.arange(256, device="cuda") % 4
    pixels = torch.randint(0, 256, (256, 3, 32, 32), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    data = TrainingData(Examples(pixels.cuda(), labels), Examples(pixels.cuda(), labels), ("a", "b", "c", "d"))
    recipe = Recipe(steps=20, batch=32, lr=1e-3, mixup=0.2, erase=0.25, crop=2, precision="fp32", compile=compile)
    recorded = train("convnext-3-bn", data, recipe)
    monkeypatch.setattr(module, "WARM_UP", 10**9)
    plain = train("convnext-3-bn", data, recipe)
    assert [row.loss for row in recorded.history] == pytest.approx([row.loss for row in plain.history], rel=1e-3)
