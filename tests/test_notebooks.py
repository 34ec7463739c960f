"""The notebooks of the docs, run from top to bottom as a reader would."""

import json
import os
import traceback
from pathlib import Path

import pytest

from tests.fewer import of_fewer_scenes
from tests.forks import CONTEXT

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))
RICH = {"image/svg+xml", "text/html"}
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def opened(path):
    """A notebook of few scenes."""
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert all(not cell.get("outputs") for cell in notebook.cells), "kept without outputs, which would be stale"
    for cell in notebook.cells:
        cell.source = of_fewer_scenes(cell.source)
    return notebook


def run_cells(sources, folder, said):
    """Run cells as a kernel does, and write down in which kinds their values can be shown, or what went wrong."""
    from IPython.core.interactiveshell import InteractiveShell

    os.chdir(folder)
    shell, kinds = InteractiveShell.instance(), set()
    try:
        for source in sources:
            done = shell.run_cell(source)
            done.raise_error()
            kinds |= {*shell.display_formatter.format(done.result)[0]} if done.result is not None else set()
    except BaseException:
        said.write_text(traceback.format_exc(), "utf-8")
        os._exit(1)
    said.write_text(json.dumps(sorted(kinds)), "utf-8")


@each_notebook
def test_its_cells_run(path, tmp_path):
    """In a process that need not import everything anew."""
    pytest.importorskip("IPython")
    cells = [cell.source for cell in opened(path).cells if cell.cell_type == "code"]
    said = tmp_path / "said"
    process = CONTEXT.Process(target=run_cells, args=(cells, tmp_path, said))
    process.start()
    process.join()
    assert process.exitcode == 0, said.read_text("utf-8")
    assert RICH & {*json.loads(said.read_text("utf-8"))} or "table" in path.stem


@pytest.mark.slow
@each_notebook
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = opened(path)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [output for output in shown if output["output_type"] == "error"]
    assert any(RICH & set(output.get("data", {})) for output in shown) or "table" in path.stem


def test_there_are_two():
    assert {path.stem for path in NOTEBOOKS} == {"reproduce-a-table", "your-own-model"}
