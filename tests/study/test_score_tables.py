"""Tables of methods × metrics from a study."""

import csv
import json

import pyarrow.parquet as pq
import pytest

from suffice.errors import StudyError
from suffice.metrics import Entry, score_table
from suffice.study import Study
from suffice.study.kinds.metrics import Metrics
from suffice.vision import load, open_images
from tests.study.small import MEASURE, SUM, small_study, write_pictures
from tests.study.test_several import MEASURED

METRICS = ("insertion", "deletion")
RUN = {"block": 4, "misfits": "skip"}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    return write_pictures(tmp_path_factory.mktemp("study") / "pictures", 6)


@pytest.fixture(scope="module")
def study(pictures):
    return small_study(pictures, measure=MEASURED, run=RUN).run(pictures.parent / "run", device="cpu")


def test_a_study_has_the_table_that_the_function_makes(study, pictures):
    (table,) = study.score_tables().values()
    nets = {label: load(f"tests.study.small:{made}", device="cpu") for label, made in (("sum", "weighted"),)}
    entries = [Entry(m["name"], {k: m[k] for k in ("window", "stride", "baseline")}, m.get("label", m["name"]))
               for m in MEASURED["maps"]["methods"][:2]]  # fmt: skip
    direct = score_table(
        [nets["sum"]],
        open_images(pictures),
        [*entries, "center"],
        METRICS,
        metric_options={"steps": 9, "baseline": "black"},
    )
    rows = [row for row in table.rows if row.model == "sum"]
    assert [row.method for row in rows] == [row.method for row in direct.rows] == ["occlusion", "coarse", "center"]
    for row, other in zip(rows, direct.rows, strict=True):
        for metric in METRICS:
            assert row.values[metric].tolist() == pytest.approx(other.values[metric].tolist(), abs=1e-6)
        assert row.targets.tolist() == other.targets.tolist()
        assert list(row.ids) == list(other.ids)
    assert table.protocol == "default, steps=9, baseline=black"
    assert table.images == 6


def test_rows_say_what_an_image_took(study):
    rows = {(row.model, row.method): row for row in study.score_tables()["scores"].rows}
    # What the model says of whole images is remembered from one method to the next.
    assert rows["sum", "occlusion"].facts["forwards"] >= 9
    assert 0 <= rows["sum", "center"].facts["forwards"] <= 1
    assert all(row.seconds > 0 for row in rows.values())


@pytest.mark.parametrize("broken", [4, 6])
def test_blocks_without_an_image_that_can_be_read_say_nothing_of_how_they_were_made(tmp_path, broken):
    folder = write_pictures(tmp_path / "pictures", 6)
    for number in range(broken):
        (folder / f"{number:03d}.png").write_bytes(b"")
    measure = {name: MEASURE[name] for name in ("maps", "scores")}
    study = small_study(folder, models=SUM, measure=measure, run=RUN)
    written = study.run(tmp_path / "run", device="cpu").write_score_tables(tmp_path / "tables")
    assert written[0].read_text(encoding="utf-8").endswith(f"`scores`: fp32{', cpu' if broken < 6 else ''}.\n")


def test_files_and_order(study, tmp_path):
    files = study.write_score_tables(tmp_path / "out", order="insertion")
    assert {file.relative_to(tmp_path / "out").as_posix() for file in files} == {
        "small-scores.md", *(f"small-scores/scores.{suffix}" for suffix in ("md", "tex", "csv", "json", "parquet"))
    }  # fmt: skip
    page = (tmp_path / "out/small-scores.md").read_text(encoding="utf-8")
    assert "Study `small`, table `scores`: fp32, cpu." in page
    assert page.startswith("| model | method | insertion ↑ | deletion ↓ | forwards | s / image |")
    rows = list(csv.DictReader((tmp_path / "out/small-scores/scores.csv").open(encoding="utf-8")))
    of_sum = [float(row["insertion"]) for row in rows if row["model"] == "sum"]
    assert of_sum == sorted(of_sum, reverse=True)
    about = json.loads((tmp_path / "out/small-scores/scores.json").read_text(encoding="utf-8"))
    assert set(about["models"]) == {"sum", "tests.study.small:any_of"}
    with pytest.raises(StudyError, match="order='insertoin'; it can be insertion, deletion"):
        study.score_tables("insertoin")


def test_images_with_an_error_have_no_value(tmp_path):
    pictures = write_pictures(tmp_path / "pictures", 6)
    (pictures / "005.png").write_bytes(b"")
    table = (
        small_study(pictures, measure=MEASURED, run=RUN).run(tmp_path / "run", device="cpu").score_tables()["scores"]
    )
    assert [row.values["insertion"].isnan().tolist() for row in table.rows] == [[False] * 5] * 5
    assert [skip.index for skip in table.skipped] == [5]


def test_images_that_cannot_be_read_count_nowhere(tmp_path):
    """What an image takes, and how many there are, is the same with them and without."""
    measure = {name: MEASURE[name] for name in ("maps", "scores")}
    tables = {}
    for name, broken in (("whole", ()), ("broken", (0, 3))):
        folder = write_pictures(tmp_path / name, 6)
        kept = [f"{number:03d}.png" for number in range(6) if number not in (0, 3)]
        for number in (0, 3):
            (folder / f"{number:03d}.png").unlink()
            if broken:
                (folder / f"{number:03d}.png").write_bytes(b"")
        study = small_study(folder, models=SUM, measure=measure, run=RUN).run(tmp_path / f"{name}-run", device="cpu")
        tables[name] = study.score_tables()["scores"]
        assert [name for row in tables[name].rows for name in row.names] == kept
    whole, broken = tables["whole"], tables["broken"]
    assert (whole.counted, broken.counted) == ("4 images", "4 images (2 skipped)")
    assert broken.rows[0].facts["forwards"] == whole.rows[0].facts["forwards"]
    assert broken.rows[0].values["insertion"].tolist() == pytest.approx(whole.rows[0].values["insertion"].tolist())
    assert broken.rows[0].targets.tolist() == whole.rows[0].targets.tolist()
    broken.write(tmp_path / "out")
    assert pq.read_table(tmp_path / "out/scores.parquet")["index"].to_pylist() == [1, 2, 4, 5]
    assert next(csv.DictReader((tmp_path / "out/scores.csv").open(encoding="utf-8")))["images"] == "4"


def test_an_image_with_an_error_in_one_row_counts(tmp_path, pictures, monkeypatch):
    measure = Metrics.measure

    def failing(self, work):
        if self.label == "coarse":
            raise RuntimeError("ill")
        return measure(self, work)

    monkeypatch.setattr(Metrics, "measure", failing)
    study = small_study(pictures, models=SUM, measure=MEASURED, run=RUN).run(tmp_path / "run", device="cpu")
    table = study.score_tables()["scores"]
    assert table.counted == "6 images"
    assert len(table.skipped) == 6
    bad = {row.method: row.values["insertion"].isnan().all().item() for row in table.rows}
    assert bad == {"occlusion": False, "coarse": True, "center": False}


def test_rows_that_are_not_done_are_left_out(tmp_path, pictures):
    done = small_study(pictures, measure=MEASURED, run=RUN)
    study = done.run(tmp_path / "run", device="cpu", only="scores/center")
    assert {row.method for row in study.score_tables()["scores"].rows} == {"center"}
    (tmp_path / "run/tables/measurement=scores%2Fcenter/model=sum/00001.parquet").unlink()
    assert {row.model for row in Study.open(tmp_path / "run").score_tables()["scores"].rows} == {
        "tests.study.small:any_of"
    }


def test_what_is_no_table_is_said(tmp_path, pictures):
    said = small_study(pictures, measure={"said": MEASURE["said"]}).run(tmp_path / "said", device="cpu")
    with pytest.raises(StudyError, match="The study has no scores"):
        said.score_tables()
    maps = small_study(pictures, measure=MEASURED, run=RUN).run(tmp_path / "maps", device="cpu", only="maps")
    with pytest.raises(StudyError, match="No method has all its scores yet, in scores"):
        maps.score_tables()
    measure = {"maps": MEASURE["maps"], "scores": {"kind": "metrics", "maps": "maps", "metrics": ["ins-del/blur"]}}
    wrong = small_study(pictures, measure=measure).run(tmp_path / "wrong", device="cpu")
    with pytest.raises(
        StudyError, match="There is no 'ins-del/blur': the parts under this protocol are ins-del/insertion"
    ):
        wrong.score_tables()
