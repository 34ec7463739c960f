"""What comes back: it indexes, iterates, draws itself, becomes a table, and survives a file."""

import json
import pickle

import numpy as np
import pytest
import torch
from safetensors import safe_open

from suffice.attribution import Attribution, attribute, given_maps
from suffice.errors import MissingExtra, OptionError
from tests.attribution.nets import pictures, small_cnn

IMAGES = pictures(4)


@pytest.fixture(scope="module")
def found():
    return attribute(small_cnn(labels=list("abcde")), IMAGES, "grad-cam", [3, 1, 0, 4], positive=False)


def same(one, other):
    for name in ("maps", "targets", "confidences", "pictures"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name
    assert json.loads(json.dumps(one.settings)) == json.loads(json.dumps(other.settings))
    for name in ("names", "ids", "labels"):
        assert list(getattr(one, name)) == list(getattr(other, name)), name


def test_rows_are_attributions_of_their_own(found):
    assert len(found) == 4
    one = found[2]
    assert (len(one), one.labels, one.targets.tolist()) == (1, ["a"], [0])
    assert torch.equal(one.maps, found.maps[2:3])
    assert torch.equal(one.pictures, found.pictures[2:3])
    assert one.names == [found.names[2]]
    assert one.ids == [found.ids[2]]
    assert one.settings == found.settings
    same(found[-1], found[3])
    same(found[1:3], found[[1, 2]])
    same(found[torch.tensor([True, False, False, True])], found[[0, 3]])
    same(found[torch.tensor([3, 0])], found[[3, 0]])
    assert found[[3, 0]].targets.tolist() == [4, 3]
    assert len(found[4:]) == 0
    same(found[:], found)
    for wrong in (4, -5):
        with pytest.raises(IndexError, match=f"There are 4 results, 0 to 3; there is no {wrong}"):
            found[wrong]


def test_it_iterates_in_order(found):
    parts = list(found)
    assert [p.labels[0] for p in parts] == ["d", "b", "a", "e"]
    assert torch.equal(torch.cat([p.maps for p in parts]), found.maps)


def test_it_says_what_it_is(found):
    assert repr(found) == "Attribution(4 maps 8×8, method='grad-cam')"
    assert found.settings == {
        "method": "grad-cam",
        "options": {"layer": None, "positive": False, "output": "logit"},
        "seed": 0,
        "model": "small-cnn",
        "score": "softmax",
        "size": [32, 32],
    }


def test_sizes(found):
    assert found.maps.shape == (4, 8, 8)
    assert found.resized().shape == (4, 32, 32)
    assert found.resized(5).shape == (4, 5, 5)
    assert found.resized((4, 6), "nearest").shape == (4, 4, 6)
    torch.testing.assert_close(found.resized(8), found.maps)
    with pytest.raises(OptionError, match="cubic"):
        found.resized(16, "cubic")


def test_pictures_are_what_the_model_saw(found):
    assert found.pictures.dtype == torch.uint8
    assert found.pictures.device.type == "cpu"
    torch.testing.assert_close(found.pictures.float() / 255, IMAGES, atol=1 / 255, rtol=0)


def test_a_table(found):
    table = found.to_arrow()
    assert table.column_names == ["image", "image_id", "index", "target", "label", "confidence", "map"]
    assert table["image"].to_pylist() == list(found.names)
    assert table["image_id"].to_pylist() == list(found.ids)
    assert table["index"].to_pylist() == [0, 1, 2, 3]
    assert table["target"].to_pylist() == [3, 1, 0, 4]
    assert table["label"].to_pylist() == ["d", "b", "a", "e"]
    torch.testing.assert_close(torch.tensor(table["confidence"].to_pylist()), found.confidences)
    about = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    maps = torch.tensor(table["map"].to_pylist()).view(4, int(about["height"]), int(about["width"]))
    assert torch.equal(maps, found.maps)
    assert json.loads(about["settings"]) == json.loads(json.dumps(found.settings))
    plain = given_maps(found.maps, found.targets).to_arrow()
    assert plain["label"].to_pylist() == plain["image_id"].to_pylist() == [None] * 4


def test_a_data_frame(found, monkeypatch):
    pytest.importorskip("pandas")
    frame = found[1:].to_pandas()
    assert list(frame["label"]) == ["b", "a", "e"]
    assert len(frame["map"][0]) == 64


def test_without_pandas_the_error_names_the_other_way(found, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"pip install pandas; to_arrow\(\) does not"):
        found.to_pandas()


@pytest.mark.parametrize("name", ["maps", "maps.safetensors", "net.v2"])
def test_one_file_holds_everything(found, tmp_path, name):
    path = found.save(tmp_path / "deep" / name)
    assert [p.name for p in (tmp_path / "deep").iterdir()] == [path.name]
    assert path.suffix == ".safetensors"
    assert path.name.startswith(name)
    same(Attribution.load(tmp_path / "deep" / name), found)
    same(Attribution.load(path)[1:3], found[1:3])
    with safe_open(path, "pt") as opened:  # what other tools see
        assert set(opened.keys()) == {"maps", "targets", "confidences", "pictures"}
        assert json.loads(opened.metadata()["labels"]) == ["d", "b", "a", "e"]


def test_parts_and_maps_from_elsewhere_survive_a_file_too(found, tmp_path):
    same(Attribution.load(found[2:].save(tmp_path / "part")), found[2:])
    mine = given_maps(torch.rand(2, 7, 5), torch.tensor([3, 5]), method="mine", about={"answer": 42})
    again = Attribution.load(mine.save(tmp_path / "mine"))
    assert torch.equal(again.maps, mine.maps)
    assert again.settings == {"size": [7, 5], "method": "mine", "about": {"answer": 42}}
    assert again.confidences.isnan().all()
    assert again.pictures is None
    assert again.resized().shape == (2, 7, 5)
    with pytest.raises(OptionError, match="no maps at"):
        Attribution.load(tmp_path / "other")


def test_options_that_json_does_not_know_are_described(tmp_path):
    found = attribute(small_cnn(), IMAGES[:1], "ig", steps=2, baseline=torch.zeros(3, 32, 32))
    again = Attribution.load(found.save(tmp_path / "maps"))
    assert torch.equal(again.maps, found.maps)
    assert "tensor" in again.settings["options"]["baseline"]
    assert found.to_arrow().num_rows == 1


def test_it_pickles(found):
    same(pickle.loads(pickle.dumps(found)), found)


def test_maps_made_elsewhere():
    mine = given_maps(torch.rand(2, 7, 7), torch.tensor([3, 5]), method="mine")
    assert mine.resized(14).shape == (2, 14, 14)
    assert mine[1].targets.tolist() == [5]
    assert mine.confidences.isnan().all()
    arrays = given_maps(mine.maps.double().numpy(), [3, 5], np.array([0.5, 0.25]))
    assert torch.equal(arrays.maps, mine.maps)
    assert torch.equal(arrays.targets, mine.targets)
    assert arrays.confidences.tolist() == [0.5, 0.25]
    sure = given_maps(torch.rand(2, 7, 7), torch.tensor([3, 5]), torch.tensor([0.5, 0.25]))
    assert sure[1].confidences.tolist() == [0.25]
    for maps, targets in ((torch.rand(2, 7, 7), torch.tensor([3])), (torch.rand(7, 7), torch.tensor([3]))):
        with pytest.raises(OptionError, match="Expected maps"):
            given_maps(maps, targets)
