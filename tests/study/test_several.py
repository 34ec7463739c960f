"""Several methods in one table of a study, and paths with variables, run."""

import json

import pytest

from suffice.errors import StudyError
from tests.study.small import MEASURE, small_study, write_pictures

SHORT = {"window": 8, "stride": 8, "baseline": "black"}
MEASURED = {
    "maps": {
        "kind": "attribution",
        "methods": [
            {"name": "occlusion", **SHORT},
            {"name": "occlusion", "label": "coarse", **SHORT, "window": 12, "models": ["sum"]},
            "center",
            "rollout",
        ],
    },
    "scores": {**MEASURE["scores"], "metrics": ["insertion", "deletion"]},
}


@pytest.fixture
def pictures(tmp_path):
    return write_pictures(tmp_path / "pictures", 5)


@pytest.fixture
def study(tmp_path, pictures):
    run = {"block": 4, "misfits": "skip"}
    return small_study(pictures, measure=MEASURED, run=run).run(tmp_path / "run", device="cpu")


def test_methods_of_one_list_are_one_table(study):
    assert study.tables == ["maps", "scores"]
    for name in study.tables:
        table = study.table(name)
        pairs = list(dict.fromkeys(zip(table["model"].to_pylist(), table["method"].to_pylist(), strict=True)))
        any_of = "tests.study.small:any_of"
        assert pairs == [
            (any_of, "occlusion"),
            (any_of, "center"),
            *(("sum", m) for m in ("occlusion", "coarse", "center")),
        ]
        assert table.num_rows == 5 * len(pairs)
    assert study.table("scores/coarse").num_rows == 5


def test_they_are_the_same_as_one_by_one(study, tmp_path, pictures):
    measure = {"maps": MEASURE["maps"], "scores": {**MEASURE["scores"], "metrics": ["insertion", "deletion"]}}
    alone = small_study(pictures, measure=measure).run(tmp_path / "alone", device="cpu")
    assert alone.table("scores").to_pylist() == study.table("scores/occlusion").to_pylist()


def test_scores_alone_need_their_maps(tmp_path, pictures):
    run = {"block": 4, "misfits": "skip"}
    study = small_study(pictures, measure=MEASURED, run=run).run(tmp_path / "run", device="cpu", only="scores/center")
    assert set(study.table("scores")["method"].to_pylist()) == {"center"}
    assert set(study.table("maps")["method"].to_pylist()) == {"center"}
    with pytest.raises(StudyError, match="Did you mean 'scores/center'"):
        study.run(only="scores/cneter")


def test_a_table_is_one_file(study, tmp_path):
    files = study.export(tmp_path / "out", "csv")
    assert [file.name for file in files] == ["maps.csv", "scores.csv", "models.csv", "failures.csv"]


def test_rows_of_what_failed_say_the_method(tmp_path, pictures):
    (pictures / "001.png").write_bytes(b"")
    study = small_study(pictures, measure=MEASURED, run={"misfits": "skip"}).run(tmp_path / "run", device="cpu")
    lost = [row for row in study.table("scores").to_pylist() if row["error"]]
    assert [row["method"] for row in lost] == ["occlusion", "center", "occlusion", "coarse", "center"]


def test_what_fits_no_model_is_said(tmp_path, pictures):
    measure = {"maps": {"kind": "attribution", "methods": ["rollout", "cgw*"]}}
    with pytest.raises(StudyError, match="No model of the study is measured by maps"):
        small_study(pictures, measure=measure, run={"misfits": "skip"}).run(tmp_path / "run", device="cpu")


def test_methods_may_join(study, tmp_path, pictures):
    before = study.table("scores").num_rows
    more = {**MEASURED["maps"], "methods": [*MEASURED["maps"]["methods"], "random"]}
    wider = small_study(pictures, measure={**MEASURED, "maps": more}, run={"block": 4, "misfits": "skip"})
    assert wider.run(tmp_path / "run", device="cpu").table("scores").num_rows == before + 10


def test_parts_of_metrics_are_columns(tmp_path, pictures):
    scores = {"kind": "metrics", "maps": "maps", "metrics": ["ins-del", "ins-del/insertion"], "steps": 9}
    study = small_study(pictures, measure={"maps": MEASURE["maps"], "scores": scores}).run(
        tmp_path / "run", device="cpu"
    )
    row = study.table("scores").to_pylist()[0]
    assert row["ins-del"] == pytest.approx(row["ins-del/insertion"] - row["ins-del/deletion"], abs=1e-6)
    assert row["method"] == "occlusion"


def test_the_class_that_was_explained(tmp_path, pictures):
    lines = ["file,label", *(f"{number:03d}.png,0" for number in range(5))]  # the oracles say 1
    (pictures / "index.csv").write_text("\n".join(lines))
    measure = {"maps": {**MEASURE["maps"], "target_class": "label"}}
    for name, which in (("explained", "explained"), ("predicted", "predicted"), ("protocol", None)):
        chosen = {} if which is None else {"target_class": which}
        measure[name] = {"kind": "metrics", "maps": "maps", "metrics": ["pos"], "protocol": "chefer", **chosen}
    study = small_study(pictures / "index.csv", measure=measure).run(tmp_path / "run", device="cpu")
    found = {name: set(study.table(name)["target"].to_pylist()) for name in study.tables}
    assert found == {"maps": {0}, "explained": {0}, "predicted": {1}, "protocol": {0}}


def test_paths_with_variables(tmp_path, pictures, monkeypatch):
    boxes = [{"file": f"{number:03d}.png", "boxes": [[0, 0, 12, 12]]} for number in range(5)]
    (tmp_path / "boxes.jsonl").write_text("\n".join(map(json.dumps, boxes)))
    images = {"source": "$PLACE/pictures", "boxes": "${PLACE}/boxes.jsonl"}
    measure = {"maps": MEASURE["maps"], "hit": {"kind": "metrics", "maps": "maps", "metrics": ["pointing-game"]}}
    study = small_study(pictures, images=images, measure=measure)
    with pytest.raises(StudyError, match="There is no variable PLACE in the environment"):
        study.run(tmp_path / "run", device="cpu")
    monkeypatch.setenv("PLACE", str(tmp_path))
    done = study.run(tmp_path / "run", device="cpu")
    assert set(done.table("hit")["pointing-game"].to_pylist()) <= {0.0, 1.0}
