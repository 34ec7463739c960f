"""The notebooks of the docs, run from top to bottom as a reader would."""

from pathlib import Path

import pytest

from tests.fewer import of_fewer_scenes

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert all(not cell.get("outputs") for cell in notebook.cells), "kept without outputs, which would be stale"
    for cell in notebook.cells:
        cell.source = of_fewer_scenes(cell.source)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [output for output in shown if output["output_type"] == "error"]
    assert any({"image/svg+xml", "text/html"} & set(output.get("data", {})) for output in shown) or "table" in path.stem


def test_there_are_two():
    assert {path.stem for path in NOTEBOOKS} == {"reproduce-a-table", "your-own-model"}
