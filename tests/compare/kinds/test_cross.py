"""Cross-testing in a study."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice import Study, load, open_images
from suffice.compare import CrossTest, cross_test
from suffice.errors import OptionError, StudyError
from tests.study.small import MODELS, write_pictures

ANY = "tests.study.small:any_of"
OCCLUSION = {"window": 8, "stride": 8, "baseline": "black"}
CURVE = {"baseline": "black", "units": 3, "masks": "nearest", "steps": 9}
MEASURE = {
    "maps": {"kind": "attribution", "method": "occlusion", **OCCLUSION},
    "cross": {"kind": "cross-test", "maps": "maps", **CURVE},
}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    return write_pictures(tmp_path_factory.mktemp("pictures"), 5)


@pytest.fixture(scope="module")
def done(tmp_path_factory, pictures):
    return made(pictures).run(tmp_path_factory.mktemp("run") / "run", device="cpu")


def made(pictures, models=MODELS, **changes):
    return Study("small", str(pictures), models, MEASURE | changes, {"block": 2})


def rows(study):
    return study.table("cross").to_pylist()


def test_a_row_for_each_map_tested_model_and_image(done):
    table = done.table("cross")
    assert table.num_rows == 2 * 2 * 5
    assert table["model"].to_pylist() == [ANY] * 10 + ["sum"] * 10
    assert table["maps_of"].to_pylist() == [ANY, "sum"] * 10
    assert table["index"].to_pylist() == [i for i in range(5) for _ in range(2)] * 2
    assert set(table["method"].to_pylist()) == {"occlusion"}
    assert set(table.column_names) >= {"target", "label", "insertion", "deletion", "whole", "hidden"}
    assert table["error"].null_count == 20


def test_it_is_what_the_function_says(done, pictures):
    nets = [load(name, device="cpu") for name in ("tests.study.small:any_of", "tests.study.small:weighted")]
    nets[0].name, nets[1].name = ANY, "sum"
    direct = cross_test(nets, open_images(pictures), "occlusion", options=OCCLUSION, **CURVE)
    read = CrossTest.from_study(done)
    assert read.models == direct.models == (ANY, "sum")
    assert read.families == ("oracle", "sums")
    assert list(read.names) == list(direct.names)
    for metric in ("insertion", "deletion"):
        np.testing.assert_allclose(read.raw[metric], direct.raw[metric], atol=1e-6)
        np.testing.assert_allclose(read.normalized(metric), direct.normalized(metric), atol=1e-5)
    np.testing.assert_array_equal(read.targets, direct.targets)
    again = CrossTest.from_table(direct.to_arrow())
    np.testing.assert_allclose(again.normalized("deletion"), direct.normalized("deletion"))
    assert again.families == direct.families


def test_blocks_and_interruptions_change_nothing(tmp_path, pictures, done):
    other = Study("small", str(pictures), MODELS, MEASURE, {"block": 5}).run(tmp_path / "other", device="cpu")
    for one, two in zip(rows(other), rows(done), strict=True):
        assert one["insertion"] == pytest.approx(two["insertion"], abs=1e-6)
        assert {k: v for k, v in one.items() if not isinstance(v, float)} == {
            k: v for k, v in two.items() if not isinstance(v, float)
        }
    lost = tmp_path / "other/tables/measurement=cross/model=sum/00000.parquet"
    before = rows(other)
    lost.unlink()
    assert rows(Study.open(tmp_path / "other").run(device="cpu")) == before


def test_a_model_that_joins_is_tested_with_all_and_all_with_it(tmp_path, pictures, done):
    alone = made(pictures, MODELS[:1]).run(tmp_path / "run", device="cpu")
    assert alone.table("cross").num_rows == 5
    maps = tmp_path / "run/tables/measurement=maps/model=tests.study.small%3Aany_of/00000.parquet"
    written = maps.stat().st_mtime_ns
    together = made(pictures).run(tmp_path / "run", device="cpu")
    assert maps.stat().st_mtime_ns == written
    assert [(r["model"], r["maps_of"], r["index"]) for r in rows(together)] == [
        (r["model"], r["maps_of"], r["index"]) for r in rows(done)
    ]
    events = len([*together.store.events()])
    again = made(pictures).run(tmp_path / "run", device="cpu")
    assert len([*again.store.events()]) == events


def test_the_class_is_that_of_who_is_named(tmp_path, pictures):
    study = made(pictures, cross={**MEASURE["cross"], "target_class": "evaluated"})
    found = CrossTest.from_study(study.run(tmp_path / "run", device="cpu"))
    assert (found.targets[0] == found.targets[1]).all()
    with pytest.raises(StudyError, match=r"cross does not fit the images: .* 5 of 5 have none"):
        made(pictures, cross={**MEASURE["cross"], "target_class": "label"}).run(tmp_path / "labels", device="cpu")
    assert not (tmp_path / "labels").exists()


def test_several_methods_and_metrics_of_several_baselines(tmp_path, pictures):
    maps = {"kind": "attribution", "methods": [{"name": "occlusion", **OCCLUSION}, "random"]}
    cross = {"kind": "cross-test", "maps": "maps", "protocol": "rise", "steps": 4}
    study = Study("s", str(pictures), MODELS, {"maps": maps, "cross": cross}, {"block": 8}).run(tmp_path, device="cpu")
    table = study.table("cross")
    assert set(table["method"].to_pylist()) == {"occlusion", "random"}
    assert "hidden_deletion" in table.column_names  # the mean color, not the blur of insertion
    with pytest.raises(OptionError, match="Say which method is meant: occlusion, random"):
        CrossTest.from_study(study)
    found = CrossTest.from_study(study, method="random")
    assert found.metrics == ("insertion", "deletion")
    assert not np.isnan(found.raw["deletion"]).any()


def test_an_image_that_cannot_be_read_is_a_row_that_says_so(tmp_path):
    pictures = write_pictures(tmp_path / "pictures", 3)
    (pictures / "001.png").write_bytes(b"broken")
    study = made(pictures).run(tmp_path / "run", device="cpu")
    wrong = [row for row in rows(study) if row["error"]]
    assert [(row["model"], row["image"]) for row in wrong] == [(ANY, "001.png"), ("sum", "001.png")]
    assert len(rows(study)) == 2 * (2 * 2 + 1)
    assert CrossTest.from_study(study).raw["insertion"].shape == (2, 2, 2)


def test_maps_that_failed_are_made_again_with_all_that_read_them(tmp_path, pictures):
    study = made(pictures).run(tmp_path / "run", device="cpu")
    before = rows(study)
    maps = tmp_path / "run/maps/measurement=maps/model=sum/00001.safetensors"
    table = tmp_path / "run/tables/measurement=maps/model=sum/00001.parquet"
    maps.unlink()
    content = pq.read_table(table)
    pq.write_table(content.replace_schema_metadata({**content.schema.metadata, b"failed": b"lost"}), table)
    again = Study.open(tmp_path / "run").run(device="cpu", retry_failed=True)
    assert rows(again) == before
    redone = [e["shard"] for e in again.store.events() if e["event"] == "finished"][-3:]
    assert sorted(redone) == sorted(
        [
            "measurement=maps/model=sum/00001",
            "measurement=cross/model=tests.study.small%3Aany_of/00001",
            "measurement=cross/model=sum/00001",
        ]
    )


def test_files_say_whose_maps_they_have(done, tmp_path):
    (shard, *_) = [one for one in done.plan.shards() if one.measurement == "cross"]
    metadata = pq.read_schema(done.store.fs.open(done.store.path(shard.table), "rb")).metadata
    assert json.loads(metadata[b"makers"]) == [ANY, "sum"]


def test_the_estimate_counts_the_maps_of_all_models(pictures):
    lines = {(one.measurement, one.model): one for one in made(pictures).dry_run(device="cpu").lines}
    own = made(pictures, MODELS[:1]).dry_run(device="cpu").lines
    (alone,) = [one for one in own if one.measurement == "cross"]
    assert lines["cross", ANY].forwards == 2 * alone.forwards


def test_what_cannot_be_asked(pictures):
    with pytest.raises(StudyError, match="metrics with curves"):
        made(pictures, cross={"kind": "cross-test", "maps": "maps", "metrics": ["ins-del"]})
    with pytest.raises(StudyError, match="cross-test needs 'maps'"):
        made(pictures, cross={"kind": "cross-test"})
    with pytest.raises(StudyError, match="target_class='predicted'"):
        made(pictures, cross={**MEASURE["cross"], "target_class": "predicted"})
    with pytest.raises(OptionError, match="it has no maps_of"):
        CrossTest.from_table(pa.table({"model": ["a"], "image": ["x"]}))
