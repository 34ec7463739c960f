"""The script that chooses networks of equal accuracy."""

import json
import shutil
from dataclasses import asdict

import pytest
import torch
from safetensors.torch import save_file

from benchmarks import equal_accuracy
from benchmarks.equal_accuracy import main
from benchmarks.zoo_plan import read_recipes
from suffice.zoo.training import Recipe, read_facts, recipe_for

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


def write(folder, name, seed, accuracy, stop=None, **recipe):
    fields = asdict(Recipe(**{"steps": 30, "zoom": 0.35, "stop": stop, "seed": seed, **recipe}))
    facts = {"name": name, "seed": seed, "accuracy": accuracy, "recipe": fields}
    file = (
        folder / f"{name}-seed{seed}.safetensors"
        if stop is None
        else folder / "stops" / f"{name}-seed{seed}-step{stop}.safetensors"
    )
    save_file({"x": torch.zeros(1)}, file, metadata={"suffice": json.dumps(facts)})


def chosen(weights, *arguments):
    out = weights.parent / "out"
    shutil.rmtree(out, ignore_errors=True)
    code = main([str(weights), "--study", str(weights.parent / "study.toml"), "--out", str(out), *arguments])
    return code, {file.stem: read_facts(file)["recipe"]["stop"] for file in sorted(out.glob("*"))}


def test_the_better_kind_stops_earlier_and_the_others_go_to_the_end(weights, capsys):
    code, found = chosen(weights)
    assert code == 0
    assert {name: found[f"{name}-seed0"] for name in TRAINED} == {"a": 20, "b": None, "c": None, "d": None, "e": None}
    assert len(found) == 10
    said = capsys.readouterr().out
    assert "| a – b | +3.10 | **too far** | +0.10 |  |" in said


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


def test_steps_at_which_a_training_would_not_count_are_no_choice(weights):
    _, found = chosen(weights)
    assert found["a-seed0"] == 20
    write(weights, "a", 0, 0.90, stop=20)
    write(weights, "a", 1, 0.74, stop=20)  # the mean is as it was
    assert chosen(weights, "--least", "0.7")[1]["a-seed0"] == 20
    code, found = chosen(weights)
    assert (code, found["a-seed0"]) == (1, 10)


def test_no_kind_stops_before_the_least_steps(weights):
    code, found = chosen(weights, "--least-steps", "20")
    assert (code, found["a-seed0"]) == (0, 20)
    code, found = chosen(weights, "--least-steps", "21")
    assert (code, found["a-seed0"]) == (1, None)


def test_trainings_of_several_recipes_are_refused_by_name(weights, capsys):
    write(weights, "b", 1, 0.82, lr=0.1)
    assert chosen(weights) == (2, {})
    said = capsys.readouterr().err
    assert "b-seed1 was not trained as b-seed0 (there and here): lr: 0.1 and 0.002." in said
    write(weights, "b", 1, 0.82)
    retrain(weights, "d", steps=40)
    assert chosen(weights)[0] == 2
    assert "e-seed0 was not trained as d-seed0 (there and here): steps: 30 and 40." in capsys.readouterr().err
    retrain(weights, "e", steps=40)  # another family may have another recipe
    assert chosen(weights)[0] == 0


def retrain(weights, name, **recipe):
    for stop, accuracy in ((10, 0.76), (20, 0.78), (None, 0.80)):
        for seed in (0, 1):
            write(weights, name, seed, accuracy, stop, **recipe)


def test_what_a_kind_is_about_may_differ(weights, monkeypatch, capsys):
    known = {name: Kind(name == "d", name == "d") for name in TRAINED}
    monkeypatch.setattr(equal_accuracy, "ARCHITECTURES", known)
    retrain(weights, "d", mixup=0.2, teacher="t")
    assert chosen(weights)[0] == 0
    write(weights, "d", 1, 0.80, mixup=0.1, teacher="t")
    assert chosen(weights)[0] == 2
    assert "d-seed1 was not trained as d-seed0 (there and here): mixup: 0.1 and 0.2" in capsys.readouterr().err


class Kind:
    """Stands in for an architecture."""

    def __init__(self, distilled, augmented):
        self.distilled, self.augmented = distilled, augmented


def test_pilots_are_looked_at_alone_or_not_at_all(weights):
    for name in TRAINED:
        write(weights, name, 100, 0.90)
        write(weights, name, 200, TRAINED[name][2][0])
        for stop in (10, 20):
            write(weights, name, 200, TRAINED[name][0][0], stop)
    _, found = chosen(weights)
    assert {name.partition("-seed")[2] for name in found} == {"0", "1", "200"}
    code, found = chosen(weights, "--pilot")
    assert code == 0
    assert set(found) == {f"{name}-seed100" for name in TRAINED}


def test_the_file_of_recipes_has_what_was_chosen_and_its_teachers(weights, tmp_path, capsys):
    for name in ("d", "e"):
        retrain(weights, name, teacher="timm/t")
    file = tmp_path / "new" / "recipes.toml"
    assert chosen(weights, "--recipes", f"{file}:nette")[0] == 0
    assert "timm-t-seed0.safetensors does not exist" in capsys.readouterr().err
    write(weights, "timm-t", 1, 0.9, lr=0.5)
    assert chosen(weights, "--recipes", f"{file}:nette")[0] == 0
    assert chosen(weights, "--recipes", f"{file}:tiny", "--least-steps", "25")[0] == 1
    found, other = read_recipes(f"{file}:nette"), read_recipes(f"{file}:tiny")
    assert set(found) == set(other) == {*TRAINED, "timm/t"}
    assert (found["a"]["stop"], "stop" in other["a"], "stop" in found["b"]) == (20, False, False)
    assert found["timm/t"]["lr"] == 0.5
    # What is trained by it is what was trained, but for the step: modern defaults come second.
    asked = recipe_for(photographs=True, augmented=True, **found["a"])
    assert asked.differences(Recipe(**read_facts(weights / "stops" / "a-seed0-step20.safetensors")["recipe"])) == []
    file.write_text("[nette.a]\n")
    assert chosen(weights, "--recipes", f"{file}:nette")[0] == 2
    assert "was not written by this script" in capsys.readouterr().err
