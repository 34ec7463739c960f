"""How far a study is."""

import json

import pytest

from suffice.study import Store, Study
from suffice.study.kinds.attribution import Maps
from tests.study.small import small_study, write_pictures

ANY = "tests.study.small:any_of"


@pytest.fixture
def pictures(tmp_path):
    return write_pictures(tmp_path / "pictures", 10)


def lines(study):
    return {(one.measurement, one.model): one for one in study.status().lines}


def test_what_is_done_and_what_is_left(tmp_path, pictures):
    study = small_study(pictures).run(tmp_path / "run", device="cpu", only="said")
    found = lines(study)
    assert [key[0] for key in found] == ["said", "said", "evidence", "evidence", "maps", "maps", "scores", "scores"]
    said = found["said", ANY]
    assert (said.shards, said.done, said.running, said.failed) == (3, 3, 0, 0)
    assert (said.images, said.images_done) == (10, 10)
    assert said.rate > 0
    assert (found["maps", "sum"].done, found["maps", "sum"].images_done, found["maps", "sum"].rate) == (0, 0, None)
    status = study.status()
    assert not status.finished
    assert status.time_left is None  # nobody knows yet how long maps take
    assert status.left(said) == 0
    done = study.run(device="cpu").status()
    assert done.finished
    assert done.time_left == 0


def test_a_model_that_was_not_begun_is_expected_to_take_as_long_as_the_others(tmp_path, pictures):
    study = small_study(pictures).run(tmp_path / "run", device="cpu", only="said")
    for file in (tmp_path / "run/tables/measurement=said/model=sum").iterdir():
        file.unlink()
    log = tmp_path / "run/log.jsonl"
    log.write_text("".join(line for line in log.open() if "model=sum" not in line))
    status, found = study.status(), lines(study)
    assert found["said", "sum"].seconds is None
    assert status.left(found["said", "sum"]) == pytest.approx(10 * found["said", ANY].seconds)


def test_what_failed_is_counted(tmp_path, pictures, monkeypatch):
    def failing(self, work):
        raise RuntimeError("ill")

    monkeypatch.setattr(Maps, "measure", failing)
    study = small_study(pictures).run(tmp_path / "run", device="cpu", only="scores")
    assert study.status().failed == 2 * 2 * 3
    assert lines(study)["maps", "sum"].failed == 3
    assert lines(study)["maps", "sum"].rate is None  # how quickly something fails says nothing
    monkeypatch.undo()
    assert study.run(device="cpu", only="scores", retry_failed=True).status().failed == 0


def test_a_table_that_the_log_does_not_know_is_looked_at(tmp_path, pictures, monkeypatch):
    monkeypatch.setattr(Maps, "measure", lambda self, work: 1 / 0)
    study = small_study(pictures).run(tmp_path / "run", device="cpu", only=["said", "maps"])
    (tmp_path / "run/log.jsonl").unlink()
    assert study.status().failed == 2 * 3


def test_shards_under_a_lock_are_running_and_those_of_the_dead_are_not(tmp_path, pictures):
    study = small_study(pictures).run(tmp_path / "run", device="cpu", only="said")
    for number in (0, 1):
        (tmp_path / f"run/tables/measurement=said/model=sum/{number:05d}.parquet").unlink()
        shard = f"measurement=said/model=sum/{number:05d}"
        study.store.log({"event": "began", "shard": shard, "host": "here", "process": 7, "at": "now"})
    assert study.status().workers == 0
    with Store(tmp_path / "run").lock("measurement=said/model=sum/00001"):
        assert study.status().workers == 1
        assert (lines(study)["said", "sum"].done, lines(study)["said", "sum"].running) == (1, 1)


def test_in_a_place_without_locks_what_was_begun_is_running(pictures):
    study = small_study(pictures).run("memory://status", device="cpu", only="said")
    shard = "measurement=maps/model=sum/00000"
    study.store.log({"event": "began", "shard": shard, "host": "a", "process": 1, "at": "now"})
    assert lines(Study.open("memory://status"))["maps", "sum"].running == 1


def test_plain_values_are_json(tmp_path, pictures):
    study = small_study(pictures).run(tmp_path / "run", device="cpu", only="said")
    found = json.loads(json.dumps(study.status().to_dict()))
    assert (found["study"], found["finished"], found["workers"], len(found["lines"])) == ("small", False, 0, 8)
    assert found["lines"][0]["images_done"] == 10
