"""The finding about trainings: what a study with seeds was made for is answered by its comparison, at tiny size."""

import shutil

import pytest

from suffice.compare import compare_study, paired_ratio
from suffice.study import Study
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
    content["measure"]["evidence"] |= {"max_size": 2, "grid": 4}
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
