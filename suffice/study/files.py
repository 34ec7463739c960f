"""Files that measurements read beside images and the weights of models, and whether they are still the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from suffice.attribution import Method
from suffice.options import takes
from suffice.study.paths import expanded
from suffice.vision.identity import content_hash


def with_paths(method: Method, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a method, with the values of variables of the environment in those that may be paths."""
    paths = _paths(method, options)
    return {name: expanded(value) if name in paths else value for name, value in options.items()}


def files_of(method: Method, options: Mapping[str, Any]) -> tuple[str, ...]:
    """What may be a path among the options of a method, such as an explainer that was trained, or a baseline."""
    given = with_paths(method, options)
    return tuple(given[name] for name in _paths(method, options))


def _paths(method: Method, options: Mapping[str, Any]) -> list[str]:
    return [n for n in method.options if isinstance(options.get(n), str) and takes(method.function, n, Path())]


def hashes(paths: Iterable[str]) -> dict[str, str]:
    """The hash of each file by its path, and of all weights in a folder; what is not there is left out.

    Example:
        >>> hashes(["no/such/file"])
        {}
    """
    found = [one for path in paths for one in (sorted(Path(path).glob("*.safetensors")) or [Path(path)])]
    return {str(file): content_hash(file.read_bytes()) for file in found if file.is_file()}
