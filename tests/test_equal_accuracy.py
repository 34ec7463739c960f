"""The script that chooses networks of equal accuracy."""

import json

import pytest
import torch
from safetensors.torch import save_file

from benchmarks.equal_accuracy import main
from suffice.zoo.training import read_facts

STUDY = """name = "s"
images = "scenes:test[:1]"
models = ["zoo/resnet"]
contrasts = [{ of = "a", against = "b" }, { of = "c", against = "b" }, { of = "d", against = "e" }]
[measure.said]
kind = "predictions"
"""
# Accuracies of two trainings after 10 and 20 steps, and in the end.
TRAINED = {
    "a": ((0.800, 0.804), (0.820, 0.822), (0.850, 0.852)),
    "b": ((0.790, 0.792), (0.812, 0.814), (0.819, 0.821)),
    "c": ((0.700, 0.702), (0.800, 0.802), (0.821, 0.825)),
    "d": ((0.760, 0.780), (0.770, 0.790), (0.790, 0.810)),
    "e": ((0.770, 0.760), (0.800, 0.800), (0.802, 0.800)),
}


@pytest.fixture
def weights(tmp_path):
    (tmp_path / "w" / "stops").mkdir(parents=True)
    (tmp_path / "study.toml").write_text(STUDY)
    for name, accuracies in TRAINED.items():
        for stop, both in zip((10, 20, None), accuracies, strict=True):
            for seed, accuracy in enumerate(both):
                write(tmp_path / "w", name, seed, accuracy, stop)
    return tmp_path / "w"


def write(folder, name, seed, accuracy, stop=None):
    facts = {"name": name, "seed": seed, "accuracy": accuracy, "recipe": {"stop": stop}}
    file = (
        folder / f"{name}-seed{seed}.safetensors"
        if stop is None
        else folder / "stops" / f"{name}-seed{seed}-step{stop}.safetensors"
    )
    save_file({"x": torch.zeros(1)}, file, metadata={"suffice": json.dumps(facts)})


def chosen(weights, *arguments):
    out = weights.parent / "out"
    code = main([str(weights), "--study", str(weights.parent / "study.toml"), "--out", str(out), *arguments])
    return code, {file.stem: read_facts(file)["recipe"]["stop"] for file in sorted(out.iterdir())}


def test_the_better_kind_stops_earlier_and_the_others_go_to_the_end(weights, capsys):
    code, found = chosen(weights)
    assert code == 0
    assert {name: found[f"{name}-seed0"] for name in TRAINED} == {"a": 20, "b": None, "c": None, "d": None, "e": None}
    assert len(found) == 10
    said = capsys.readouterr().out
    assert "| a – b | +3.10 | **too far** | +0.10 |  |" in said
    assert "    a: stop = 20" in said


def test_kinds_that_cannot_be_brought_together_are_said(weights, capsys):
    write(weights, "b", 0, 0.9)
    write(weights, "b", 1, 0.9)
    for seed in (0, 1):
        for stop in (10, 20):
            (weights / "stops" / f"b-seed{seed}-step{stop}.safetensors").unlink()
    code, _ = chosen(weights)
    assert code == 1
    assert "| a – b | -4.90 | **too far** | -4.90 | **too far** |" in capsys.readouterr().out


def test_trainings_that_do_not_count_are_left_out_and_said(weights, capsys):
    write(weights, "d", 7, 0.6)
    write(weights, "d", 7, 0.5, stop=10)
    code, found = chosen(weights)
    assert code == 0
    assert "d-seed7" not in found
    assert "d, seed 7: 60.00%" in capsys.readouterr().out
    code, _ = chosen(weights, "--least", "0.83")
    assert code == 1
    assert "No training counts of: b, c, d, e." in capsys.readouterr().err
