"""Activations in a study."""

import pyarrow as pa
import pytest
import torch

from suffice import Study, load
from suffice.compare import Activations, activations
from suffice.errors import OptionError, StudyError

MODELS = ["zoo/resnet", "zoo/deit"]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    measure = {"inside": {"kind": "activations"}}
    study = Study("inside", "scenes:test[:3]", MODELS, measure, {"block": 2})
    return study.run(tmp_path_factory.mktemp("run") / "run", device="cpu")


def test_it_is_what_the_function_says(done):
    read = Activations.from_study(done)
    assert list(read) == MODELS
    direct = activations(load("zoo/deit", device="cpu"), "scenes:test[:3]")
    assert read["zoo/deit"].layer == direct.layer
    assert read["zoo/deit"].index == (0, 1, 2)
    assert read["zoo/deit"].names == direct.names
    torch.testing.assert_close(read["zoo/deit"].maxima, direct.maxima, rtol=1e-4, atol=1e-5)
    assert read["zoo/resnet"].dominance == pytest.approx(
        activations(load("zoo/resnet", device="cpu"), "scenes:test[:3]").dominance, abs=1e-4
    )


def test_the_table(done):
    table = done.table("inside")
    assert table.num_rows == 6
    assert table["target"].null_count == 6
    assert len(table["maxima"][0].as_py()) == load("zoo/resnet", device="cpu").module.layer4[0].conv3.out_channels


def test_layers_that_are_not_there():
    with pytest.raises(StudyError, match="there is no layer 'nowhere'"):
        Study("s", "scenes:test[:2]", MODELS, {"a": {"kind": "activations", "layer": "nowhere"}}).dry_run(device="cpu")
    with pytest.raises(OptionError, match="no 'layer'"):
        Activations.from_table(pa.table({"model": ["a"]}))


def test_a_study_without_activations(tmp_path):
    study = Study("s", "scenes:test[:1]", ["zoo/resnet"], {"said": {"kind": "predictions"}}).run(tmp_path, device="cpu")
    with pytest.raises(OptionError, match="kind 'activations'; there is none"):
        Activations.from_study(study)
