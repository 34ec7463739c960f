"""Metrics with update, compute and reset say what one call over all images says."""

import importlib
import sys
from datetime import timedelta

import pytest
import torch

from suffice.attribution import attribute
from suffice.errors import MissingExtra, OptionError
from suffice.metrics import measure
from tests.attribution.nets import pictures
from tests.metrics.nets import sharp_cnn

MetricCollection = pytest.importorskip("torchmetrics").MetricCollection
MapMetric = pytest.importorskip("suffice.metrics.torchmetrics").MapMetric

CHOICES = {"steps": 8}


def explained(count):
    net, images = sharp_cnn(), pictures(count)
    return net, images, attribute(net, images, "gradient")


@pytest.fixture(scope="module")
def seen():
    return explained(5)


def test_batches_give_the_mean_and_error_of_all_images(seen):
    net, images, found = seen
    whole = measure(net, images, found, "insertion", **CHOICES)
    metric = MapMetric("insertion", net, standard_error=True, metric_options=CHOICES)
    for some in (slice(0, 2), slice(2, 5)):
        metric.update(images[some], found.maps[some], found.targets[some])
    said = metric.compute()
    assert float(said["mean"]) == pytest.approx(whole.mean, abs=1e-6)
    assert float(said["standard_error"]) == pytest.approx(whole.standard_error, abs=1e-6)
    assert metric.higher_is_better is True
    metric.reset()
    metric.update(images[:1], found.maps[:1], found.targets[:1])
    assert float(metric.compute()["mean"]) == pytest.approx(float(whole.values[0]), abs=1e-6)


def test_several_metrics_and_another_protocol(seen):
    net, images, found = seen
    whole = measure(net, images, found, ["insertion", "deletion"], "rise", **CHOICES)
    metric = MapMetric(["insertion", "deletion"], net, "rise", metric_options=CHOICES)
    metric.update(images, found)
    said = metric.compute()
    assert {name: float(v) for name, v in said.items()} == {
        name: pytest.approx(whole[name].mean, abs=1e-6) for name in whole.metrics
    }
    assert metric.higher_is_better is None


def test_states_of_processes_are_joined(seen):
    net, images, found = seen
    parts = [MapMetric("deletion", net, metric_options=CHOICES) for _ in range(2)]
    for metric, some in zip(parts, (slice(0, 3), slice(3, 5)), strict=True):
        metric.update(images[some], found.maps[some], found.targets[some])
    parts[0].merge_state(parts[1])
    whole = measure(net, images, found, "deletion", **CHOICES)
    assert float(parts[0].compute()) == pytest.approx(whole.mean, abs=1e-6)
    assert parts[0].higher_is_better is False


SHARES = (3, 1, 6)  # images of the first process, of six; the second has the others, or none


def several(net):
    return MapMetric(["insertion", "deletion"], net, standard_error=True, metric_options=CHOICES)


def one_of_two(rank, folder, net, images, found):
    """What each process does: with its share of the images, say what it takes for the values of all."""
    torch.set_num_threads(1)
    meeting = (folder / "meeting").as_uri()
    torch.distributed.init_process_group("gloo", meeting, timedelta(seconds=60), world_size=2, rank=rank)
    metric, said = several(net), []
    for share in SHARES:
        own = range(6)[:share] if rank == 0 else range(6)[share:]
        for n in own:  # one at a time, so that the processes also differ in their number of batches
            metric.update(images[n : n + 1], found.maps[n : n + 1], found.targets[n : n + 1])
        said.append(metric.compute())
        metric.reset()
    torch.save(said, folder / f"{rank}.pt")
    torch.distributed.destroy_process_group()


@pytest.mark.skipif(
    not (torch.distributed.is_available() and torch.distributed.is_gloo_available()),
    reason="this torch has no torch.distributed with gloo",
)
def test_two_processes_say_what_one_says(tmp_path):
    net, images, found = explained(6)
    # Forked, a process need not import everything anew; it only runs the model forward, on the CPU.
    how = "fork" if "fork" in torch.multiprocessing.get_all_start_methods() else "spawn"
    given = (tmp_path, net, images, found)
    both = torch.multiprocessing.start_processes(one_of_two, given, nprocs=2, join=False, start_method=how)
    if not any(both.join(timeout=60) for _ in range(2)):  # each time, one of them ends
        for process in both.processes:
            process.kill()
        pytest.fail("two processes that measure a few images did not end in a minute")
    metric = several(net)
    metric.update(images, found)
    whole = metric.compute()
    for rank in range(2):
        said = torch.load(tmp_path / f"{rank}.pt")
        assert len(said) == len(SHARES)
        for joined in said:
            torch.testing.assert_close(joined, whole, rtol=0, atol=1e-6)


def test_it_is_a_metric_among_others(seen):
    net, images, found = seen
    metrics = MetricCollection({name: MapMetric(name, net) for name in ("sparseness", "adp")})
    step = metrics(images[:2], found.maps[:2], found.targets[:2])
    metrics.update(images[2:], found.maps[2:], found.targets[2:])
    whole, first = (measure(net, images[:n], found.maps[:n], "sparseness").mean for n in (5, 2))
    assert float(step["sparseness"]) == pytest.approx(first, abs=1e-6)
    assert float(metrics.compute()["sparseness"]) == pytest.approx(whole, abs=1e-6)


def test_copies_share_the_classifier_and_nothing_else(seen):
    net, images, found = seen
    metric = MapMetric("sparseness", net)
    metric.update(images[:2], found.maps[:2])
    other = metric.clone()
    assert other.net is net
    assert float(other.compute()) == float(metric.compute())
    other.update(images[2:], found.maps[2:])
    assert len(metric.values_sparseness) == 1
    assert float(other.compute()) == pytest.approx(measure(net, images, found, "sparseness").mean, abs=1e-6)
    assert metric.state_dict() == {}


def test_images_left_out_do_not_count(seen):
    net, images, found = seen
    boxes = [[(0, 0, 8, 8)], [(8, 8, 30, 30)], None, [(0, 16, 16, 32)], None]  # two images without a box
    whole = measure(net, images, found, "pointing-game", boxes=boxes)
    assert int(whole.judged.sum()) == 3
    metric = MapMetric("pointing-game", net, metric_options={"boxes": boxes})
    metric.update(images, found)
    assert float(metric.compute()) == pytest.approx(float(whole.values[whole.judged].mean()))


def test_mistakes_are_said_at_once(seen):
    with pytest.raises(OptionError, match="There is no metric 'insertoin'"):
        MapMetric("insertoin", seen[0])
    with pytest.raises(OptionError, match="all images at once"):
        MapMetric("insertion", seen[0], metric_options={"normalize": "set"})


def test_without_torchmetrics_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchmetrics", None)
    monkeypatch.delitem(sys.modules, "suffice.metrics.torchmetrics")
    with pytest.raises(MissingExtra, match="pip install torchmetrics"):
        importlib.import_module("suffice.metrics.torchmetrics")
