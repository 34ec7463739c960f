"""The package as a whole: its rooms and who may use whom, its public names, what importing it costs."""

import ast
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import suffice

ROOT = Path(suffice.__file__).parent
# From the street to the roof: a room may use the rooms before it and none behind it.
ROOMS = (
    "vision", "zoo", "perturb", "draw", "attribution", "evidence", "metrics", "study", "compare", "report", "explorer",
    "bench", "cli",
)  # fmt: skip
BESIDE = "testing"  # stands beside the house and may use any room
VISITORS = ("bench", "cli")  # may use it, for examples whose truth is known; it uses neither
SHARED = (
    "errors",
    "host_memory",
    "options",
    "plugins",
    "progress",
    "results",
    "strangers",
)  # belong to no room and use none
MODULES = sorted(ROOT.rglob("*.py"))
LONGEST = 350


def place_of(path: Path) -> str:
    """The room that a module is in; its own name for modules beside the rooms."""
    return path.relative_to(ROOT).with_suffix("").parts[0]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def home_of(name: str) -> str:
    """The room that ``suffice.name`` comes from."""
    return suffice._ROOM_OF.get(name, name)


def imported(node: ast.AST, path: Path) -> Iterator[str]:
    """What an import takes from this package: rooms, and modules beside them."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            parts = alias.name.split(".")
            if parts[0] == "suffice" and len(parts) > 1:
                yield parts[1]
    elif isinstance(node, ast.ImportFrom):
        package = ("suffice", *path.relative_to(ROOT).parent.parts)
        above = package[: len(package) - node.level + 1] if node.level else ()
        parts = [*above, *(node.module or "").split(".")] if node.module else list(above)
        if parts[:1] == ["suffice"]:
            yield from parts[1:2] or (home_of(alias.name) for alias in node.names)


def mentioned(node: ast.AST) -> Iterator[str]:
    """Rooms that a string names as something to import, such as ``"suffice.zoo.source:SOURCE"``; no prose."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and not re.search(r"\s", node.value):
        yield from re.findall(r"\bsuffice\.(\w+)", node.value)


def used(path: Path) -> Iterator[tuple[int, str]]:
    """Line and name of everything in this package that a module uses, wherever in it, in code and in strings."""
    for node in ast.walk(tree_of(path)):
        if not isinstance(node, (ast.Import, ast.ImportFrom, ast.Attribute, ast.Constant)):
            continue
        names = [*imported(node, path), *(room for room in mentioned(node) if room in (*ROOMS, BESIDE))]
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "suffice":
            names.append(home_of(node.attr))
        for name in names:
            yield node.lineno, name


def reaches_down(path: Path) -> list[str]:
    """What a module uses and may not, in words."""
    place = place_of(path)
    if place == "__init__":
        return []
    if place in ROOMS:
        rooms = {*ROOMS[: ROOMS.index(place) + 1], *([BESIDE] if place in VISITORS else [])}
    else:
        rooms = {"__main__": {"cli"}, BESIDE: {BESIDE, *ROOMS} - set(VISITORS)}.get(place, set())
    allowed = {*rooms, *SHARED, "SufficeError", "SufficeWarning", "__version__"}
    where = path.relative_to(ROOT.parent)
    return [f"{where}:{line} uses {name}" for line, name in used(path) if name not in allowed]


def test_rooms_use_only_rooms_before_them():
    assert [said for path in MODULES for said in reaches_down(path)] == []


def test_the_test_of_rooms_sees_every_way_to_reach_down(tmp_path, monkeypatch):
    """Otherwise it would be quiet for the wrong reason."""
    ways = {
        "import suffice.metrics.scores": "metrics",
        "from suffice.evidence import Evidence": "evidence",
        "from suffice import measure": "metrics",
        "def late():\n    from suffice import attribution": "attribution",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from suffice.cli import app": "cli",
        "from ...metrics import Scores": "metrics",
        "from .. import draw": "draw",
        'SOURCE = "suffice.zoo.source:SOURCE"': "zoo",
        'def name(kind):\n    return f"suffice.attribution.{kind}"': "attribution",
        "import suffice\nsuffice.measure": "metrics",
        "from suffice.testing import AnyOf": "testing",
    }
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "vision" / "images").mkdir(parents=True)
    for number, (code, room) in enumerate(ways.items()):
        level = "vision/images" if "..." in code else "vision"
        path = tmp_path / level / f"module_{number}.py"
        path.write_text(code)
        assert [said.rpartition(" ")[2] for said in reaches_down(path)] == [room], code
    fine = tmp_path / "vision" / "fine.py"
    fine.write_text(
        '"""See suffice.metrics.scores."""\nfrom suffice import load\nfrom . import images\nGROUP = "suffice.sources"\n'
    )
    assert reaches_down(fine) == []


def test_every_folder_is_a_room_that_says_what_it_is_for():
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert folders <= {*ROOMS, BESIDE}
    assert {place_of(path) for path in MODULES} - folders == {*SHARED, "__init__", "__main__"}
    for folder in folders:
        words = ast.get_docstring(tree_of(ROOT / folder / "__init__.py")) or ""
        assert len(words.split()) > 15, f"suffice/{folder}/__init__.py has no docstring that says what lives there"
    assert [room for room in ROOMS if room in folders] == [
        room for room in re.findall(r":mod:`suffice\.(\w+)`", suffice.__doc__) if room in ROOMS
    ]


def test_no_file_is_long():
    lengths = {str(path.relative_to(ROOT.parent)): len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


def test_every_public_name_exists():
    for name in suffice.__all__:
        assert getattr(suffice, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        suffice.nonsense  # noqa: B018


def test_completion_offers_public_names_alone():
    offered = dir(suffice)
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert set(offered) - rooms == {*suffice.__all__, "__version__", "__doc__"}
    assert {"Any", "TYPE_CHECKING", "import_module", "annotations"}.isdisjoint(offered)
    assert all(getattr(suffice, name) is not None for name in offered)


def test_functions_and_classes_pickle():
    for name in suffice.__all__:
        value = getattr(suffice, name)
        assert pickle.loads(pickle.dumps(value)) is value


def test_importing_pulls_in_nothing_heavy():
    heavy = (
        "timm", "torchvision", "transformers", "datasets", "matplotlib", "scipy", "sklearn", "pyarrow", "pandas",
        "captum", "torchmetrics", "typer", "rich", "jinja2", "networkx",
    )  # fmt: skip
    code = (
        f"import sys, suffice; print([m for m in {heavy!r} if m in sys.modules], 'torch' in sys.modules);"
        "suffice.load, suffice.Probe, suffice.Classifier, suffice.open_images;"
        f"print([m for m in {heavy!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[] False", "[]"]
