"""What a study would do, and how long it would take."""

import json
from dataclasses import replace

import pytest

from suffice import load
from suffice.errors import StudyError
from suffice.study import Study, Work, calibrate, estimate
from suffice.study.estimate import Estimate, Expected
from suffice.study.kinds.attribution import Maps
from suffice.study.models import without_weights
from suffice.study.plan import make_plan
from suffice.study.shard import Loaded
from tests.study.small import MEASURE, small_study, write_pictures

ANY = "tests.study.small:any_of"


@pytest.fixture
def pictures(tmp_path):
    return write_pictures(tmp_path / "pictures", 40)


@pytest.fixture
def few(tmp_path):
    return write_pictures(tmp_path / "few", 16)


def by_name(found):
    return {(one.measurement, one.model): one for one in found.lines}


def test_what_would_be_done(tmp_path, pictures):
    found = small_study(pictures).dry_run(tmp_path / "run", device="cpu", images=2)
    assert not (tmp_path / "run").exists()
    lines = by_name(found)
    assert set(lines) == {(name, model) for name in MEASURE for model in (ANY, "sum")}
    assert {(one.shards, one.images, one.done, one.largest) for one in found.lines} == {(10, 40, 0, 4)}
    net = load(ANY, device="cpu")
    for name in ("said", "maps", "scores"):
        known = small_study(pictures).asked.measurements[name].questions(net)
        assert (lines[name, ANY].forwards, lines[name, ANY].counted) == (known, False)
    assert lines["evidence", ANY].counted
    assert lines["evidence", ANY].forwards > 5
    assert found.forwards == pytest.approx(sum(40 * one.forwards for one in found.lines))
    assert found.time() > 0
    assert found.uncertainty() > 0
    assert (found.device, found.group) == ("cpu", 2)


def test_what_is_done_is_left_out(tmp_path, few):
    quick = {name: one for name, one in MEASURE.items() if name != "evidence"}
    study = small_study(few, measure=quick).run(tmp_path / "run", device="cpu", only=["said", "maps"])
    (tmp_path / "run/tables/measurement=said/model=sum/00003.parquet").unlink()
    before = {name: study.store.read(name) for name in study.store.files()}
    found = study.dry_run(device="cpu")
    assert {name: study.store.read(name) for name in study.store.files()} == before
    lines = by_name(found)
    assert (lines["said", ANY].images, lines["said", ANY].done, lines["said", ANY].seconds) == (0, 16, 0)
    assert (lines["said", "sum"].images, lines["said", "sum"].done, lines["said", "sum"].shards) == (4, 12, 1)
    assert lines["maps", ANY].bytes == 0
    assert lines["scores", ANY].seconds > 0  # though maps had to be made for it
    study.run(device="cpu")
    finished = study.dry_run(device="cpu")
    assert (finished.time(), finished.uncertainty(), finished.bytes) == (0, 0, 0)


@pytest.mark.parametrize("block", [4, 16])
def test_the_space_is_about_what_it_takes(tmp_path, few, block):
    study = small_study(few, models=[ANY], run={"block": block})
    found = study.dry_run(device="cpu", images=2)
    store = study.run(tmp_path / "run", device="cpu").store
    for measurement in MEASURE:
        expected = sum(one.bytes for one in found.lines if one.measurement == measurement)
        folders = [f"{kind}/measurement={measurement}" for kind in ("tables", "maps")]
        taken = sum(len(store.read(name)) for folder in folders for name in store.files(folder))
        assert expected == pytest.approx(taken, rel=0.1), measurement


def test_samples_are_from_all_over_the_images_and_none_is_twice(pictures):
    plan = make_plan(small_study(pictures).asked, "cpu")
    sample = calibrate.sample_of(plan, 2)
    assert (sample.block, sample.blocks, len(set(sample.names))) == (2, 4, 8)
    for number in range(4):
        first, second = (plan.names.index(name) for name in sample.names[2 * number : 2 * number + 2])
        assert first < 20 <= second
    assert calibrate.sample_of(plan, 16).block == 2  # not nearly all of the images
    assert sample.images.names == list(sample.names) == [plan.names[plan.names.index(n)] for n in sample.names]
    few = make_plan(small_study(pictures, images={"source": str(pictures), "take": 3}).asked, "cpu")
    assert (calibrate.sample_of(few, 16).block, len(calibrate.sample_of(few, 16).names)) == (1, 3)


def test_long_measurements_are_sampled_less(tmp_path, pictures, monkeypatch):
    monkeypatch.setattr(calibrate, "ENOUGH", 0.0)
    found = small_study(pictures).dry_run(device="cpu", only="scores")
    assert {one.measurement for one in found.lines} == {"maps", "scores"}
    assert all(one.seconds > 0 for one in found.lines)
    assert {one.uncertainty for one in found.lines} == {None}  # one sample says nothing about others
    assert found.uncertainty() is None
    assert {(one.groups, one.cut, one.rough) for one in found.lines} == {(1, True, True)}
    monkeypatch.undo()
    found = small_study(pictures).dry_run(device="cpu", only="scores")
    assert {(one.groups, one.cut, one.rough) for one in found.lines} == {(4, False, False)}


def test_what_does_not_work_is_said(tmp_path, pictures, monkeypatch):
    def failing(self, work):
        raise RuntimeError("the model is ill")

    monkeypatch.setattr(Maps, "measure", failing)
    found = small_study(pictures).dry_run(device="cpu", only=["said", "scores"])
    assert found.problems[0] == f"maps of {ANY}: RuntimeError: the model is ill"
    assert len(found.problems) == 4
    assert by_name(found)["said", ANY].seconds > 0


def test_a_folder_with_another_study_is_refused(tmp_path, pictures):
    small_study(pictures).run(tmp_path / "run", device="cpu", only="said")
    with pytest.raises(StudyError, match="begun in another way"):
        small_study(pictures, run={"seed": 3, "block": 4}).dry_run(tmp_path / "run", device="cpu")


def expected(seconds, uncertainty=0.0, images=100, largest=10):
    return Expected("a", "b", 10, images, 0, largest=largest, seconds=seconds, uncertainty=uncertainty, bytes=5)


def test_devices_divide_shards_and_not_what_each_of_them_does():
    found = Estimate("s", (expected(1.0, 0.03), expected(2.0, 0.04)), 7.0, "cpu", 2)
    assert found.time() == pytest.approx(7 + 300)
    assert found.time(3) == pytest.approx(7 + 100)
    assert found.time(1000) == pytest.approx(7 + 20)  # a shard of ten images of two seconds
    assert found.uncertainty() == pytest.approx(5.0)  # of 3 and 4 seconds
    assert found.uncertainty(5) == pytest.approx(1.0)
    assert Estimate("s", (expected(1.0), expected(2.0, None)), 0, "cpu", 2).uncertainty() is None


def test_another_number_of_images(pictures):
    found = small_study(pictures, measure={"said": MEASURE["said"]}).dry_run(device="cpu")
    many = found.of_images(1001)
    assert {(one.shards, one.images, one.largest) for one in many.lines} == {(251, 1001, 4)}
    assert many.time() - many.setup == pytest.approx((found.time() - found.setup) * 1001 / 40)
    assert many.bytes == pytest.approx(found.bytes * 1001 / 40, abs=2)
    assert (found.images, many.images, many.of_images(3).lines[0].largest) == (40, 1001, 3)


def test_another_number_of_images_is_of_a_study_that_begins(tmp_path, pictures):
    study = small_study(pictures).run(tmp_path / "run", device="cpu", only="said")
    with pytest.raises(StudyError, match="done already"):
        study.dry_run(device="cpu", only="said").of_images(100)


def test_forwards_that_are_given_take_the_time_of_those_that_were_counted(pictures, monkeypatch):
    counted = calibrate.Calibration(2, seconds=[1.0, 3.0], forwards=50.0)
    monkeypatch.setattr("suffice.study.estimate.calibrated", lambda *_: counted)
    study = small_study(pictures, models=[ANY])
    lines, given = (by_name(study.dry_run(device="cpu", forwards=n)) for n in (None, 200.0))
    before, after = lines["evidence", ANY], given["evidence", ANY]
    assert (before.forwards, before.counted, before.seconds) == (50, True, 1.0)
    assert (after.forwards, after.counted, after.seconds) == (200, False, 4.0)
    assert after.uncertainty == pytest.approx(4 * before.uncertainty)
    assert given["said", ANY] == lines["said", ANY]  # which says itself that it is one


@pytest.mark.parametrize("baseline", [pytest.param("blur", marks=pytest.mark.slow), "black"])
def test_random_weights_are_searched_for_their_speed(baseline):
    search = {"kind": "evidence", "preset": "cvpr2024", "baseline": baseline}
    study = Study("random", "scenes:test[:2]", ["zoo/levit"], {"evidence": search})
    with pytest.raises(StudyError, match="depends on the weights"):
        study.dry_run(device="cpu", random_weights=True)
    plan = make_plan(without_weights(study.asked), "cpu")
    sample = replace(calibrate.sample_of(plan, 1), any_weights=True)
    loaded = Loaded.of(plan, "zoo/levit", "cpu")
    work = Work(loaded.net, loaded.runner, sample.images, 0, maps=None)
    questions = sample.measurements["evidence"].measure(work).table["questions"].to_pylist()
    assert all(200 < count <= 1000 for count in questions)
    (line,) = study.dry_run(device="cpu", random_weights=True, forwards=6400).lines
    assert (line.forwards, line.counted, line.problem) == (6400, False, "")


def test_random_weights_of_one_architecture_are_measured_once(monkeypatch):
    measured, as_it_is = [], estimate._calibrations

    def counted(sample, loaded, names):
        measured.append(loaded.model.label)
        return as_it_is(sample, loaded, names)

    monkeypatch.setattr(estimate, "_calibrations", counted)
    models = [{"name": name, "label": label} for label, name in (("a", "vgg"), ("b", "deit"), ("c", "vgg"))]
    models = [one | {"name": f"zoo/{one['name']}"} for one in models]
    study = Study("alike", "scenes:test[:2]", models, {"said": {"kind": "predictions"}})
    first, _, last = study.dry_run(device="cpu", random_weights=True).lines
    assert measured == ["a", "b"]
    assert (last.model, last.seconds) == ("c", first.seconds)
    study.dry_run(device="cpu")
    assert measured == ["a", "b", "a", "b", "c"]


def test_random_weights_are_instead_of_those_that_would_be_fetched(tmp_path, pictures):
    models = [{"name": "timm/resnet10t"}, {"name": "zoo/vgg", "checkpoint": "mine.safetensors"}]
    asked = small_study(pictures, models=models, base=tmp_path).asked
    assert [one.pretrained for one in asked.models] == [True, True]
    assert [one.pretrained for one in without_weights(asked).models] == [False, True]


def test_plain_values_are_json(pictures):
    found = small_study(pictures, models=[ANY], measure={"said": MEASURE["said"]}).dry_run(device="cpu")
    read = json.loads(json.dumps(found.to_dict(devices=4)))
    assert (read["devices"], read["study"], read["lines"][0]["images"]) == (4, "small", 40)
    assert read["seconds"] == pytest.approx(found.time(4))
