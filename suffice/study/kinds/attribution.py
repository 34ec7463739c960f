"""Maps by a method, kept for other measurements to read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import torch

from suffice.attribution import Attribution, attribute, find_method, list_methods
from suffice.errors import OptionError, UnreadableImage
from suffice.study.files import files_of, with_paths
from suffice.study.kinds.classes import Classes, Target, lacking_labels, no_such_class, targets_of_images
from suffice.study.kinds.layers import no_such_layer
from suffice.study.measurement import Found, Measurement, Options, Work
from suffice.vision import Classifier, Images


@dataclass(frozen=True)
class Maps(Measurement):
    """Attribution maps; further options are those of the method.

    ``methods`` instead of ``method`` stands for several measurements: a list of names, patterns of names, and tables
    with ``name`` and options, perhaps with a ``label`` and ``models`` of its own. A pattern stands for the methods that
    are not named themselves.

    Attributes:
        method: Its name.
        label: What tables call it; default: its name.
        target_class: The class explained.
        target: One class for all images instead, index or label; ``"@2"`` is the second likeliest of each.
        options: Of the method.
    """

    kind: ClassVar[str] = "attribution"
    makes_maps: ClassVar[bool] = True
    method: str
    label: str = ""
    target_class: Classes = "predicted"
    target: Target = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Options) -> Maps:
        """From the name of the method and its options beside each other."""
        if not isinstance(options.get("method"), str):
            raise OptionError("attribution needs 'method', the name of one, or 'methods'.")
        own = {name: options[name] for name in ("method", "label", "target_class", "target") if name in options}
        further = {name: value for name, value in options.items() if name not in own}
        find_method(own["method"]).check(further)
        return cls(**own, options=further)

    @classmethod
    def several(cls, options: Options, makers: Mapping[str, Options]) -> dict[str, Options]:
        """One measurement a method, by its label."""
        if "methods" not in options:
            return {"": options}
        if "method" in options:
            raise OptionError("There are 'methods' and 'method'; one of them is enough.")
        shared = {key: value for key, value in options.items() if key != "methods"}
        entries = _entries(options["methods"])
        named = {entry["name"] for entry in entries}
        found: dict[str, Options] = {}
        for entry in entries:
            own = {key: value for key, value in entry.items() if key != "name"}
            for name in _names(entry["name"], named):
                label = entry.get("label", name)
                if label in found:
                    raise OptionError(f"There are two {label!r} among the methods; give each a label of its own.")
                found[label] = {**shared, **own, "method": name, "label": label}
        return found

    @property
    def facts(self) -> dict[str, str]:
        """The method, in all rows."""
        return {"method": self.label or self.method}

    @property
    def files(self) -> tuple[str, ...]:
        """Those among the options of the method."""
        return files_of(find_method(self.method), self.options)

    @cached_property
    def _options(self) -> dict[str, Any]:
        return with_paths(find_method(self.method), self.options)

    def misfit(self, net: Classifier) -> str | None:
        """Why the method cannot be used with a model; None where it can."""
        method = find_method(self.method)
        reason = method.incompatibility(net, self._options) or no_such_layer(net, method, self._options)
        return reason or no_such_class(net, self.target)

    def lacks(self, images: Images) -> str | None:
        """Why images cannot be asked about by their labels; None where they can, or are not."""
        return lacking_labels(images) if self.target is None and self.target_class == "label" else None

    def questions(self, net: Classifier) -> float | None:
        """Inputs that an image puts through the model."""
        return find_method(self.method).questions_of(net, self._options)

    def measure(self, work: Work) -> Found:
        """Make maps."""
        import pyarrow as pa

        found = self._maps(work)
        skipped = {skip.index for skip in found.skipped}
        flat = found.maps.flatten(1)
        columns = {
            "index": pa.array([i for i in range(len(work.images)) if i not in skipped], pa.int64()),
            "target": pa.array(found.targets.tolist(), pa.int64()),
            "label": pa.array(list(found.labels), pa.string()),
            "confidence": pa.array(found.confidences.tolist(), pa.float64()),
            "lowest": pa.array(flat.amin(dim=1).tolist(), pa.float64()),
            "highest": pa.array(flat.amax(dim=1).tolist(), pa.float64()),
            "mean": pa.array(flat.double().mean(dim=1).tolist(), pa.float64()),
        }
        return Found(pa.table(columns), found.about, found.skipped, found)

    def _maps(self, work: Work) -> Attribution:
        """Maps of the images that can be read, of none if none can: whoever reads the maps is to know which."""
        targets = targets_of_images(work, self.target_class, self.target)
        how: dict[str, Any] = {"seed": work.seed, "runner": work.runner, "on_error": "skip"}
        try:
            return attribute(work.net, work.images, self.method, targets, **how, **self._options)
        except UnreadableImage:
            none = torch.zeros(0)
            settings = {"method": self.method}
            return Attribution(none.view(0, 1, 1), none.long(), none, settings, skipped=work.unreadable())


def _entries(given: Any) -> list[Options]:
    """The methods of a list, as tables with a name."""
    entries = [{"name": one} if isinstance(one, str) else one for one in given] if isinstance(given, list) else []
    if not entries or not all(isinstance(one, Mapping) and isinstance(one.get("name"), str) for one in entries):
        raise OptionError(f"methods={given!r}; expected a list of names, and of tables with a 'name' and options.")
    return entries


def _names(pattern: str, named: Collection[str]) -> list[str]:
    """A name, or the methods that a pattern matches and that are not named themselves."""
    if not set("*?[") & set(pattern):
        return [pattern]
    found = [name for name in list_methods(pattern) if name not in named]
    if not found:
        raise OptionError(f"No method, or none that is not named itself, is called {pattern!r}.")
    return found
