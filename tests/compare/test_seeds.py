"""The finding about trainings: what a study with seeds was made for is answered by its comparison, at tiny size."""

import shutil

import numpy as np
import pyarrow as pa
import pytest

from suffice.compare import compare_study, paired_ratio
from suffice.compare.of_evidence import _trainings
from suffice.study import Study
from suffice.study.choices import Contrast
from suffice.zoo.source import WEIGHTS
from tests.study.test_studies import FOLDER, tomllib


def test_what_was_asked_of_trainings_is_answered(tmp_path, monkeypatch):
    monkeypatch.setenv("WEIGHTS", str(tmp_path))
    names = ("resnet-aug", "resnet")
    for name in names:
        for seed in (0, 1):  # two seeds with one network's weights
            shutil.copy(WEIGHTS / f"{name}.safetensors", tmp_path / f"{name}-seed{seed}.safetensors")
    content = tomllib.loads((FOLDER / "seeds-scenes.toml").read_text(encoding="utf-8"))
    content["images"] = "scenes:test[:3]"
    content["models"] = [model for model in content["models"] if model["label"] in names]
    content["contrasts"] = [c for c in content["contrasts"] if {c["of"], c["against"]} <= set(names)]
    content["measure"]["evidence"] |= {"max_size": 2, "grid": 3}
    study = Study(**content).run(tmp_path / "run", device="cpu")

    section = compare_study(study)["evidence-trainings"]
    answers = [dict(zip(section.columns, row, strict=True)) for row in section.rows]
    assert {answer["question"] for answer in answers} == {"modern augmentation, ResNet"}
    (found,) = (answer for answer in answers if answer["of"] == "sub-explanations at 80 %")
    assert found["trainings"] == "2 and 2"
    assert found["share of seeds"] == pytest.approx(0, abs=1e-9)  # equal weights: nothing differs between seeds
    rows = study.table("evidence").to_pylist()
    counts = [[row["distinct_80"] for row in rows if row["model"] == f"{name}#{name}-seed0"] for name in names]
    assert found["difference"].value == pytest.approx(paired_ratio(*counts).ratio)
    assert found["at equal confidence and accuracy"] is None  # two of each are too few


def evidence_of_trainings(trainings: int, images: int = 40) -> pa.Table:
    """Sub-explanations that grow with accuracy alone, of two architectures of which the second is more accurate."""
    rng = np.random.default_rng(0)
    rows = []
    for group, shift in (("a", 0.0), ("b", 0.1)):
        for seed in range(trainings):
            accuracy = 0.8 + shift + rng.normal(0, 0.03)
            counts = np.exp(2 + 10 * accuracy + rng.normal(0, 0.05) + rng.normal(0, 0.3, images)).round().astype(int)
            same = {"model": f"{group}{seed}", "group": group, "seed": str(seed), "family": group}
            rows += [
                {**same, "image": str(i), "index": i, "confidence": 0.9 + rng.normal(0, 0.01), "accuracy": accuracy}
                | {"mses": 3 + i % 3, "mean_size": 4.0 + rng.normal(0, 0.1), "distinct_50": n, "distinct_80": n // 3}
                for i, n in enumerate(counts)
            ]
    return pa.Table.from_pylist(rows)


def test_what_goes_with_accuracy_is_told_from_what_goes_with_the_architecture():
    table = evidence_of_trainings(8)
    accuracies = dict(zip(table["model"].to_pylist(), table["accuracy"].to_pylist(), strict=True))
    asked = [Contrast("a", "b", "a instead of b")]
    for known, column in ((accuracies, "at equal confidence and accuracy"), ({}, "at equal confidence")):
        section = _trainings(table, "evidence", asked, known)
        answers = [dict(zip(section.columns, row, strict=True)) for row in section.rows]
        (found,) = (answer for answer in answers if answer["of"] == "sub-explanations at 50 %")
        assert found["p"] < 0.01
        assert found["difference"].high < 1
        alike = found[column]
        assert (alike.low < 1 < alike.high) == bool(known)
