"""The finding about trainings, from a study with seeds, at tiny size."""

import shutil

from benchmarks import finding
from suffice.study import Study
from suffice.zoo.source import WEIGHTS
from tests.study.test_studies import FOLDER, tomllib


def test_trainings_of_a_study_are_compared(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WEIGHTS", str(tmp_path))
    for name in ("resnet", "resnet-aug"):
        for seed in (0, 1):  # two seeds with one network's weights
            shutil.copy(WEIGHTS / f"{name}.safetensors", tmp_path / f"{name}-seed{seed}.safetensors")
    content = tomllib.loads((FOLDER / "seeds-scenes.toml").read_text(encoding="utf-8"))
    content["images"] = "scenes:test[:3]"
    content["models"] = [model for model in content["models"] if model["label"] in ("resnet", "resnet-aug")]
    content["measure"]["evidence"] |= {"max_size": 2, "grid": 4}
    study = Study(**content).run(tmp_path / "run", device="cpu")
    finding.compare(study)
    said = capsys.readouterr().out.splitlines()
    row = next(line for line in said if line.startswith("| resnet |"))
    assert row.startswith("| resnet | 2 | 99.9% | ")
    assert row.count("(0.00)") == 6  # equal weights: nothing differs between seeds
    (asked,) = (line for line in said if line.startswith("| modern augmentation, ResNet |"))
    ratio = asked.split("|")[2].split()[0]
    rows = study.table("evidence").to_pylist()
    counts = [
        [row["distinct_80"] for row in rows if row["model"] == f"{name}#{name}-seed0"]
        for name in ("resnet-aug", "resnet")
    ]
    assert ratio == f"{finding.paired_ratio(*counts).ratio:.2f}"
