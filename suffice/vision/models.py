"""Models by name: the registry of sources, ``load`` and ``list_models``.

A source knows the models under one prefix (``timm/…``). The four libraries and our zoo are registered here; another
package adds its own with :func:`register_source`, on import, or lazily by an entry point in the group
``suffice.sources`` whose name is the prefix and whose object is a :class:`Source`.
"""

from __future__ import annotations

import fnmatch
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from suffice.errors import OptionError, UnknownModel
from suffice.plugins import did_you_mean, provide, provided, resolve
from suffice.vision.checkpoints import load_checkpoint
from suffice.vision.classifier import Classifier
from suffice.vision.devices import usable_device


@dataclass(frozen=True)
class ModelEntry:
    """A model that can be loaded by name.

    Attributes:
        name: What :func:`load` takes, such as ``"timm/deit_small_patch16_224"``.
        family: By default.
        pretrained: Whether there are weights for it.
        facts: What else the source knows, such as accuracy or number of parameters.
    """

    name: str
    family: str | None = None
    pretrained: bool = True
    facts: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Source:
    """Where models of one prefix come from.

    Attributes:
        build: ``build(name, pretrained=, checkpoint=, **options)`` makes a classifier on the CPU from the name
            without prefix; raises :class:`~suffice.errors.UnknownModel` with suggestions for a name it does not know.
        entries: Lists the models it knows, without the prefix in their names.
        about: One line for people.
    """

    build: Callable[..., Classifier]
    entries: Callable[[], Iterable[ModelEntry]]
    about: str


GROUP = "suffice.sources"
CLASSIFIER_OPTIONS = frozenset(inspect.signature(Classifier).parameters) - {"module", "device"}
for _library in ("timm", "torchvision", "hf"):
    provide(GROUP, _library, f"suffice.vision.libraries:{_library.upper()}")
provide(GROUP, "open_clip", "suffice.vision.open_clip:OPEN_CLIP")


def register_source(prefix: str, source: Source | str) -> None:
    """Make models loadable under a prefix.

    Args:
        prefix: The part of a name before the first slash.
        source: The source, or ``"package.module:NAME"`` of one to be imported when first needed.
    """
    provide(GROUP, prefix, source)


def sources() -> dict[str, Source]:
    """All sources by prefix."""
    return {prefix: resolve(GROUP, prefix) for prefix in provided(GROUP)}


def load(
    name: str | ModelEntry,
    *,
    pretrained: bool = True,
    checkpoint: str | Path | None = None,
    device: str | torch.device | None = None,
    **options: Any,
) -> Classifier:
    """Load a classifier by name, with the preprocessing of its own weights.

    It is moved to the first GPU if there is one, unlike in timm and torchvision; its ``repr`` says where it is.

    Args:
        name: ``"timm/…"``, ``"torchvision/…"``, ``"hf/…"`` (a model id of the hub or a local folder),
            ``"open_clip/…"``, or the name of another registered source. A tag after a dot chooses weights:
            ``"timm/resnet50.a1_in1k"``. A model of your own: ``"mymodule:make_model"``, a function that returns a
            module or a :class:`Classifier`.
        pretrained: Fetch the published weights; False gives random ones.
        checkpoint: Use the weights in this file instead; safetensors, or ``torch.save`` (read as plain weights).
        device: Where to put it instead, such as ``"cpu"``.
        **options: Arguments of :class:`Classifier` (``resize=``, ``labels=``, ``score=``, ``mean=``, …) go to it; the
            rest (``num_classes=``, ``img_size=``, …) goes to the library that makes the module. CLIP and SigLIP
            classify by ``labels=``, each put where ``{}`` is in ``prompt=``, one text or several.

    Raises:
        UnknownModel: With close names.
        OptionError: A module was given instead of a name; or the device is not there.
        DownloadError: No network; says how to give a checkpoint.
        CheckpointError: The checkpoint does not fit.

    Example:
        >>> net = load("timm/resnet10t", pretrained=False, device="cpu")
        >>> net.size, net.labels[281]
        ((176, 176), 'tabby')
    """
    if isinstance(name, nn.Module):
        raise OptionError("load() takes the name of a model; write Classifier(module, …) for a module that you have.")
    where = usable_device(device)  # before anything is downloaded
    net = _by_name(str(name), pretrained=pretrained, checkpoint=checkpoint, **options)
    net.checkpoint = None if checkpoint is None else Path(checkpoint).name
    return net.to(where)


def _by_name(name: str, **options: Any) -> Classifier:
    from suffice.vision.own import build_own, is_own

    if is_own(name):
        return build_own(name, **options)
    prefix, _, rest = name.partition("/")
    if rest and prefix in provided(GROUP):
        source: Source = resolve(GROUP, prefix)
        return source.build(rest, **options)
    known = sources()
    prefixes = ", ".join(f"{p}/…" for p in known)
    bare = rest or prefix
    near = [p for p in known for entry in known[p].entries() if bare in (entry.name, entry.name.partition(".")[0])]
    hint = f" Did you mean {' or '.join(repr(f'{p}/{bare}') for p in near)}?" if near else ""
    raise UnknownModel(f"There is no model {name!r}. Names begin with their source: {prefixes}.{hint}")


def model_entries(pattern: str = "*") -> list[ModelEntry]:
    """The same models as :func:`list_models`, in order of source and name, with what is known of them.

    Example:
        >>> model_entries("torchvision/vgg11")
        [ModelEntry(name='torchvision/vgg11', family='older-cnn', pretrained=True, facts=())]
    """
    head, slash, _ = pattern.partition("/")
    # Libraries none of whose names can match are not imported.
    asked = [prefix for prefix in provided(GROUP) if not slash or fnmatch.fnmatchcase(prefix, head)]
    found = [
        replace(entry, name=f"{prefix}/{entry.name}") for prefix in asked for entry in resolve(GROUP, prefix).entries()
    ]
    return [entry for entry in found if fnmatch.fnmatchcase(entry.name, pattern)]


def list_models(pattern: str = "*") -> list[str]:
    """List the names of models that can be loaded.

    Args:
        pattern: Shell-style pattern for the whole name, such as ``"timm/*deit*"``.

    Example:
        >>> list_models("torchvision/vgg1?")
        ['torchvision/vgg11', 'torchvision/vgg13', 'torchvision/vgg16', 'torchvision/vgg19']
    """
    return [entry.name for entry in model_entries(pattern)]


def unknown_model(problem: str, name: str, names: Iterable[str], prefix: str) -> UnknownModel:
    """The error for a name that a source does not know: the problem in a sentence, and close names."""
    near = did_you_mean(name, names, f"{prefix}/")
    return UnknownModel(f"{problem}{near} suffice.list_models('{prefix}/*') lists them all.")


def refuse_prompt(prompt: Any) -> None:
    """An error where a prompt is given for a model that has classes of its own."""
    if prompt is not None:
        raise OptionError(
            "prompt= is for models that compare images with texts, such as CLIP and SigLIP; this one has classes of "
            "its own."
        )


def split_options(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Separate the options of the classifier from those of the library that makes the module."""
    refuse_prompt(options.get("prompt"))
    own = {k: v for k, v in options.items() if k in CLASSIFIER_OPTIONS}
    return own, {k: v for k, v in options.items() if k not in own}


def assemble(
    module: nn.Module, checkpoint: str | Path | None, described: dict[str, Any], own: dict[str, Any]
) -> Classifier:
    """A classifier with the weights of a checkpoint, where one is given; the user's own options come last."""
    if checkpoint is not None:
        load_checkpoint(module, checkpoint)
    if "size" in own:  # which says all of it
        described = {name: value for name, value in described.items() if name != "geometry"}
    return Classifier(module, **{**described, **own})
