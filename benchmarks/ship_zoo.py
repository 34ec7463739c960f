"""Choose the weights that come with the package: of each network the seed that is best on validation scenes.

python benchmarks/ship_zoo.py --weights weights

Copies them to suffice/zoo/weights and writes table.json beside them. Accuracies are measured anew, on all test scenes,
with the weights as they are stored.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import torch

from suffice.zoo import scenes
from suffice.zoo.architectures import ARCHITECTURES
from suffice.zoo.scenes.dataset import to_bytes
from suffice.zoo.source import WEIGHTS
from suffice.zoo.training import Examples, load_trained, read_facts
from suffice.zoo.training.data import Normalize
from suffice.zoo.training.loop import accuracy

FIRST = 100  # of the test scenes; a test counts the right answers among them again


def test_scenes(device: str) -> Examples:
    """All test scenes as they are stored in files: in bytes."""
    first, count = scenes.SPLITS["test"]
    parts = [
        scenes.render_pixels(torch.arange(start, min(start + 1000, first + count), device=device), 0, device)
        for start in range(first, first + count, 1000)
    ]
    return Examples(torch.cat([to_bytes(pixels) for pixels, _ in parts]), torch.cat([labels for _, labels in parts]))


def command(facts: dict[str, Any]) -> str:
    """What trains it again, on a GPU."""
    recipe = facts["recipe"]
    teacher = f" --teacher {recipe['teacher']}" if recipe["teacher"] else ""
    compiled = " --compile" if recipe["compile"] else ""
    return f"suffice train {facts['name']} --seed {facts['seed']} --steps {recipe['steps']}{teacher}{compiled}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, default=Path("weights"), help="what train_zoo.py wrote")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()

    examples = test_scenes(options.device)
    WEIGHTS.mkdir(exist_ok=True)
    rows = []
    for name in ARCHITECTURES:
        files = sorted(options.weights.glob(f"{name}-seed*.safetensors"))
        runs = {file: read_facts(file) for file in files}
        best = max(files, key=lambda file: runs[file]["validation_accuracy"])
        module, facts = load_trained(best, options.device)
        normalize = Normalize(facts["mean"], facts["std"], options.device)
        row = {
            "name": name,
            "accuracy": accuracy(module, examples, normalize),
            "right_of_first_100": round(FIRST * accuracy(module, examples[:FIRST], normalize)),
            "accuracy_of_all_seeds": [runs[file]["accuracy"] for file in files],
            "parameters": facts["parameters"],
            "seed": facts["seed"],
            "command": command(facts),
        }
        shutil.copyfile(best, WEIGHTS / f"{name}.safetensors")
        rows.append(row)
        print(f"{name:16} seed {row['seed']}  {row['accuracy']:.2%}  {row['parameters']:,}", flush=True)
    lines = ",\n".join(json.dumps(row) for row in rows)
    (WEIGHTS / "table.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
