"""A study that takes a second, for tests: tiny oracles as models, known by name also in other processes."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import torch
from PIL import Image

from suffice.study import Study
from suffice.testing import AnyOf, WeightedSum
from suffice.vision import Classifier

ORACLES = {
    "any": AnyOf([(1, 2), (5,)], grid=3),
    "sum": WeightedSum({1: 1.0, 4: 1.0, 7: 0.5}, threshold=1.2, grid=3, link="smooth"),
}


def any_of(**options: object) -> Classifier:
    return ORACLES["any"].classifier(24)


def weighted(**options: object) -> Classifier:
    return ORACLES["sum"].classifier(24)


class _Deadly(AnyOf):
    """Kills the worker of Ray that asks it about a picture with a green corner."""

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        green = (pixels[:, :, 0, 0] == pixels.new_tensor([0.0, 1.0, 0.0])).all(dim=1)
        if green.any() and sys.argv[0].endswith("default_worker.py"):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().forward(pixels)


def deadly(**options: object) -> Classifier:
    return _Deadly([(1, 2), (5,)], grid=3).classifier(24)


def make_corner_green(file: Path) -> None:
    picture = Image.open(file)
    picture.putpixel((0, 0), (0, 255, 0))
    picture.save(file)


def write_pictures(folder: Path, count: int) -> Path:
    """Pictures that differ, of which the oracles see the bright cells."""
    folder.mkdir(parents=True, exist_ok=True)
    random = torch.Generator().manual_seed(0)
    for number in range(count):
        pixels = (0.6 + 0.4 * torch.rand(24, 24, 3, generator=random)) * 255
        Image.fromarray(pixels.byte().numpy()).save(folder / f"{number:03d}.png")
    return folder


SEARCH = {"grid": 3, "baseline": "black", "max_size": 3}  # no explanation of these oracles has more cells
MEASURE = {
    "said": {"kind": "predictions"},
    "evidence": {"kind": "evidence", **SEARCH},
    "maps": {"kind": "attribution", "method": "occlusion", "window": 8, "stride": 8, "baseline": "black"},
    "scores": {"kind": "metrics", "maps": "maps", "metrics": ["insertion"], "steps": 9, "baseline": "black"},
}

MODELS = ["tests.study.small:any_of", {"name": "tests.study.small:weighted", "label": "sum", "family": "sums"}]


def small_study(pictures: Path, **changes: object) -> Study:
    """All four measurements of both oracles, in blocks of four images."""
    content = {"name": "small", "images": str(pictures), "models": MODELS, "measure": MEASURE, "run": {"block": 4}}
    return Study(**content | changes)


ANY, SUM = "tests.study.small:any_of", {"name": "tests.study.small:weighted", "label": "sum"}


def write_study(folder: Path, models=(ANY, SUM), measure=MEASURE, block: int = 2, images: int = 6) -> Path:
    """A study of 24 shards, as a file that other processes can open."""
    write_pictures(folder / "pictures", images)
    content = {"name": "s", "images": "pictures", "models": models, "measure": measure, "run": {"block": block}}
    file = folder / "study.json"
    file.write_text(json.dumps(content))
    return file
