"""Files name images, model and every setting that they come from; bad images are left out."""

import json

import pyarrow.parquet as pq
import pytest
from PIL import Image

import suffice
from suffice import open_images
from suffice.errors import UnreadableImage
from suffice.metrics import ScoreTable, sanity_check, score_table
from suffice.vision.identity import weights_hash
from tests.attribution.nets import pictures, small_cnn


@pytest.fixture
def photos(tmp_path):
    """Four files, of which the second is no image."""
    for number, pixels in enumerate(pictures(4)):
        array = (pixels * 255).byte().permute(1, 2, 0).numpy()
        Image.fromarray(array).save(tmp_path / f"{number}.png")
    (tmp_path / "1.png").write_bytes(b"broken")
    return open_images([tmp_path / f"{number}.png" for number in range(4)])


def check(about, net):
    assert about["model"] == net.name
    assert about["weights"] == weights_hash(net.module)
    assert about["versions"]["suffice"] == suffice.__version__
    assert about["preprocessing"]["mean"] == list(net.mean)


def stored(table):
    return json.loads(table.schema.metadata[b"suffice"])


def test_maps_and_scores(tmp_path):
    net, images = small_cnn(), pictures(2)
    maps = suffice.attribute(net, images, "gradient", targets=1)
    check(maps.about, net)
    assert (maps.about["settings"]["method"], maps.about["target"]) == ("gradient", "1")
    assert suffice.Attribution.load(maps.save(tmp_path / "maps")).about == maps.about
    assert stored(maps.to_arrow())["weights"] == maps.about["weights"]
    scores = suffice.measure(net, images, maps, "insertion", steps=3)
    check(scores.about, net)
    assert scores.about["settings"]["metrics"]["insertion"]["steps"] == 3
    assert suffice.Scores.load(scores.save(tmp_path / "scores")).about == json.loads(json.dumps(scores.about))
    check(stored(scores.to_arrow()), net)


def test_tables_name_images_and_targets(photos, tmp_path):
    net = small_cnn()
    tables = []
    table = score_table(net, photos, ["gradient"], ["insertion"], on_error="skip", on_table=tables.append)
    assert [row.method for row in tables[-1].rows] == ["gradient"]
    assert (table.images, [skip.index for skip in table.skipped]) == (3, [1])
    assert (table.index, table.counted) == ((0, 2, 3), "3 images (1 skipped)")
    table.write(tmp_path / "out")
    long = pq.read_table(tmp_path / "out" / "scores.parquet")
    good = photos[[0, 2, 3]]
    assert long["image"].to_pylist() == good.names
    assert long["image_id"].to_pylist() == good.ids
    assert long["index"].to_pylist() == [0, 2, 3]
    assert long["target"].to_pylist() == net.predict(good).targets.tolist()
    about = stored(long)
    check(about["models"][net.name], net)
    assert about["models"][net.name]["settings"]["metrics"]["insertion"]["integration"]
    assert [skip["index"] for skip in about["skipped"]] == [1]
    listed = json.loads((tmp_path / "out" / "scores.json").read_text(encoding="utf-8"))
    assert listed["rows"][0]["insertion"] == pytest.approx(table.rows[0]["insertion"].mean)
    check(listed["models"][net.name], net)
    maps = suffice.attribute(net, good, "gradient")
    made = ScoreTable.of([suffice.measure(net, good, maps, "insertion")])
    made.write(tmp_path / "of")
    again = pq.read_table(tmp_path / "of" / "scores.parquet")
    assert again["image"].to_pylist() == good.names
    assert again["insertion"].to_pylist() == pytest.approx(long["insertion"].to_pylist())


def test_sanity_checks_name_them_too(photos, tmp_path):
    net = small_cnn()
    found = sanity_check(net, photos, "gradient", targets=[0, 1, 2, 0], on_error="skip")
    assert found.targets.tolist() == [0, 2, 0]
    assert [skip.name for skip in found.skipped] == [photos[1].name]
    found.write(tmp_path / "out")
    long = pq.read_table(tmp_path / "out" / "sanity.parquet")
    assert set(long["image"].to_pylist()) == set(photos[[0, 2, 3]].names)
    check(stored(long)["about"], net)
    assert found.to_json()["about"]["settings"]["methods"]["gradient"]["reduction"]
    assert json.loads((tmp_path / "out" / "sanity.json").read_text(encoding="utf-8"))["about"]["model"] == net.name


def test_a_bad_image_is_an_error_unless_it_may_be_skipped(photos):
    with pytest.raises(UnreadableImage, match=r"1\.png"):
        score_table(small_cnn(), photos, ["gradient"], ["sparseness"])
    with pytest.raises(UnreadableImage, match=r"1\.png"):
        sanity_check(small_cnn(), photos, "gradient")
    with pytest.raises(UnreadableImage, match="None of the images could be read"):
        score_table(small_cnn(), photos[[1]], ["gradient"], ["sparseness"], on_error="skip")
    with pytest.raises(UnreadableImage, match="None of the images could be read"):
        sanity_check(small_cnn(), photos[[1]], "gradient", on_error="skip")
