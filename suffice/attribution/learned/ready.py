"""Files of explainers: the one given, or found in a folder by the weights of the explained model.

Such a folder comes with the package.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import suffice.zoo
from suffice.attribution.learned.files import Kind, read_explainer_facts
from suffice.errors import CheckpointError, OptionError
from suffice.vision import Classifier
from suffice.vision.identity import content_hash, weights_hash

READY = Path(suffice.zoo.__file__).parent / "weights" / "explainers"


def ready_name(model: str, kind: Kind = "explainer") -> str:
    """Name of the file of a model's explainer, as ``suffice train`` calls it where it is not told otherwise.

    Example:
        >>> ready_name("zoo/deit"), ready_name("zoo/deit", "shapley")
        ('zoo-deit.safetensors', 'zoo-deit-shapley.safetensors')
    """
    return f"{model.replace('/', '-')}{'' if kind == 'explainer' else f'-{kind}'}.safetensors"


def ready_explainer(
    net: Classifier, *, any_weights: bool = False, folder: str | Path = READY, kind: Kind = "explainer"
) -> Path | None:
    """The file of the explainer of a model with these weights that a folder has; None if there is none.

    Where there are several, it is the one that :func:`ready_name` names.

    Args:
        net: The classifier.
        any_weights: Look at its name alone.
        folder: Where to look; default: among those that come with the package.
        kind: What the file holds.

    Raises:
        OptionError: There are several, and none has that name.

    Example:
        >>> import suffice
        >>> ready_explainer(suffice.load("zoo/deit", device="cpu")).name
        'zoo-deit.safetensors'
        >>> ready_explainer(suffice.load("zoo/deit", pretrained=False, device="cpu")) is None
        True
    """
    usual = Path(folder) / ready_name(net.name, kind)
    found = [path for path in sorted(Path(folder).glob("*.safetensors")) if _explains(path, net, any_weights, kind)]
    if usual in found:
        return usual
    if len(found) > 1:  # which of them is meant cannot be known: they may have other trunks, or other penalties
        raise OptionError(
            f"{folder} has {len(found)} explainers of {net.name}, {', '.join(path.name for path in found)}, and none "
            f"of them is called {usual.name}; give the file of one as explainer=PATH."
        )
    return found[0] if found else None


def explainer_file(
    net: Classifier, given: str | Path | None, *, any_weights: bool = False, kind: Kind = "explainer"
) -> Path:
    """The file that was given, the one for the model in the folder that was given, or the ready one.

    Raises:
        OptionError: There is none, or it is not known which.
    """
    path = _file(net, given, any_weights, kind)
    if path is None:
        raise OptionError(f"Nothing explains {net.name}: {lacks_explainer(net, given, kind=kind)}.")
    return path


def lacks_explainer(
    net: Classifier, given: object, *, any_weights: bool = False, kind: Kind = "explainer"
) -> str | None:
    """Why a method has no explainer of a model; None where it has one, which may have been given as an object."""
    if given is not None and not isinstance(given, (str, Path)):
        return None
    train = f"`suffice train {kind} --model {net.name} --images …`"
    if given is not None and not Path(given).exists():
        return f"there is no explainer {given}; {train} trains one"
    if _file(net, given, any_weights, kind) is not None:
        return None
    if given is not None:
        return f"the folder {given} has no explainer of it; {train} trains one"
    return (
        f"no explainer of it is ready; train one with {train} and give its file as explainer=PATH, or what "
        f"suffice.attribution.learned.train_{kind}(net, images) returns"
    )


def file_record(path: Path) -> dict[str, str]:
    """What records say of a file: its name, and the hash of its content.

    Example:
        >>> sorted(file_record(READY / "zoo-deit.safetensors"))
        ['file', 'hash']
    """
    about = path.stat()
    return {"file": path.name, "hash": _hash(path.resolve(), about.st_mtime_ns, about.st_size)}


def _file(net: Classifier, given: str | Path | None, any_weights: bool, kind: Kind) -> Path | None:
    path = READY if given is None else Path(given)
    return ready_explainer(net, any_weights=any_weights, folder=path, kind=kind) if path.is_dir() else path


def _explains(path: Path, net: Classifier, any_weights: bool, kind: Kind) -> bool:
    explained = _facts(path, kind, path.stat().st_mtime_ns).get("explained", {})
    if any_weights:
        return bool(explained.get("name") == net.name)
    return bool(explained.get("weights") == weights_hash(net.module))


@cache
def _facts(path: Path, kind: Kind, changed: int) -> dict[str, Any]:
    """Facts about an explainer; none where the file is something else, such as weights of another kind."""
    try:
        return read_explainer_facts(path, kind)
    except CheckpointError:
        return {}


@cache
def _hash(path: Path, changed: int, size: int) -> str:
    """Read once, as records are made for every block of a study."""
    return content_hash(path.read_bytes())
