"""Methods × models × metrics: explained and measured in one go."""

from dataclasses import replace

import pytest
import torch

from suffice import open_images
from suffice.attribution import attribute
from suffice.errors import OptionError
from suffice.metrics import Entry, find_protocol, measure, score_methods, score_table
from suffice.perturb import Runner
from tests.attribution.nets import pictures, small_cnn

WINDOW = {"occlusion": {"window": 8, "stride": 8}}
METRICS = ("insertion", "deletion", "sparseness")


def test_the_table_has_what_each_call_alone_gives():
    net, images = small_cnn(), pictures(3)
    done = []
    table = score_table(
        [net], images, ["gradient", "grad-cam"], METRICS, options={"gradient": {"reduction": "sum-abs"}},
        on_progress=lambda n, total: done.append((n, total)),
    )  # fmt: skip
    assert [(r.model, r.method) for r in table.rows] == [("small-cnn", "gradient"), ("small-cnn", "grad-cam")]
    maps = attribute(net, images, "gradient", reduction="sum-abs")
    alone = measure(net, images, maps, list(METRICS))
    for metric in METRICS:
        torch.testing.assert_close(table.rows[0].values[metric], alone[metric].values)
        assert table.rows[0][metric].mean == pytest.approx(alone[metric].mean)
        assert table.rows[0][metric].standard_error == pytest.approx(alone[metric].standard_error)
    assert done[-1] == (6, 6)


def test_a_method_can_be_there_with_different_options():
    net, images = small_cnn(), pictures(2)
    entries = [Entry("gradient", {"reduction": "sum"}), Entry("gradient", {}, "as it is"), "gradient"]
    made = score_table([net], images, entries, ["sparseness"], options={"gradient": {"reduction": "sum-abs"}})
    assert [r.method for r in made.rows] == ["gradient reduction=sum", "as it is", "gradient"]
    for row, reduction in zip(made.rows, ("sum", "sum-abs", "sum-abs"), strict=True):
        alone = measure(net, images, attribute(net, images, "gradient", reduction=reduction), "sparseness")
        torch.testing.assert_close(row.values["sparseness"], alone.values)
    with pytest.raises(OptionError, match="more than one gradient; write Entry"):
        score_table([net], images, ["gradient", "gradient"], ["sparseness"])
    with pytest.raises(OptionError, match="no option 'nonsense'"):
        score_table([net], images, [Entry("gradient", {"nonsense": 1})], ["sparseness"])


def test_the_class_explained_is_the_class_asked_about():
    net, images = small_cnn(), pictures(3)
    labels = [(int(c) + 1) % 3 for c in net(images).argmax(dim=1)]  # all wrong
    labeled = open_images(images, labels=labels)
    made = {rule: score_table([net], labeled, ["gradient"], ["pos", "neg"], "chefer", target_class=rule).rows[0]
            for rule in (None, "label", "predicted")}  # fmt: skip
    for rule, classes in ((None, labels), ("label", labels), ("predicted", None)):
        maps = attribute(net, images, "gradient", classes)
        alone = measure(net, images, maps, ["pos", "neg"], "chefer", target_class="explained")
        torch.testing.assert_close(made[rule].values["neg"], alone["neg"].values)
    assert made["label"]["neg"].mean != made["predicted"]["neg"].mean
    with pytest.raises(OptionError, match="3 of 3 have none"):
        score_table([net], images, ["gradient"], ["pos"], "chefer")


def test_parts_of_a_metric_are_columns_too():
    net, images = small_cnn(), pictures(2)
    base = find_protocol("default")
    protocol = replace(
        base, name="two", chosen={"insertion": {"baseline": ("gray", "black"), "steps": 4}, "ins-del": {"steps": 4}}
    )
    columns = ("insertion", "insertion/gray", "insertion/black", "ins-del/deletion")
    made = score_table([net], images, ["gradient", "occlusion"], columns, protocol, options=WINDOW)
    gray, black = (made.rows[0].values[f"insertion/{b}"] for b in ("gray", "black"))
    torch.testing.assert_close(made.rows[0].values["insertion"], (gray + black) / 2)
    assert not torch.equal(gray, black)
    assert made.protocol == "two"
    assert made.headings[2:6] == ["insertion ↑", "insertion/gray ↑", "insertion/black ↑", "ins-del/deletion ↓"]
    with pytest.raises(OptionError, match=r"no 'insertion/blur': the parts of insertion .* are gray, black"):
        score_table([net], images, ["gradient"], ["insertion/blur"], protocol)


def test_one_runner_serves_a_model_and_each_method_gets_its_variant(monkeypatch):
    seen, made = {}, set()

    def noting(name, work, runner):
        variant = runner.variant(work)
        seen[name] = (variant.precision, variant.compiled)
        made.add(id(runner))
        return Runner(runner.net, batch_size=2)  # nothing need be compiled here

    def recording(*args, method, runner, **options):
        return attribute(*args, method=method, runner=noting(method.name, method.work, runner), **options)

    def measuring(*args, runner, **options):
        return measure(*args, runner=noting("metrics", "scores", runner), **options)

    monkeypatch.setattr(score_methods, "attribute", recording)
    monkeypatch.setattr(score_methods, "measure", measuring)
    score_table(
        [small_cnn()], pictures(2), ["gradient", "grad-cam", "occlusion", "rise"], ["sparseness"],
        options={**WINDOW, "rise": {"masks": 2}}, precision="bf16", compile=True,
    )  # fmt: skip
    assert seen == {
        "gradient": ("bf16", True), "grad-cam": ("bf16", False), "occlusion": ("bf16", True), "rise": ("bf16", True),
        "metrics": ("bf16", True),
    }  # fmt: skip
    assert len(made) == 1


def test_methods_that_do_not_fit_are_left_out():
    table = score_table([small_cnn()], pictures(2), ["rollout", "gradient"], ["sparseness"])
    assert [r.method for r in table.rows] == ["gradient"]
    assert table.notes() == []
    with pytest.raises(OptionError, match="None of rollout fits small-cnn"):
        score_table([small_cnn()], pictures(2), ["rollout"], ["sparseness"])
