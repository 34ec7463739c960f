"""The package as a whole."""

import subprocess
import sys

import pytest

import suffice


def test_every_public_name_exists():
    for name in suffice.__all__:
        assert getattr(suffice, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        suffice.nonsense  # noqa: B018


def test_importing_pulls_in_nothing_heavy():
    heavy = ("timm", "torchvision", "transformers", "datasets", "matplotlib", "scipy", "sklearn", "pyarrow", "captum")
    code = (
        "import sys, suffice; suffice.load, suffice.Probe, suffice.Classifier, suffice.open_images;"
        f"print([m for m in {heavy!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_rooms_use_only_rooms_before_them():
    """A room may use the rooms above it and none below; the testing room stands beside the house."""
    import ast
    from pathlib import Path

    rooms = ["vision", "zoo", "perturb", "attribute", "evidence", "measure", "compare", "present", "cli"]
    root = Path(suffice.__file__).parent
    for path in root.rglob("*.py"):
        room = path.relative_to(root).parts[0]
        if room not in rooms:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            names += [a.name for a in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                parts = name.split(".")
                if parts[0] == "suffice" and len(parts) > 1 and parts[1] in rooms:
                    assert rooms.index(parts[1]) <= rooms.index(room), f"{path} uses {name}"
