"""Minimal sufficient explanations, and what lies below them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from suffice.errors import OptionError
from suffice.evidence import Settings, find_evidence, preset
from suffice.evidence.files.table import evidence_table
from suffice.evidence.stream import check_search
from suffice.perturb.baselines import make_baseline
from suffice.plugins import unknown
from suffice.study.kinds.classes import Classes, Target, lacking_labels, no_such_class, targets_of_images
from suffice.study.measurement import Found, Measurement, Work
from suffice.vision import Classifier, Images
from suffice.vision.classifier import Targets
from suffice.vision.stream import stream

ASKED_OF_ANY_WEIGHTS = 1000  # questions an image


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
        known = ("preset", *(f.name for f in fields(cls) if f.name != "settings"), *(f.name for f in fields(Settings)))
        for name in options:
            if name not in known:
                raise unknown("setting", name, known)
        own = {f.name: options[f.name] for f in fields(cls) if f.name in options}
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

    def lacks(self, images: Images) -> str | None:
        """Why images cannot be asked about by their labels; None where they can, or are not."""
        return lacking_labels(images) if self.target is None and self.target_class == "label" else None

    def for_any_weights(self) -> EvidenceSearch:
        """The first levels of a search that does not end early, whatever the weights."""
        return SearchOfAnyWeights(**{f.name: getattr(self, f.name) for f in fields(self)})

    def measure(self, work: Work) -> Found:
        """Search."""
        settings = self._settings().changed(seed=work.seed)
        targets = self._targets(work)
        found = find_evidence(work.net, work.images, targets, settings=settings, runner=work.runner, on_error="skip")
        table = evidence_table(found, pictures=self.pictures, regions=self.regions)
        return Found(table.drop_columns(["model", "family"]), found.about, found.skipped)

    def _settings(self) -> Settings:
        return self.settings

    def _targets(self, work: Work) -> Targets:
        return targets_of_images(work, self.target_class, self.target)


@dataclass(frozen=True)
class SearchOfAnyWeights(EvidenceSearch):
    """The first levels of a search, to see how fast a model with random weights is searched.

    Such a model says nearly the same of an image and of its baseline, so that the search that is meant ended at once.
    This one goes by what lies between the two, for the class of which that is the most. As it is next to nothing,
    confirming would ask about all sets again.
    """

    def _settings(self) -> Settings:
        levels = {"max_questions": ASKED_OF_ANY_WEIGHTS, "expanded_mses": 0, "deletion_orders": 0}
        return self.settings.changed(**levels, above_baseline=True, min_confidence=0.0, confirm="none")

    def _targets(self, work: Work) -> Targets:
        targets = [0] * len(work.images)
        for batch in stream(work.images, work.net.geometry, on_error="skip"):
            ids = [work.images[i].id for i in batch.index.tolist()]
            pixels = batch.pixels.to(work.net.device)
            hidden = make_baseline(self.settings.baseline, pixels, mean=work.net.mean, ids=ids, seed=work.seed)
            gains = work.runner.scores(pixels) / work.runner.scores(hidden)
            for index, best in zip(batch.index.tolist(), gains.argmax(dim=1).tolist(), strict=True):
                targets[index] = best
        return targets
