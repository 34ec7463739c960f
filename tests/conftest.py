"""What tests share."""

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Arrays are small here, and there may be a process a core: threads that wait for each other only cost time. This is
# said before anything with threads is imported, and holds for processes that tests start, too.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

import pytest
import torch
from hypothesis import settings

from suffice.host_memory import keep_freed_memory
from tests.browser import chromium

torch.set_num_threads(1)
keep_freed_memory()
signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells switch off for what runs in the background
gc.disable()  # until all tests are imported: a million objects are made, none of them garbage

# Everybody's machine draws examples of its own; what must pass before a change lands draws the same ones every time.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")


# Files with tests that take long, or wait long. They come first: workers that are done help the others, but nobody can
# help with one long test that is left at the end.
LONG = {"test_clusters.py", "test_on_ray.py", "test_crashes.py", "test_notebooks.py", "test_docs.py", "test_demo.py"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name not in LONG)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _same_chance_for_every_test():
    if torch.cuda.is_available():
        torch.manual_seed(0)
    else:  # what is asked of a GPU that is not there is written down each time, which takes a millisecond
        torch.default_generator.manual_seed(0)


@pytest.fixture(scope="session")
def assets() -> Path:
    """Real weights and photographs, which are not part of the project; tests that need them skip without."""
    folder = Path(os.environ.get("SUFFICE_ASSETS", Path(__file__).parents[2] / "shared" / "assets"))
    if not folder.is_dir():
        pytest.skip("needs real weights and photographs; name their folder in SUFFICE_ASSETS")
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium or Chrome, driven by Playwright; tests that need it skip without."""
    with chromium() as started:
        yield started
