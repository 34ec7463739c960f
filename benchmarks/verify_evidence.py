"""Ask the plain model again whether saved evidence is true: nothing of this package is used, only the file.

    python benchmarks/verify_evidence.py evidence.parquet --checkpoint vit_tiny_patch16_224.safetensors --images folder

A folder of `suffice evidence --out` is read, too; of a study with several models or searches, the folder of one, such
as `tables/measurement=evidence/model=timm%2Fvit_tiny_patch16_224`.

The model is timm's own in fp32 without TF32, pictures go through timm's own transform, and cells are hidden by the few
lines below. Asked is whether every MSE suffices; whether each of its subsets with one cell less fails; whether every
proper subset of a certified MSE fails; and whether no MSE contains another. Ratios closer to the threshold than 1e-4
are said to be on the edge: which side they are on is up to the order of sums. The exit status is 1 if a claim is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import timm
import torch
from PIL import Image
from safetensors.torch import load_file
from timm.data import create_transform, resolve_data_config
from torch import Tensor
from torch.nn.functional import interpolate
from torchvision.transforms.functional import gaussian_blur

EDGE = 1e-4
# In the original ResNet-50 the first convolution of a stage has the stride, and bytes are not divided.
CAFFE = {"mean": (123.68 / 255, 116.779 / 255, 103.939 / 255), "std": (1 / 255,) * 3, "interpolation": "bilinear"}
VARIANTS = {"resnet50-v1": ("resnet50", CAFFE | {"crop_pct": 224 / 256})}
NEEDED = ("image", "target", "confidence", "stopped", "mse_cells", "mse_ratios", "mse_certified")
# Why an image may have no evidence although deletion from the whole image was allowed.
NONE_POSSIBLE = ("no confidence", "not a number", "whole fails", "max_questions")


class Model:
    """A model of timm with its own transform, asked about pixels."""

    def __init__(self, name: str, checkpoint: Path, device: str) -> None:
        timm_name, changes = VARIANTS.get(name, (name.removeprefix("timm/"), {}))
        self.module = timm.create_model(timm_name)
        if name == "resnet50-v1":
            for stage in (self.module.layer2, self.module.layer3, self.module.layer4):
                stage[0].conv1.stride, stage[0].conv2.stride = (2, 2), (1, 1)
        weights = {key: value.float() for key, value in load_file(checkpoint).items()}
        lacking, unknown = self.module.load_state_dict(weights, strict=False)
        if unknown or [key for key in lacking if not key.endswith("num_batches_tracked")]:
            raise SystemExit(f"{checkpoint} does not fit {timm_name}: lacking {lacking}, unknown {unknown}.")
        self.module.eval().to(device)
        config = resolve_data_config({}, model=self.module) | changes
        *self.steps, normalize = create_transform(**config).transforms
        self.device = device
        self.mean, self.std = (torch.as_tensor(v).to(device).view(3, 1, 1) for v in (normalize.mean, normalize.std))

    def pixels(self, file: Path) -> Tensor:
        """A picture as timm prepares it, but for the normalization: [3, H, W] in [0, 1]."""
        picture: Any = Image.open(file).convert("RGB")
        for step in self.steps:
            picture = step(picture)
        return picture if picture.is_floating_point() else picture / 255

    @torch.inference_mode()
    def __call__(self, pixels: Tensor) -> Tensor:
        """Softmax scores [B, classes]."""
        return self.module((pixels - self.mean) / self.std).softmax(dim=1)


def hidden(pixels: Tensor, baseline: str, mean: Tensor) -> Tensor:
    """What shows in hidden cells, [N, 3, H, W]."""
    if baseline == "blur":
        longest = max(pixels.shape[-2:])
        kernel = 51 if longest < 500 else 151 if longest < 800 else 201
        return torch.stack([gaussian_blur(image, [kernel] * 2, [kernel - 1.0] * 2) for image in pixels])
    if baseline == "black":
        return torch.zeros_like(pixels)
    if baseline in ("gray", "mean"):
        return mean.expand_as(pixels)
    raise SystemExit(f"The baseline {baseline!r} cannot be made again from its name; blur, black and gray can.")


def shown_pixels(cells: Tensor, size: torch.Size, kind: str) -> Tensor:
    """How much of each pixel sets of cells [B, side, side] show: float [B, 1, H, W]."""
    if kind == "soft":
        return interpolate(cells[:, None].float(), size, mode="bilinear", align_corners=True)
    rows, columns = (torch.arange(n, device=cells.device) * cells.shape[1] // n for n in size)
    return cells[:, None, rows][..., columns].float()


def bits(cells: list[int]) -> int:
    """A set of cells as one number."""
    return sum(1 << cell for cell in cells)


def one_less(mse: int) -> list[int]:
    """All subsets with one cell less."""
    return [mse & ~(1 << cell) for cell in range(mse.bit_length()) if mse >> cell & 1]


def proper_subsets(mse: int) -> list[int]:
    """All proper subsets."""
    found, subset = [], mse
    while subset:
        subset = (subset - 1) & mse
        found.append(subset)
    return found


@dataclass
class Photograph:
    """One row of the file, the sets of cells that its claims are about, and what the model says of them."""

    row: dict[str, Any]
    mses: list[int] = field(init=False)
    ratio: dict[int, float] = field(init=False)
    margin: dict[int, float] = field(init=False)

    def __post_init__(self) -> None:
        self.mses = [bits(cells) for cells in self.row["mse_cells"]]

    def asked(self) -> list[int]:
        """All sets that some claim is about, each once."""
        certified = [mse for mse, sure in zip(self.mses, self.row["mse_certified"], strict=True) if sure]
        smaller = [subset for mse in self.mses for subset in one_less(mse)]
        return sorted({*self.mses, *smaller, *(subset for mse in certified for subset in proper_subsets(mse))})


def answer(model: Model, photographs: list[Photograph], folder: Path, settings: dict[str, Any], batch: int) -> int:
    """Ask the model about all sets of all photographs, in full batches; returns how many that were."""
    side = settings["grid"]
    pixels = torch.stack([model.pixels(folder / p.row["image"]) for p in photographs]).to(model.device)
    base = hidden(pixels, settings["baseline"], model.mean)
    target = torch.tensor([p.row["target"] for p in photographs], device=model.device)

    # The whole image and the baseline of each photograph come before its sets.
    sets = [[(1 << side**2) - 1, 0, *p.asked()] for p in photographs]
    image = torch.repeat_interleave(torch.arange(len(sets)), torch.tensor([len(own) for own in sets])).to(model.device)
    length = side**2 // 8 + 1
    words = np.frombuffer(b"".join(s.to_bytes(length, "little") for own in sets for s in own), np.uint8)
    cells = np.unpackbits(words.reshape(-1, length), axis=1, count=side**2, bitorder="little")
    shown = torch.from_numpy(cells).bool().view(-1, side, side).to(model.device)

    confidence, lead = [], []
    for i, some in zip(image.split(batch), shown.split(batch), strict=True):
        scores = model(base[i].lerp(pixels[i], shown_pixels(some, pixels.shape[-2:], settings["cells"])))
        mine = scores.gather(1, target[i, None])
        others = scores.scatter(1, target[i, None], 0).amax(dim=1)
        confidence.append(mine[:, 0])
        lead.append(mine[:, 0] - others)

    numbers = torch.stack([torch.cat(confidence), torch.cat(lead)]).double().cpu()
    answers = numbers.split([len(own) for own in sets], dim=1)
    for photograph, own, (said, ahead) in zip(photographs, sets, answers, strict=True):
        whole, nothing = said[:2].tolist()
        floor = nothing if settings.get("above_baseline") and nothing < whole else 0.0
        ratio = (said - floor) / (whole - floor)
        # How far each set lies above what it must reach, negative below; by what it must reach.
        above = {"ratio": ratio - settings["threshold"], "top-1": ahead / whole}
        above["both"] = torch.minimum(*above.values())
        photograph.row["asked_confidence"] = whole
        photograph.ratio = dict(zip(own, ratio.tolist(), strict=True))
        photograph.margin = dict(zip(own, above[settings.get("keeps", "ratio")].tolist(), strict=True))
    return len(image) - 2 * len(photographs)


def judge(photographs: list[Photograph], settings: dict[str, Any]) -> tuple[Counter[str], Counter[str]]:
    """What is wrong, by kind, and what is on the edge."""
    wrong: Counter[str] = Counter()
    edge: Counter[str] = Counter()
    for photograph in photographs:
        margin, mses = photograph.margin, photograph.mses

        def claim(kind: str, sets: list[int], fails: bool) -> None:
            doubtful = {s for s in sets if abs(margin[s]) <= EDGE}  # noqa: B023
            edge[kind] += bool(doubtful)
            wrong[kind] += any((margin[s] > 0) == fails for s in sets if s not in doubtful)  # noqa: B023

        for mse, certified in zip(mses, photograph.row["mse_certified"], strict=True):
            claim("MSEs that do not suffice", [mse], fails=False)
            claim("MSEs that suffice with one cell less", one_less(mse), fails=True)
            if certified:
                claim("certified MSEs with a proper subset that suffices", proper_subsets(mse), fails=True)
        if settings.get("minimal", "subset") == "subset":
            wrong["MSEs that contain another"] += sum(
                any(other & mse == other for j, other in enumerate(mses) if i != j) for i, mse in enumerate(mses)
            )
        if not mses and settings.get("deletion_orders") and photograph.row["stopped"] not in NONE_POSSIBLE:
            wrong["images without evidence although there is some"] += 1
    return wrong, edge


def report(photographs: list[Photograph], wrong: Counter[str], edge: Counter[str], asked: int) -> str:
    """Everything in one table, in Markdown."""
    empty = Counter(p.row["stopped"] for p in photographs if not p.mses)
    reported = [(r, p.ratio[m]) for p in photographs for r, m in zip(p.row["mse_ratios"], p.mses, strict=True)]
    rows: dict[str, Any] = {
        "images": len(photographs),
        "without evidence": f"{empty.total()}" + "".join(f", {n} {reason}" for reason, n in sorted(empty.items())),
        "MSEs": len(reported),
        "certified": sum(sum(p.row["mse_certified"]) for p in photographs),
        "sets asked about": f"{asked:,}",
        **{kind: f"{n} ({edge[kind]} on the edge)" if kind in edge else n for kind, n in wrong.items()},
        "largest difference of ratios": f"{max((abs(a - b) for a, b in reported), default=0.0):.1e}",
        "largest difference of confidence on whole images": "{:.1e}".format(
            max((abs(p.row["confidence"] - p.row["asked_confidence"]) for p in photographs), default=0.0)
        ),
    }
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())])


def read(path: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The rows of evidence in a file or folder, and what they are about."""
    rows: list[dict[str, Any]] = []
    said: dict[str, dict[str, Any]] = {}
    tables = path / "tables" if (path / "tables").is_dir() else path
    for file in sorted(tables.rglob("*.parquet")) if path.is_dir() else [path]:
        columns = pq.read_schema(file).names
        if "mse_cells" in columns:  # or it has no evidence
            table = pq.ParquetFile(file).read([*NEEDED, *({"error"} & set(columns))])
            rows += [row for row in table.to_pylist() if not row.pop("error", None)]
            said[str(file.parent)] = json.loads(table.schema.metadata[b"suffice"])
    if len(said) != 1:
        raise SystemExit(f"There is evidence of {len(said)} models or searches in {path}: {', '.join(said) or 'none'}.")
    return rows, next(iter(said.values()))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("evidence", type=Path, help="a Parquet file, or a folder")
    parser.add_argument("--checkpoint", type=Path, required=True, help="weights as safetensors")
    parser.add_argument("--images", type=Path, required=True, help="folder with the photographs")
    parser.add_argument("--model", default=None, help="timm's name of the model; default: the one in the file")
    parser.add_argument("--batch", type=int, default=None)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args(arguments)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False

    rows, about = read(options.evidence)
    settings = about["settings"]
    photographs = [Photograph(row) for row in rows]
    model = Model(options.model or about["model"], options.checkpoint, options.device)
    batch = options.batch or (1024 if options.device.startswith("cuda") else 32)
    asked = 0
    for first in range(0, len(photographs), 500):  # so many pictures and baselines are held at once
        asked += answer(model, photographs[first : first + 500], options.images, settings, batch)
    wrong, edge = judge(photographs, settings)
    print(report(photographs, wrong, edge, asked))
    return int(wrong.total() > 0)


if __name__ == "__main__":
    sys.exit(main())
