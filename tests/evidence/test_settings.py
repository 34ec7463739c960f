"""Choices and presets."""

import json

import pytest
import torch

from suffice.errors import OptionError
from suffice.evidence import Settings, list_presets, preset


@pytest.mark.parametrize(
    ("choice", "value", "expected"),
    [
        ("search", "magic", "'paper' or 'sag'"),
        ("counting", "leaves", "'distinct', 'per-mse', 'tree' or 'tree3'"),
        ("threshold", 0.0, "above 0 to 1"),
        ("expand_at", 1.5, "above 0 to 1"),
        ("beam_width", 0, "from 1 on"),
        ("grid", 2.5, "a whole number"),
        ("max_mses", -1, "from 0 on or None"),
        ("cells", "round", "'hard' or 'soft'"),
    ],
)
def test_what_cannot_be_is_said(choice, value, expected):
    with pytest.raises(OptionError, match=f"{choice}={value!r}; it can be .*{expected}"):
        Settings(**{choice: value})


def test_changes():
    assert Settings().changed(grid=5) == Settings(grid=5)
    with pytest.raises(OptionError, match="no setting 'beam'; there are grid, threshold"):
        Settings().changed(beam=3)
    assert Settings(beam_width=3, beam_off_by_one=True).width == 4


def test_presets_by_name():
    assert list_presets() == ["cvpr2024", "default", "preprint"]
    assert preset("default") == Settings()
    with pytest.raises(OptionError, match="no preset 'cvpr'; there are default, cvpr2024, preprint"):
        preset("cvpr")


@pytest.mark.parametrize("baseline", ["blur", torch.zeros(3, 2, 2), torch.zeros_like])
def test_they_are_plain_values_for_json(baseline):
    record = json.loads(json.dumps(Settings(baseline=baseline).to_dict()))
    assert record["baseline"] == (baseline if isinstance(baseline, str) else "custom")
    assert Settings(**record).grid == 7
