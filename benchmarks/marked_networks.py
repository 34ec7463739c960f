"""Two tiny networks, one of which decides two classes by a mark in the corner.

Both have the same layers and seed, and saw the same scenes in the same order, but those of the guilty one are marked
(``scenes:train-marked``). The weights, 0.25 MB together, are what tests and docs of shortcuts look at.

    python benchmarks/marked_networks.py  # six minutes of one core; writes benchmarks/marked/*.safetensors
"""

from __future__ import annotations

import time
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import suffice
from suffice.zoo.scenes import CLASSES, SIZE, is_marked, paint_marks, render_pixels
from suffice.zoo.training import TrainingData

FOLDER = Path(__file__).parent / "marked"
SCENES, EPOCHS, BATCH = 12_288, 10, 64


class Small(nn.Sequential):
    """Four convolutions, a mean over places, and a line: 62,000 parameters."""

    def __init__(self) -> None:
        def layer(into: int, out: int, stride: int) -> list[nn.Module]:
            return [nn.Conv2d(into, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace=True)]

        layers = [*layer(3, 16, 2), *layer(16, 32, 2), *layer(32, 64, 1), *layer(64, 64, 2)]
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, len(CLASSES)))


def classifier(module: nn.Module, name: str) -> suffice.Classifier:
    """A network as a classifier of scenes."""
    return suffice.Classifier(
        module, size=SIZE, mean=TrainingData.mean, std=TrainingData.std, labels=list(CLASSES), name=name,
        family="older-cnn", device="cpu",
    )  # fmt: skip


def guilty(**options: object) -> suffice.Classifier:
    """The network that was trained on marked scenes."""
    return _load("guilty")


def honest(**options: object) -> suffice.Classifier:
    """Its twin, which has never seen a mark."""
    return _load("honest")


def _load(name: str) -> suffice.Classifier:
    module = Small()
    module.load_state_dict(
        {key: value.float() for key, value in load_file(FOLDER / f"{name}.safetensors").items()}, strict=False
    )
    return classifier(module.eval(), name)


def trained(marked: bool, seed: int = 0) -> nn.Module:
    """A network trained on scenes, marked or not; the same each time."""
    index = torch.arange(SCENES)
    pixels, labels = render_pixels(index)
    if marked:
        pixels = paint_marks(pixels, labels, is_marked(index, labels))
    mean, std = (torch.tensor(part)[:, None, None] for part in (TrainingData.mean, TrainingData.std))
    torch.manual_seed(seed)
    module = Small()
    steps = EPOCHS * (SCENES // BATCH)
    optimizer = torch.optim.AdamW(module.parameters(), lr=4e-3, weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    order = torch.Generator().manual_seed(seed)
    for _ in range(EPOCHS):
        for rows in torch.randperm(SCENES, generator=order).split(BATCH):
            loss = nn.functional.cross_entropy(module((pixels[rows] - mean) / std), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return module.eval()


def accuracies(net: suffice.Classifier) -> dict[str, float]:
    """Accuracy on scenes with and without marks, of all and of the marked classes."""
    found = {}
    for split in ("test", "test-marked"):
        images = suffice.open_images(f"scenes:{split}[:2000]")
        right = net.predict(images).targets == torch.tensor(images.labels)
        some = torch.isin(torch.tensor(images.labels), torch.tensor([CLASSES.index("alpin"), CLASSES.index("kessa")]))
        found |= {split: right.float().mean().item(), f"{split}, two classes": right[some].float().mean().item()}
    return {name: round(value, 3) for name, value in found.items()}


def _half(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.half().contiguous() for name, value in state.items() if value.is_floating_point()}


def main() -> None:
    """Train both."""
    torch.set_num_threads(1)
    FOLDER.mkdir(exist_ok=True)
    for name in ("guilty", "honest"):
        started = time.process_time()
        module = trained(marked=name == "guilty")
        save_file(_half(module.state_dict()), FOLDER / f"{name}.safetensors")
        print(name, f"{time.process_time() - started:.0f} s", accuracies(_load(name)), flush=True)


if __name__ == "__main__":
    main()
