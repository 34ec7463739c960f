"""Minimal sufficient explanations, and what lies below them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from suffice.errors import OptionError
from suffice.evidence import Settings, find_evidence, preset
from suffice.evidence.files.table import evidence_table
from suffice.evidence.stream import check_search
from suffice.study.kinds.classes import Classes, Target, no_such_class, targets_of_images
from suffice.study.measurement import Found, Measurement, Work
from suffice.vision import Classifier


@dataclass(frozen=True)
class EvidenceSearch(Measurement):
    """A search for evidence; its options are those of :func:`suffice.find_evidence`.

    Attributes:
        settings: Every choice of the search.
        target_class: The class asked about.
        target: One class for all images instead, index or label; ``"@2"`` is the second likeliest of each.
        regions: Keep all regions below the MSEs, from which graphs are drawn; they take the most space.
        pictures: Keep a small picture of each image.
    """

    kind: ClassVar[str] = "evidence"
    settings: Settings = field(default_factory=Settings)
    target_class: Classes = "predicted"
    target: Target = None
    regions: bool = False
    pictures: bool = True

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> EvidenceSearch:
        """From a preset, and choices of the search beside it."""
        own = {name: options[name] for name in ("target_class", "target", "regions", "pictures") if name in options}
        chosen = {name: value for name, value in options.items() if name not in (*own, "preset")}
        lists = {name: tuple(value) for name, value in chosen.items() if isinstance(value, list)}
        return cls(preset(options.get("preset", "default")).changed(**chosen | lists), **own)

    def misfit(self, net: Classifier) -> str | None:
        """Why a model cannot be searched so; None where it can."""
        try:
            check_search(net, self.settings)
        except OptionError as error:
            return str(error).removesuffix(".")
        return no_such_class(net, self.target)

    def measure(self, work: Work) -> Found:
        """Search."""
        settings = self.settings.changed(seed=work.seed)
        targets = targets_of_images(work, self.target_class, self.target)
        found = find_evidence(work.net, work.images, targets, settings=settings, runner=work.runner, on_error="skip")
        table = evidence_table(found, pictures=self.pictures, regions=self.regions)
        return Found(table.drop_columns(["model", "family"]), found.about, found.skipped)
