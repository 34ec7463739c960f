"""Comparisons of studies: every table, with known answers where oracles have them."""

import csv
import json

import numpy as np
import pyarrow as pa
import pytest
import torch

from suffice import Study
from suffice.compare import compare_study, study_of_models
from suffice.compare.cross_result import CrossTest
from suffice.compare.indices import Index
from suffice.compare.of_evidence import _trainings
from suffice.compare.of_predictions import of_ensembles
from suffice.compare.sections import Comparison, Section
from suffice.errors import OptionError, StudyError
from suffice.study.choices import Contrast
from tests.study.small import MODELS, write_pictures

ANY = "tests.study.small:any_of"
OCCLUSION = {"window": 8, "stride": 8, "baseline": "black"}
CURVE = {"baseline": "black", "units": 3, "masks": "nearest", "steps": 9}
PARTS = ("", "-normalized", "-landscape", "-families")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare")
    third = {"name": ANY, "label": "twin", "family": "oracle"}
    measure = {
        "said": {"kind": "predictions", "top": 9},
        "evidence": {"kind": "evidence", "grid": 3, "baseline": "black"},
        "maps": {"kind": "attribution", "method": "occlusion", **OCCLUSION},
        "cross": {
            "kind": "cross-test",
            "maps": "maps",
            "baseline": "black",
            "units": 3,
            "masks": "nearest",
            "steps": 9,
        },
    }
    pictures = write_pictures(folder / "pictures", 9)
    contrasts = [{"of": ANY, "against": "sum", "question": "ways instead of sums"}, {"of": "twin", "against": ANY}]
    study = Study("three", str(pictures), [*MODELS, third], measure, contrasts=contrasts)
    return compare_study(study.run(folder / "run", device="cpu"))


def rows(section):
    return [dict(zip(section.columns, row, strict=True)) for row in section.rows]


def test_all_tables_are_there(found):
    assert [one.name for one in found.sections] == [
        "said",
        "evidence",
        "evidence-contrasts",
        "evidence-ranking",
        "evidence-differences",
        "evidence-indices",
        "evidence-distribution",
        *(
            f"cross-{m}{part}"
            for m in ("insertion", "deletion")
            for part in ("", "-normalized", "-landscape", "-families")
        ),
    ]
    assert found.models == (ANY, "sum", "twin")
    assert found.images == 9


def test_what_was_asked_is_corrected_for_itself_only(found):
    asked = {(r["question"], r["of"]): r for r in rows(found["evidence-contrasts"])}
    pairs = {(r["of"], r["first"], r["second"]): r for r in rows(found["evidence-differences"])}
    assert {question for question, _ in asked} == {"ways instead of sums", f"twin instead of {ANY}"}
    mine, all_pairs = asked["ways instead of sums", "cells of an MSE"], pairs["cells of an MSE", ANY, "sum"]
    assert mine["difference"].value == pytest.approx(all_pairs["difference"].value)
    assert mine["p"] == pytest.approx(all_pairs["p"])
    assert mine["p (Holm)"] == pytest.approx(2 * mine["p"])  # the smaller one of two
    assert all_pairs["p (Holm)"] == pytest.approx(3 * mine["p"])  # of three, two of which are alike


def test_evidence_of_oracles_is_known(found):
    """One decides by two cells or one, in two ways; the sum needs cells 1 and 4, or 1 … as its weights say."""
    summary = {row["model"]: row for row in rows(found["evidence"])}
    assert summary[ANY]["MSEs"] == summary["twin"]["MSEs"] == 2
    assert summary[ANY]["cells of an MSE"] == 1.5
    assert summary["sum"]["with evidence"] == 9
    pairs = {(r["of"], r["first"], r["second"]): r for r in rows(found["evidence-differences"])}
    assert pairs["MSEs", ANY, "twin"]["difference"] == Index(1.0, 1.0, 1.0)
    assert pairs["MSEs", ANY, "twin"]["p (Holm)"] == 1
    sizes = pairs["cells of an MSE", ANY, "sum"]
    assert sizes["difference"].value == pytest.approx(1.5 - summary["sum"]["cells of an MSE"])
    assert sizes["p (Holm)"] < 0.05
    letters = {row["model"]: row["alike in cells of an MSE"] for row in rows(found["evidence-ranking"])}
    assert letters[ANY] == letters["twin"] != letters["sum"]
    shares = {row["model"]: row for row in rows(found["evidence-distribution"])}
    assert shares[ANY]["≤ 1"] == 1
    assert shares["sum"]["≤ 1"] == 0
    assert shares[ANY]["diverse, overlap 0"] == 2


def test_twins_test_alike_and_lie_together(found):
    for metric in ("insertion", "deletion"):
        matrix = {row["maps of"]: row for row in rows(found[f"cross-{metric}"])}
        assert matrix[ANY][ANY] == pytest.approx(matrix["twin"][ANY], abs=1e-6)
        near = {row["model"]: row["nearest"] for row in rows(found[f"cross-{metric}-landscape"])}
        assert near[ANY] == "twin"
        assert "permutation test" in found[f"cross-{metric}-families"].notes[0]


def test_written_and_plain(found, tmp_path):
    files = found.write(tmp_path / "out")
    assert {file.name for file in files} >= {"comparison.md", "comparison.json", "evidence.csv", "cross-insertion.csv"}
    plain = json.loads((tmp_path / "out/comparison.json").read_text())
    assert plain["tables"]["evidence-indices"]["rows"][0]["disjunctivism"]["value"] == pytest.approx(2)
    text = (tmp_path / "out/comparison.md").read_text()
    assert text.startswith("# three: 3 models, 9 images\n")
    assert "| maps of | " in text
    with (tmp_path / "out/evidence-indices.csv").open() as file:
        assert next(csv.reader(file)) == list(found["evidence-indices"].columns)


def test_ensembles_where_all_scores_are_kept(tmp_path):
    measure = {"said": {"kind": "predictions", "top": 99}}
    study = Study("s", "scenes:test[:4]", ["zoo/resnet", "zoo/levit"], measure).run(tmp_path / "run", device="cpu")
    made = compare_study(study)
    (row,) = rows(made["said-ensembles"])
    assert row["which"] == "all"
    assert row["images"] == 4
    assert {r["images"] for r in rows(made["said"])} == {4}


IDS = [f"id{index}" for index in range(8)]


def predictions(classes):
    """Rows of a table: each model is sure of the right one of so many classes."""
    rows = []
    for model, count in classes.items():
        for index in range(8):
            right = index % 2
            scores = [0.9 if c == right else 0.1 / (count - 1) for c in range(count)]
            rows.append(
                {"model": model, "index": index, "image_id": IDS[index], "truth": right}
                | {"classes": [*range(count)], "confidences": scores}
            )
    return pa.Table.from_pylist(rows)


def test_members_far_apart_are_suggested_by_deletion_too():
    raw = np.full((3, 3, 8), 0.6)
    raw[[0, 1, 0, 1, 2], [0, 1, 1, 0, 2]] = 0.2  # a and b find the same: what one does deletes the other's
    section = of_ensembles(predictions(dict.fromkeys("abc", 2)), "said", crossed_by("deletion", raw, IDS))
    assert rows(section)[1]["members"] == "a, c"


def crossed_by(metric, raw, ids):
    ends = np.full(raw.shape[1:], 1.0), {metric: np.zeros(raw.shape[1:])}
    return CrossTest(tuple("abc"), ("", "", ""), {metric: raw}, *ends, np.zeros(raw.shape, dtype=int), ids, ids)


def test_images_on_which_members_are_verified_have_no_part_in_suggesting_them():
    """On those held back, a and b find the least alike, and by far: over all images, they would be suggested."""
    held_back = torch.randperm(8, generator=torch.Generator().manual_seed(0))[:4].tolist()
    raw = np.full((3, 3, 8), 0.9)
    raw[[0, 2], [2, 0]] = 0.6
    for image in held_back:
        raw[[0, 1], [1, 0], image] = 0.0
    places = [3, 1, 0, 2, 7, 6, 5, 4]  # a cross-test may have its images in another order
    crossed = crossed_by("insertion", raw[:, :, places], [IDS[place] for place in places])
    table = predictions(dict.fromkeys("abc", 2))
    assert rows(of_ensembles(table, "said", crossed))[1]["members"] == "a, c"
    others = [image for image in range(8) if image not in held_back]
    assert np.argmin(crossed.alike()[0]) == 1  # over all images, b is the farthest from a
    assert np.argmin(crossed.alike(images=[places.index(image) for image in others])[0]) == 2


def test_without_a_cross_test_of_other_images_nobody_is_suggested():
    held_back = torch.randperm(8, generator=torch.Generator().manual_seed(0))[:4].tolist()
    ids = [IDS[image] for image in held_back]
    crossed = crossed_by("insertion", np.random.default_rng(0).random((3, 3, 4)), ids)
    assert len(of_ensembles(predictions(dict.fromkeys("abc", 2)), "said", crossed).rows) == 1


def test_models_of_different_classes_are_not_averaged():
    assert of_ensembles(predictions({"a": 2, "b": 3}), "said") is None


def test_the_study_of_models():
    study = study_of_models("scenes:test[:2]", ["zoo/resnet", "zoo/deit"], method="grad-cam", steps=3, grid=4)
    assert study.tables == ["maps", "predictions", "evidence", "cross-test", "activations"]
    assert study.asked.measure["cross-test"]["steps"] == 3
    with pytest.raises(OptionError, match="two or more"):
        study_of_models("scenes:test[:2]", ["zoo/resnet"])
    with pytest.raises(OptionError, match="measure='maps'; it can be predictions"):
        study_of_models("scenes:test[:2]", ["zoo/resnet", "zoo/deit"], measure=["maps"])


def test_a_study_with_nothing_to_compare(tmp_path):
    pictures = write_pictures(tmp_path / "pictures", 2)
    maps = {"maps": {"kind": "attribution", "method": "random"}}
    study = Study("s", str(pictures), MODELS, maps).run(tmp_path / "run", device="cpu")
    with pytest.raises(StudyError, match="Nothing of this study can be compared"):
        compare_study(study)


def test_one_image_has_no_statistics(tmp_path):
    pictures = write_pictures(tmp_path / "pictures", 1)
    measure = {"evidence": {"kind": "evidence", "grid": 3, "baseline": "black"}}
    made = compare_study(Study("s", str(pictures), MODELS, measure).run(tmp_path / "run", device="cpu"))
    assert "evidence-ranking" not in made
    assert len(made["evidence"].rows) == 2


def test_trainings_are_compared_where_there_are_several():
    count = 12
    table = []
    for group, shift in (("a", 0), ("b", 8)):
        for seed in range(3):
            table += [
                {
                    "model": f"{group}#{seed}", "group": group, "seed": str(seed), "index": i,
                    "mses": 3 + i + shift + seed, "mean_size": 2.0 + i / 9 + seed / 9, "distinct_50": 9 + i + seed,
                    "distinct_80": 5 + i + seed, "confidence": 0.9,
                }
                for i in range(count)
            ]  # fmt: skip
    section = _trainings(pa.Table.from_pylist(table), "evidence", (), {})
    found = {row["of"]: row for row in rows(section)}
    assert found["MSEs"]["question"] == "a instead of b"
    assert found["MSEs"]["difference"].high < 1  # the first has fewer
    assert found["cells of an MSE"]["difference"].value == pytest.approx(0, abs=1e-9)
    assert found["MSEs"]["trainings"] == "3 and 3"
    asked = [Contrast("b", "a", "more of it")]
    (named,) = (
        row for row in rows(_trainings(pa.Table.from_pylist(table), "evidence", asked, {})) if row["of"] == "MSEs"
    )
    assert named["question"] == "more of it"
    assert named["difference"].value == pytest.approx(1 / found["MSEs"]["difference"].value)


def test_trainings_without_images_in_common_are_left_out():
    rows = [
        {
            "model": f"{group}{seed}", "group": group, "seed": str(seed), "index": i, "mses": i + seed,
            "mean_size": None if i else 2.0, "distinct_50": i, "distinct_80": i, "confidence": 0.9,
        }
        for group in "ab" for seed in range(2) for i in range(3)
    ]  # fmt: skip
    section = _trainings(pa.Table.from_pylist(rows), "evidence", (), {})
    assert "cells of an MSE" not in [row[1] for row in section.rows]
    assert len(section.rows) == 3
    assert _trainings(pa.Table.from_pylist([row for row in rows if row["index"] == 0]), "evidence", (), {}) is None


def test_wide_tables_have_numbers_above_columns():
    wide = Section("x", "X", ("maps of", "a", "b"), [["a", 1.0, 0.5], ["b", 0.5, 1.0]], short=("maps of", "1", "2"))
    assert list(wide.cells()) == [["1 a", "1", "0.5"], ["2 b", "0.5", "1"]]
    assert "| maps of | 1 | 2 |" in Comparison("s", ("a", "b"), 1, (wide,)).to_markdown()
    assert wide.to_json()["rows"][0] == {"maps of": "a", "a": 1.0, "b": 0.5}
