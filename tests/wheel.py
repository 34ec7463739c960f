"""What ``make wheel`` asks of a suffice that was installed from its wheel: is it that one, and is all of it there?

Run as ``python -I tests/wheel.py path/to/source/suffice`` by the Python that has the wheel, never by pytest.
"""

import sys
from importlib.metadata import distribution
from pathlib import Path


def main(source: Path) -> None:
    import suffice

    installed = Path(suffice.__file__).parent
    assert installed.is_relative_to(sys.prefix), f"suffice was imported from {installed}, not from the wheel"
    assert source.parent not in map(Path, sys.path), "the source can be imported here too"
    assert installed == Path(str(distribution("suffice").locate_file("suffice")))

    def files(folder: Path) -> set[str]:
        found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
        return {str(path) for path in found if "__pycache__" not in path.parts}

    assert files(installed) == files(source), f"not the same files: {sorted(files(installed) ^ files(source))}"
    assert "py.typed" in files(installed)

    names = suffice.list_models("zoo/*")
    assert names
    for name in names:  # with the weights that come along
        suffice.load(name, device="cpu")
    print(f"suffice {suffice.__version__} from the wheel: {len(files(installed))} files, {len(names)} networks loaded.")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
