"""The widget in a real JupyterLab, where there is one: SUFFICE_JUPYTER_LAB names its program, or it is on the path."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from suffice.explorer.reading import pack
from tests.browser import chromium

LAB = os.environ.get("SUFFICE_JUPYTER_LAB") or shutil.which("jupyter-lab")
pytestmark = pytest.mark.skipif(LAB is None, reason="needs JupyterLab; name its program in SUFFICE_JUPYTER_LAB")
CELL = "import suffice\nbench = suffice.explore('zoo/resnet', 'scenes:test[:2]')\nbench"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The address of a JupyterLab whose kernel is this Python, with a notebook of one cell."""
    pytest.importorskip("anywidget")
    pytest.importorskip("ipykernel")
    folder = tmp_path_factory.mktemp("lab")
    kernel = folder / "share" / "kernels" / "here"
    kernel.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    about = {"display_name": "here", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps({"argv": command, **about}))
    cell = {"cell_type": "code", "id": "first", "metadata": {}, "outputs": [], "execution_count": None, "source": CELL}
    notebook = {"cells": [cell], "metadata": {"kernelspec": {"name": "here", **about}}, "nbformat": 4}
    (folder / "explore.ipynb").write_text(json.dumps({**notebook, "nbformat_minor": 5}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    places = {name: str(folder / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")}
    path = os.pathsep.join([str(folder / "share"), os.path.join(sys.prefix, "share", "jupyter")])
    options = [
        "--no-browser",
        "--allow-root",
        f"--port={port}",
        "--ServerApp.token=lab",
        f"--ServerApp.root_dir={folder}",
    ]
    with (folder / "log").open("w") as log:
        environment = {**os.environ, **places, "JUPYTER_PATH": path, "OMP_NUM_THREADS": "1"}
        server = subprocess.Popen([LAB, *options], env=environment, stdout=log, stderr=log)
        try:
            _wait_for(f"http://127.0.0.1:{port}/api", server)
            yield f"http://127.0.0.1:{port}/lab/tree/explore.ipynb?token=lab"
        finally:
            server.terminate()
            server.wait(30)


def _wait_for(address, server):
    for _ in range(300):
        assert server.poll() is None, "JupyterLab ended"
        try:
            urlopen(address).close()
        except (URLError, ConnectionError):
            time.sleep(0.2)
        else:
            return
    raise AssertionError("JupyterLab does not answer")


def test_cells_are_hidden_in_jupyterlab_and_its_own_keys_rest(lab):
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1400, "height": 1100})
        page.set_default_timeout(90_000)
        page.goto(lab)
        page.locator(".jp-Notebook .jp-CodeCell .cm-content").first.click()
        page.keyboard.press("Shift+Enter")
        page.wait_for_selector(f'.suffice[data-answered="{pack(range(49), 7)}"]')
        row = page.locator('.suffice .model[data-model="zoo/resnet"] .number')
        assert "100 %" in row.inner_text()
        cells = page.locator(".jp-Notebook .jp-Cell").count()
        board = page.locator(".suffice canvas").first
        board.scroll_into_view_if_needed()
        board.click()  # the cell in the middle
        page.wait_for_selector(f'.suffice[data-answered="{pack([c for c in range(49) if c != 24], 7)}"]')
        page.keyboard.press("n")
        page.wait_for_selector(f'.suffice[data-answered="{pack([], 7)}"]')
        assert "100 %" not in row.inner_text()
        page.keyboard.press("a")  # all cells of the image, and no cell of the notebook
        page.wait_for_selector(f'.suffice[data-answered="{pack(range(49), 7)}"]')
        assert page.locator(".jp-Notebook .jp-Cell").count() == cells
