"""Studies on Ray: the same tables as in this process."""

import os
import signal
import time

import pytest

from suffice.errors import StudyError, SufficeWarning
from suffice.study import Study, on_ray
from suffice.study.plan import Plan, Shard
from suffice.study.store import Store
from tests.study.clusters import MEMORY, ray
from tests.study.processes import contents, done, ended, finished, start, unfinished, wait_for
from tests.study.small import ANY, MEASURE, make_corner_green, write_study

SHORT = {name: MEASURE[name] for name in ("maps", "scores")}


@pytest.fixture(scope="module")
def here():
    """Ray on this machine, one node with two CPUs."""
    ray.init("local", num_cpus=2, include_dashboard=False, object_store_memory=MEMORY, log_to_driver=False)
    yield
    ray.shutdown()


def test_both_engines_find_the_same_to_the_bit(tmp_path, whole, here):
    file, expected = whole
    study = Study.open(file).run(tmp_path / "run", engine="ray", cpus=1)
    assert contents(tmp_path / "run") == expected
    assert sorted(finished(tmp_path / "run")) == sorted(shard.name for shard in study.plan.shards())
    assert os.getpid() not in {event["process"] for event in study.store.events()}
    assert not unfinished(tmp_path / "run")


def test_ray_and_another_process_share_the_work(tmp_path, whole, here):
    file, expected = whole
    other = start(file, tmp_path / "run")
    assert wait_for(lambda: done(tmp_path / "run"), other)
    Study.open(file).run(tmp_path / "run", engine="ray", cpus=1)
    assert ended(other) == 0
    assert contents(tmp_path / "run") == expected
    assert len(finished(tmp_path / "run")) == len(set(finished(tmp_path / "run"))) == 24


def test_a_shard_that_kills_its_workers_is_rows_that_say_so(tmp_path, monkeypatch, here):
    monkeypatch.setattr(on_ray, "RETRIES", 0)
    file = write_study(tmp_path, [{"name": "tests.study.small:deadly", "label": "deadly"}, ANY], SHORT)
    make_corner_green(tmp_path / "pictures/002.png")
    study = Study.open(file).run(tmp_path / "run", engine="ray", cpus=1)
    for name, said in (("maps", "Workers of Ray were lost"), ("scores", "There are no maps of maps of deadly")):
        lost = [(row["model"], row["index"]) for row in study.table(name).to_pylist() if row["error"]]
        assert lost == [("deadly", 2), ("deadly", 3)]
        assert said in study.table(name)["error"].to_pylist()[2]
    assert study.status().failed == 2


def test_what_concerns_the_whole_study_ends_it(tmp_path, here):
    file = write_study(tmp_path, [ANY], SHORT)
    study = Study.open(file).run(tmp_path / "run", device="cpu", only="maps")
    text = study.store.read("plan.json").decode().replace(study.plan.models[0].weights, "0" * 32)
    study.store.write("plan.json", text.encode())
    with pytest.raises(StudyError, match=r"The weights of .* are others"):
        Study.open(tmp_path / "run").run(engine="ray", cpus=1)


def test_an_interrupt_ends_it_cleanly_and_it_goes_on(tmp_path, whole, here, monkeypatch):
    file, expected = whole
    out, wait, sent = tmp_path / "run", ray.wait, []

    def interrupted(*tasks, **options):
        ended = wait(*tasks, **options)
        if done(out) >= 3 and not sent:
            sent.append(True)
            os.kill(os.getpid(), signal.SIGINT)
        return ended

    monkeypatch.setattr(ray, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Study.open(file).run(out, engine="ray", cpus=1)
    assert 3 <= done(out) < 24
    assert not unfinished(out)
    assert not [*(out / "locks").glob("stopped-*")]
    Study.open(out).run(engine="ray", cpus=1)
    assert contents(out) == expected


def test_work_in_a_worker_ends_once_the_study_is_stopped(tmp_path):
    store = Store(tmp_path)
    with on_ray._stopping(store, "locks/stopped-1") as stopped:
        assert not stopped()
        store.write("locks/stopped-1", b"")
        for _ in range(6000):
            time.sleep(0.01)
        pytest.fail("It was not interrupted.")
    with on_ray._stopping(store, "locks/stopped-1") as stopped:  # a task that begins later
        assert stopped()
    with on_ray._stopping(store, "locks/stopped-2") as stopped:  # of another run
        assert not stopped()


def test_work_in_a_worker_can_be_interrupted_otherwise(tmp_path):
    with pytest.raises(KeyboardInterrupt), on_ray._stopping(Store(tmp_path), "locks/stopped-1"):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("place", ["memory://ray", "dir::memory://ray"])
def test_memory_of_a_process_is_refused(tmp_path, place):
    with pytest.raises(StudyError, match="which workers of Ray do not see"):
        Study.open(write_study(tmp_path, [ANY], SHORT)).run(place, engine="ray")


@pytest.mark.parametrize("place", ["file://", "dir::file://"])
def test_a_study_at_an_address(tmp_path, whole, here, place):
    file, expected = whole
    study = Study.open(file).run(f"{place}{tmp_path}/run", engine="ray", cpus=1)
    assert study.status().finished
    assert os.getpid() not in {event["process"] for event in study.store.events()}
    out = tmp_path / "run"
    out = out if study.store.local else out / str(out).lstrip("/")  # fsspec puts it there
    assert contents(out) == expected
    assert not unfinished(out)


def test_a_folder_that_workers_do_not_see_is_said(tmp_path, whole):
    plan = Plan.load(Store(whole[0].parent / "run"))
    with pytest.raises(StudyError, match=r"do not see the study in .*elsewhere"):
        on_ray.do_here(plan, str(tmp_path / "elsewhere"), "s", on_ray.Resources(0, 1), plan.shards()[:1])
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"device": "cpu", "gpus": 1}, "device='cpu', but gpus=1"),
        ({"device": "cuda:1"}, "Ray gives out devices"),
        ({"address": "localhost:1"}, "There is no Ray cluster at localhost:1: .*refused"),
        ({"address": "ray://localhost:x"}, "There is no Ray cluster at ray://localhost:x"),
    ],
)
def test_options_that_do_not_fit(tmp_path, monkeypatch, options, said):
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(ValueError, match=said):
        Study.open(write_study(tmp_path, [ANY], SHORT)).run(tmp_path / "run", engine="ray", **options)
    assert not (tmp_path / "run").exists()


class Nodes:
    """A cluster of nodes with so many CPUs and GPUs."""

    def __init__(self, *nodes):
        self.all = [{"CPU": cpus, "GPU": gpus} if gpus else {"CPU": cpus} for cpus, gpus in nodes]

    def nodes(self):
        return [{"Alive": True, "Resources": node} for node in self.all]

    def cluster_resources(self):
        return {kind: sum(node.get(kind, 0) for node in self.all) for kind in ("CPU", "GPU")}


@pytest.mark.parametrize(
    ("nodes", "options", "expected", "places"),
    [
        ([(0, 0), (4, 0), (8, 0)], {}, (0, 1, "cpu"), 12),  # tests have one thread
        ([(0, 0), (16, 8)], {}, (1, 1, "cuda"), 8),
        ([(16, 8)], {"device": "cpu", "cpus": 4}, (0, 4, "cpu"), 4),
        ([(16, 8)], {"gpus": 0.25, "cpus": 2}, (0.25, 2, "cuda"), 32),
    ],
)
def test_what_a_task_takes(nodes, options, expected, places):
    options = {"device": None, "gpus": None, "cpus": None} | options
    found = on_ray.Resources.of(Nodes(*nodes), **options)
    assert (found.gpus, found.cpus, found.device) == expected
    assert found.places(Nodes(*nodes)) == places


def test_what_no_node_has():
    with pytest.warns(SufficeWarning, match="No node of the Ray cluster has 2 GPUs and 1 CPUs"):
        on_ray.Resources.of(Nodes((8, 1)), None, 2, None)
    with pytest.raises(StudyError, match="has no GPU"):
        on_ray.Resources.of(Nodes((8, 0)), "cuda", None, None)


def test_a_task_has_one_model_and_what_reads_maps_comes_after_them(tmp_path, whole):
    file, _ = whole
    plan = Plan.load(Study.open(file.parent / "run").store)
    todo = plan.shards()
    found = on_ray.batches(plan, todo, set(todo), blocks=2)
    assert sorted(map(str, todo)) == sorted(str(shard) for batch in found for shard in batch)
    for batch in found:
        assert len({(shard.model, shard.number // 2) for shard in batch}) == 1
        for shard in batch:
            assert all(read in batch[: batch.index(shard)] for read in plan.inputs(shard))
    scores = [shard for shard in todo if shard.measurement == "scores"]
    maps = Shard("maps", "sum", 1)  # under way elsewhere
    assert {*scores} - {s for batch in on_ray.batches(plan, scores, {*scores, maps}, 1) for s in batch} == {
        Shard("scores", "sum", 1)
    }
