"""Engines by name, also where Ray is not installed."""

import builtins

import pytest

from suffice.errors import MissingExtra
from suffice.study import Study
from tests.study.small import ANY, MEASURE, write_study

SHORT = {name: MEASURE[name] for name in ("maps", "scores")}


def test_without_ray(tmp_path, monkeypatch):
    really = builtins.__import__

    def lacking(name, *args, **kwargs):
        if name == "ray":
            raise ImportError("No module named 'ray'")
        return really(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", lacking)
    with pytest.raises(MissingExtra, match=r"pip install 'suffice\[ray\]'"):
        Study.open(write_study(tmp_path, [ANY], SHORT)).run(tmp_path / "run", engine="ray")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"engine": "dask"}, "'local' or 'ray'"),
        ({"gpus": 1}, "gpus=1 is for engine='ray'"),
        ({"address": "auto"}, "address='auto' is for engine='ray'"),
    ],
)
def test_options_that_do_not_fit(tmp_path, options, said):
    with pytest.raises(ValueError, match=said):
        Study.open(write_study(tmp_path, [ANY], SHORT)).run(tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()
