"""What is known by name."""

import pytest

from suffice.plugins import Registry


def test_a_registry_that_could_not_be_read_is_read_again(tmp_path, monkeypatch):
    """An error that is raised only once would leave a list that lacks things, and nobody would know."""
    package = tmp_path / "things_of_mine"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "broken.py").write_text("import nowhere_to_be_found")
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry("thing", "things_of_mine", "suffice.things_of_mine")
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="nowhere_to_be_found"):
            registry.all()
    (package / "broken.py").unlink()
    assert registry.all() == {}
