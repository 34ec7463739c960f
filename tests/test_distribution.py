"""What is promised to those who install the package."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = [*(ROOT / "suffice").rglob("*.py"), *(ROOT / "docs").glob("*.md")]


@pytest.fixture(scope="module")
def project():
    tomllib = pytest.importorskip("tomllib", reason="tomllib came with Python 3.11")
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.fixture(scope="module")
def declared(project):
    found = (re.fullmatch(r"Programming Language :: Python :: 3\.(\d+)", line) for line in project["classifiers"])
    return sorted(int(match[1]) for match in found if match)


def test_extras_that_messages_name_are_declared_and_all_of_them_are_in_dev(project):
    extras = project["optional-dependencies"]
    (ours,) = (re.fullmatch(r"suffice\[(.*)\]", line)[1] for line in extras["dev"] if line.startswith("suffice["))
    assert {*ours.split(","), "dev"} == set(extras)
    said = [re.findall(r"pip install 'suffice\[([\w-]+)\]'", path.read_text("utf-8")) for path in SOURCES]
    named = {name for names in said for name in names}
    assert "superpixels" in named
    assert not named - set(extras)


def test_importing_is_quiet():
    done = subprocess.run([sys.executable, "-W", "error", "-c", "import suffice"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_oldest_python_allowed_is_the_oldest_declared(project, declared):
    assert declared, "no version of Python is declared"
    assert project["requires-python"] == f">=3.{declared[0]}"


def test_the_python_that_runs_this_is_declared(declared):
    assert sys.version_info[1] in declared, "declare a version of Python once the tests pass under it"
