"""Studies: run, read, resumed, refused."""

import io
import json

import pyarrow.parquet as pq
import pytest
import torch

from suffice import find_evidence, load, open_images
from suffice.errors import StudyError
from suffice.study import Study
from suffice.study.plan import Plan
from suffice.study.store import Store
from tests.study.small import MEASURE, MODELS, SEARCH, write_pictures
from tests.study.small import small_study as made


@pytest.fixture
def pictures(tmp_path):
    return write_pictures(tmp_path / "pictures", 10)


def rows(study, name):
    return study.table(name).to_pylist()


def test_every_measurement_of_every_model_is_a_table(tmp_path, pictures):
    study = made(pictures).run(tmp_path / "run", device="cpu")
    for name in MEASURE:
        table = study.table(name)
        assert table.num_rows == 20
        assert table["model"].to_pylist() == ["tests.study.small:any_of"] * 10 + ["sum"] * 10
        assert table["index"].to_pylist() == [*range(10)] * 2
        assert table["image"].to_pylist()[:2] == ["000.png", "001.png"]
        assert table["error"].null_count == 20
        assert None not in table["image_id"].to_pylist()
    assert set(study.table("said")["family"].to_pylist()) == {"oracle", "sums"}


def test_a_study_finds_what_the_functions_find(tmp_path, pictures):
    study = made(pictures).run(tmp_path / "run", device="cpu")
    net = load("tests.study.small:any_of", device="cpu")
    direct = find_evidence(net, open_images(pictures), **SEARCH)
    found = [row["mse_cells"] for row in rows(study, "evidence")[:10]]
    assert found == [[list(mse.cells) for mse in one.mses] for one in direct]


def test_files_say_what_they_are(tmp_path, pictures):
    study = made(pictures).run(tmp_path / "run", device="cpu")
    file = tmp_path / "run/tables/measurement=evidence/model=sum/00002.parquet"
    about = json.loads(pq.read_schema(file).metadata[b"suffice"])
    assert about["settings"]["grid"] == 3
    assert about["weights"] == study.plan.model("sum").weights
    assert about["versions"]["torch"] == torch.__version__


def test_running_again_does_nothing_anew(tmp_path, pictures):
    first = made(pictures).run(tmp_path / "run", device="cpu")
    events = [*first.store.events()]
    again = made(pictures).run(tmp_path / "run", device="cpu")
    assert [*again.store.events()] == events
    assert rows(again, "evidence") == rows(first, "evidence")


def test_what_is_missing_is_done_and_nothing_else(tmp_path, pictures):
    whole = made(pictures).run(tmp_path / "run", device="cpu")
    before = rows(whole, "scores")
    lost = tmp_path / "run/tables/measurement=scores/model=sum/00001.parquet"
    lost.unlink()
    (lost.parent / "00001.parquet.0123.unfinished").write_bytes(b"half")
    count = len([*whole.store.events()])
    again = Study.open(tmp_path / "run").run(device="cpu")
    assert rows(again, "scores") == before
    assert [e["shard"] for e in [*again.store.events()][count:]] == ["measurement=scores/model=sum/00001"] * 2
    assert not [*lost.parent.glob("*.unfinished")]


def test_only_some_measurements(tmp_path, pictures):
    study = made(pictures).run(tmp_path / "run", device="cpu", only="said")
    assert study.table("said").num_rows == 20
    with pytest.raises(StudyError, match="Nothing of evidence is done yet"):
        study.table("evidence")
    with pytest.raises(StudyError, match="Did you mean 'said'"):
        made(pictures).run(tmp_path / "run", device="cpu", only="siad")
    with pytest.raises(StudyError, match="Did you mean 'evidence'"):
        study.table("evidnece")


def test_maps_that_a_measurement_reads_are_made_with_it(tmp_path, pictures):
    study = made(pictures).run(tmp_path / "run", device="cpu", only="scores")
    assert study.table("scores").num_rows == study.table("maps").num_rows == 20
    with pytest.raises(StudyError, match="Nothing of said is done yet"):
        study.table("said")


def test_a_folder_goes_on_in_another_batch_and_in_no_other_precision(tmp_path, pictures):
    study = made(pictures).run(tmp_path / "run", device="cpu", only="said")
    assert study.run(f"{tmp_path}/run/", device="cpu", only="said").table("said").num_rows == 20
    assert study.changed(batch=3).run(device="cpu", only="maps").table("maps").num_rows == 20
    with pytest.raises(StudyError, match=r"run\.precision is bf16, was fp32"):
        study.changed(precision="bf16").run(device="cpu")
    with pytest.raises(StudyError, match="is the folder of a study already"):
        study.run(tmp_path / "other", device="cpu")
    assert not (tmp_path / "other").exists()


def changed(name, **options):
    return {"measure": {**MEASURE, name: {**MEASURE[name], **options}}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (changed("evidence", threshold=0.8), "measure.evidence.threshold is 0.8, was None"),
        (changed("scores", steps=3), "measure.scores.steps is 3, was 9"),
        ({"run": {"block": 4, "seed": 1}}, "run.seed is 1, was 0"),
        ({"run": {"block": 4, "precision": "bf16"}}, "run.precision is bf16, was fp32"),
    ],
)
def test_another_study_in_the_same_folder_is_refused(tmp_path, pictures, change, said):
    made(pictures).run(tmp_path / "run", device="cpu", only="said")
    before = {file: (tmp_path / "run" / file).read_bytes() for file in Store(tmp_path / "run").files()}
    with pytest.raises(StudyError, match=said):
        made(pictures, **change).run(tmp_path / "run", device="cpu")
    assert {file: (tmp_path / "run" / file).read_bytes() for file in Store(tmp_path / "run").files()} == before


def test_models_and_measurements_may_join(tmp_path, pictures):
    made(pictures, models=MODELS[:1], measure={"said": MEASURE["said"]}).run(tmp_path / "run", device="cpu")
    study = made(pictures).run(tmp_path / "run", device="cpu")
    assert study.table("scores").num_rows == 20
    assert sum(e["event"] == "finished" for e in study.store.events()) == 2 * 3 * 4  # none of them twice


def test_a_folder_with_something_else_is_refused(tmp_path, pictures):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/thesis.txt").write_text("mine")
    with pytest.raises(StudyError, match="is not empty"):
        made(pictures).run(tmp_path / "run", device="cpu")
    with pytest.raises(StudyError, match="There is no study in"):
        Study.open(tmp_path / "run")


def test_what_fails_is_rows_that_say_so_and_can_be_done_again(tmp_path, pictures, monkeypatch):
    from suffice.study.kinds.attribution import Maps

    working = Maps.measure

    def failing(self, work):
        if work.net.family == "sums" and work.images[0].name == "004.png":
            raise RuntimeError("the model is ill")
        return working(self, work)

    monkeypatch.setattr(Maps, "measure", failing)
    study = made(pictures).run(tmp_path / "run", device="cpu")
    for name, said in (("maps", "RuntimeError: the model is ill"), ("scores", "There are no maps of maps of sum")):
        found = rows(study, name)
        assert len(found) == 20
        lost = [r for r in found if r["error"]]
        assert [(r["model"], r["index"]) for r in lost] == [("sum", i) for i in range(4, 8)]
        assert said in lost[0]["error"]
    assert study.table("evidence")["error"].null_count == 20

    monkeypatch.setattr(Maps, "measure", working)
    assert Study.open(tmp_path / "run").run(device="cpu").table("maps")["error"].null_count == 16
    study = Study.open(tmp_path / "run").run(device="cpu", retry_failed=True)
    assert study.table("maps")["error"].null_count == 20
    assert study.table("scores")["error"].null_count == 20


def test_a_method_that_does_not_fit_is_said_before_anything_is_done(tmp_path, pictures):
    measure = {"maps": {"kind": "attribution", "method": "rollout"}, "said": MEASURE["said"]}
    with pytest.raises(StudyError, match=r"maps \(.+\) does not fit .* Leave out one"):
        made(pictures, measure=measure).run(tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()
    with pytest.raises(StudyError, match="No model of the study is measured by maps"):
        made(pictures, measure=measure, run={"misfits": "skip"}).run(tmp_path / "run", device="cpu")


def test_contrasts_are_between_models_of_the_study(tmp_path, pictures):
    contrast = {"of": MODELS[0], "against": "sim"}
    study = Study("c", str(pictures), MODELS, {"said": MEASURE["said"]}, contrasts=[contrast])
    with pytest.raises(StudyError, match=r"no model 'sim'\. Did you mean 'sum'"):
        study.run(tmp_path / "run", device="cpu")


def test_measurements_can_be_for_some_models(tmp_path, pictures):
    measure = {"said": {"kind": "predictions", "models": ["s*"]}, "evidence": MEASURE["evidence"]}
    study = made(pictures, measure=measure).run(tmp_path / "run", device="cpu", only="said")
    assert set(study.table("said")["model"].to_pylist()) == {"sum"}


def test_models_by_pattern_and_seed(tmp_path):
    from safetensors.torch import save_file

    net, tmp_path = load("zoo/resnet", device="cpu"), tmp_path / "weights [1]"
    tmp_path.mkdir()
    for seed in (3, 1):
        state = {k: v.contiguous() + (seed if k.endswith("fc.bias") else 0) for k, v in net.module.state_dict().items()}
        save_file(state, tmp_path / f"resnet-{seed}.safetensors")
    models = [{"name": "zoo/resnet", "label": "mine", "seeds": "resnet-*.safetensors"}, "zoo/resnet", "zoo/vg?"]
    study = Study("s", "scenes:test[:2]", models, {"said": MEASURE["said"]}, base=tmp_path)
    done = study.run(tmp_path / "run", device="cpu")
    labels = ["mine#resnet-1", "mine#resnet-3", "zoo/resnet", "zoo/vgg"]
    assert [m.label for m in done.plan.models] == labels
    assert [r["group"] for r in rows(done, "said")][::2] == ["mine", "mine", "zoo/resnet", "zoo/vgg"]
    assert [r["seed"] for r in rows(done, "said")][::2] == ["resnet-1", "resnet-3", None, None]
    assert len({m.weights for m in done.plan.models}) == 4


def test_random_weights_are_the_same_each_time(tmp_path):
    model = {"name": "zoo/resnet", "pretrained": False}
    study = Study("random", "scenes:test[:3]", model, {"said": MEASURE["said"]}, {"block": 2})
    done = study.run(tmp_path / "run", device="cpu")
    before = rows(done, "said")
    (tmp_path / "run/tables/measurement=said/model=zoo%2Fresnet/00001.parquet").unlink()
    assert rows(study.run(tmp_path / "run", device="cpu"), "said") == before
    assert rows(study.run(tmp_path / "other", device="cpu"), "said") == before


def test_weights_that_changed_are_refused(tmp_path, pictures):
    study = made(pictures).run(tmp_path / "run", device="cpu", only="said")
    store = Store(tmp_path / "run")
    text = store.read("plan.json").decode().replace(study.plan.model("sum").weights, "0" * 32)
    store.write("plan.json", text.encode())
    with pytest.raises(StudyError, match="The weights of sum are others"):
        Study.open(tmp_path / "run").run(device="cpu")


def test_a_folder_of_other_versions_is_refused(tmp_path, pictures):
    made(pictures, models=MODELS[:1]).run(tmp_path / "run", device="cpu", only="said")
    store = Store(tmp_path / "run")
    plan = json.loads(store.read("plan.json"))
    store.write("plan.json", json.dumps({**plan, "versions": {**plan["versions"], "torch": "1.0"}}).encode())
    with pytest.raises(StudyError, match=r"the version of torch is .*, was 1\.0"):
        Study.open(tmp_path / "run").run(device="cpu")
    assert Study.open(tmp_path / "run").table("said").num_rows == 10


def test_a_study_in_memory(pictures):
    study = made(pictures).run("memory://a-study", device="cpu", only=["maps", "scores"])
    assert study.table("scores").num_rows == 20
    assert len([*study.store.events()]) == 2 * 2 * 3 * 2
    assert Plan.load(Store("memory://a-study")).names == study.plan.names


def test_maps_in_half_precision_take_half_the_space(tmp_path, pictures):
    both = [
        made(pictures, run={"block": 10, "maps": kind}).run(tmp_path / kind, device="cpu", only=["maps"])
        for kind in ("fp32", "fp16")
    ]
    from suffice.study.plan import Shard
    from suffice.study.shard import read_maps

    shard = Shard("maps", "sum", 0)
    whole, half = (read_maps(study.plan, study.store, shard) for study in both)
    assert half.maps.dtype == torch.float32
    torch.testing.assert_close(half.maps, whole.maps, atol=1e-3, rtol=1e-3)
    assert not torch.equal(half.maps, whole.maps)
    assert len(both[1].store.read(shard.maps)) < len(both[0].store.read(shard.maps))


def test_tables_are_read_by_others_as_they_lie(tmp_path, pictures):
    import pyarrow.dataset as ds

    made(pictures).run(tmp_path / "run", device="cpu", only="said")
    table = ds.dataset(tmp_path / "run/tables", partitioning="hive").to_table()
    assert set(table["model"].to_pylist()) == {"tests.study.small:any_of", "sum"}
    assert set(table["measurement"].to_pylist()) == {"said"}
    assert pq.read_table(io.BytesIO((tmp_path / "run/images.parquet").read_bytes())).num_rows == 10
