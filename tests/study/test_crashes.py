"""Studies that are killed, interrupted, or find no room on the disk: nothing is lost, and nothing is done twice."""

import os
import random
import resource
import signal

import pytest

from suffice.errors import StoreError, StudyError, SufficeWarning
from suffice.study import Store, Study
from suffice.study.local import forget_failed
from tests.study.processes import contents, die_after, die_at, done, ended, finished, start, unfinished, wait_for
from tests.study.small import ANY, MEASURE, write_study

KILLED = -signal.SIGKILL


def test_killed_at_random_moments_and_resumed(tmp_path, whole):
    file, expected = whole
    out, chance = tmp_path / "run", random.Random(0)
    for shards in (0, 1, 2, 3, 0, 3, 4):  # those of a predictions take some 1,500 calls each, others more
        assert ended(start(file, out, die_after, shards, chance.randint(0, 3000))) == KILLED
    Study.open(file).run(out, device="cpu")
    assert contents(out) == expected
    assert len(finished(out)) == len(set(finished(out)))
    assert not unfinished(out)


SHORT = {name: MEASURE[name] for name in ("maps", "scores")}


def test_killed_at_every_step_of_writing(tmp_path):
    file = write_study(tmp_path, [ANY], SHORT, images=2)
    Study.open(file).run(tmp_path / "whole", device="cpu")
    expected = contents(tmp_path / "whole")
    for step in range(1, 100):
        out = tmp_path / f"killed-{step}"
        if (code := ended(start(file, out, die_at, step))) == 0:
            break
        assert code == KILLED, f"killed at step {step}"
        Study.open(file).run(out, device="cpu")
        assert contents(out) == expected, f"killed at step {step}"
        assert not unfinished(out), f"killed at step {step}"
    assert step == 1 + 2 * (3 + 3)  # two steps a file: those that say what is to be done, two tables, and maps


def test_new_folders_are_on_the_disk_before_what_is_in_them_counts(tmp_path, monkeypatch):
    synced, fsync = [], os.fsync

    def noted(opened):
        synced.append(os.fstat(opened).st_ino)
        fsync(opened)

    monkeypatch.setattr(os, "fsync", noted)
    Store(tmp_path / "run").write("tables/of/one.parquet", b"rows")
    assert {(tmp_path / part).stat().st_ino for part in ("", "run", "run/tables", "run/tables/of")} <= {*synced}


def test_two_processes_share_the_work_and_one_is_killed(tmp_path, whole):
    file, expected = whole
    out = tmp_path / "run"
    both = [start(file, out), start(file, out)]
    assert wait_for(lambda: done(out) >= 6, both[0])
    both[0].kill()
    assert ended(both[0]) == KILLED
    assert ended(both[1]) == 0
    assert contents(out) == expected
    events = [event for event in Study.open(out).store.events() if event["event"] == "finished"]
    assert len(events) >= 23  # whoever is killed between writing and saying so does not say so
    assert len({event["shard"] for event in events}) == len(events)
    assert {event["process"] for event in events} <= {process.pid for process in both}
    assert not unfinished(out)


def test_an_interrupt_ends_it_cleanly_and_it_goes_on(tmp_path, whole):
    file, expected = whole
    out = tmp_path / "run"
    process = start(file, out)
    assert wait_for(lambda: done(out) >= 3, process)
    os.kill(process.pid, signal.SIGINT)
    assert ended(process) == 1  # KeyboardInterrupt
    assert 3 <= done(out) < 24
    assert not unfinished(out)
    Study.open(out).run(device="cpu")
    assert contents(out) == expected
    assert sorted(finished(out)) == sorted(set(finished(out)))


def limit_files(size: int) -> None:
    """From now on no file can become larger, as if the disk were full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def test_maps_that_find_no_room_are_rows_that_say_so(tmp_path):
    file = write_study(tmp_path, [ANY], {**SHORT, "said": MEASURE["said"]}, block=8, images=10)
    out = tmp_path / "run"
    assert ended(start(file, out, limit_files, 14_000)) == 0
    study = Study.open(out)
    lost = [row["error"] for row in study.table("maps").to_pylist()]
    assert [error is None for error in lost] == [False] * 8 + [True] * 2  # the second block is small enough
    assert "could not be written" in lost[0]
    assert "File too large" in lost[0]
    assert "There are no maps" in study.table("scores").to_pylist()[0]["error"]
    assert study.table("said")["error"].null_count == 10
    assert not unfinished(out)
    again = study.run(device="cpu", retry_failed=True)
    assert all(again.table(name)["error"].null_count == 10 for name in again.tables)


def test_where_nothing_can_be_written_the_study_stops_and_says_so(tmp_path):
    file = write_study(tmp_path, [ANY], SHORT)
    Study.open(file).run(tmp_path / "run", device="cpu", only="maps")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with (
            pytest.raises(StoreError, match=r"tables/.*cannot be written.*File too large"),
            pytest.warns(SufficeWarning, match="The log of .* cannot be written"),
        ):
            Study.open(tmp_path / "run").run(device="cpu")
        with pytest.raises(StoreError, match=r"cannot be written.*File too large"):
            Study.open(file).run(tmp_path / "new", device="cpu")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert Study.open(tmp_path / "run").run(device="cpu").table("scores")["error"].null_count == 6


def test_a_place_that_cannot_be_a_folder(tmp_path):
    file = write_study(tmp_path, [ANY], SHORT)
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(StoreError, match="taken"):
        Study.open(file).run(tmp_path / "taken" / "run", device="cpu")


def test_a_folder_that_may_only_be_read(tmp_path):
    file = write_study(tmp_path, [ANY], SHORT)
    out = tmp_path / "run"
    out.mkdir()
    out.chmod(0o500)
    if os.access(out, os.W_OK):
        pytest.skip("this user may write everywhere")
    with pytest.raises(StoreError, match=r"cannot be written.*Permission denied"):
        Study.open(file).run(out, device="cpu")


def test_a_log_that_was_cut_off_goes_on_with_a_new_line(tmp_path):
    store = Store(tmp_path)
    store.log({"event": "began", "shard": "a"})
    with open(tmp_path / "log.jsonl", "ab") as log:
        log.write(b'{"event": "finis')
    store.log({"event": "began", "shard": "b"})
    store.log({"event": "failed", "shard": "c", "error": "some\u2028text"})
    assert [event["shard"] for event in store.events()] == ["a", "b", "c"]


def test_what_another_study_began_to_write_is_not_taken_for_ones_own(tmp_path):
    file = write_study(tmp_path, [ANY], SHORT)
    (tmp_path / "run").mkdir()
    (tmp_path / "run/study.json").write_text("of another study")
    with pytest.raises(StudyError, match="is not empty"):
        Study.open(file).run(tmp_path / "run", device="cpu")


def test_maps_of_an_attempt_that_was_killed_do_not_outlive_one_that_fails(tmp_path, monkeypatch):
    from suffice.study.kinds.attribution import Maps

    file = write_study(tmp_path, [ANY], SHORT)
    study = Study.open(file).run(tmp_path / "run", device="cpu", only="maps")
    (tmp_path / "run" / study.plan.shards(["maps"])[0].table).unlink()  # as if it had been killed before it was written

    def failing(self, work):
        raise RuntimeError("the model is ill")

    monkeypatch.setattr(Maps, "measure", failing)
    scores = Study.open(tmp_path / "run").run(device="cpu").table("scores")["error"].to_pylist()
    assert [error is None for error in scores] == [False] * 2 + [True] * 4


def test_what_another_process_does_again_is_left_to_it(tmp_path, monkeypatch):
    from suffice.study.kinds.attribution import Maps

    def failing(self, work):
        raise RuntimeError("the model is ill")

    monkeypatch.setattr(Maps, "measure", failing)
    study = Study.open(write_study(tmp_path, [ANY], SHORT)).run(tmp_path / "run", device="cpu", only="maps")
    first = study.plan.shards(["maps"])[0]
    with study.store.lock(first.name):
        assert forget_failed(study.plan, study.store, ["maps"]) == 2
    assert study.store.exists(first.table)
