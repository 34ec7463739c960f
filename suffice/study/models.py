"""Which models a study is about."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from suffice.errors import StudyError
from suffice.study.asked import Asked
from suffice.study.choices import ModelChoice
from suffice.study.paths import expanded, placed
from suffice.study.places import Place
from suffice.vision import Classifier, load
from suffice.vision.models import list_models


@dataclass(frozen=True)
class PlannedModel:
    """A model of a study.

    Attributes:
        label: What tables call it; unique.
        name: What :func:`suffice.load` takes.
        group: What models have in common that differ by their weights only: the label without the seed.
        seed: Which of them it is; None where there is just one.
        family: Its family.
        checkpoint: File with its weights, as given.
        pretrained: Whether it has published weights.
        options: Further arguments of :func:`suffice.load`.
        weights: Hash of its weights.
        misfits: Measurements that it does not fit, with the reason.
    """

    label: str
    name: str
    group: str
    seed: str | None = None
    family: str | None = None
    checkpoint: str | None = None
    pretrained: bool = True
    options: Mapping[str, Any] | None = None
    weights: str = ""
    misfits: Mapping[str, str] | None = None

    def load(self, base: Path, device: str | None = None) -> Classifier:
        """The classifier; what is random in it is the same each time, in whichever process."""
        checkpoint = None if self.checkpoint is None else placed(self.checkpoint, base)
        more = {**({} if self.family is None else {"family": self.family}), **(self.options or {})}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return load(self.name, pretrained=self.pretrained, checkpoint=checkpoint, device=device, **more)


def chosen_models(asked: Asked) -> list[tuple[Place, PlannedModel]]:
    """The models that a study asks for, patterns resolved, each with a label of its own, and where it is written."""
    found: dict[str, tuple[Place, PlannedModel]] = {}
    for number, choice in enumerate(asked.models):
        place: Place = ("models", number)
        with asked.places.at(place, "name"):
            for model in _resolved(choice, asked.base):
                if model.label in found:
                    raise StudyError(f"Two models are called {model.label!r}; give each a label of its own.")
                found[model.label] = place, model
    return list(found.values())


def without_weights(asked: Asked) -> Asked:
    """The same study with random weights instead of those that would be fetched; checkpoints stay."""
    models = (m if m.checkpoint or m.seeds else replace(m, pretrained=False) for m in asked.models)
    return replace(asked, models=tuple(models))


def _resolved(choice: ModelChoice, base: Path) -> Iterator[PlannedModel]:
    names = list_models(choice.name) if set("*?[") & set(choice.name) else [choice.name]
    if not names:
        raise StudyError(f"No model is called {choice.name!r}.")
    for name in names:
        group = choice.label or name
        same: dict[str, Any] = {"name": name, "group": group, "family": choice.family}
        same |= {"pretrained": choice.pretrained, "options": dict(choice.options)}
        if choice.checkpoint is not None and not (file := placed(choice.checkpoint, base)).exists():
            raise StudyError(f"There is no checkpoint {file}.")
        if choice.seeds is None:
            yield PlannedModel(group, checkpoint=choice.checkpoint, **same)
            continue
        pattern = expanded(choice.seeds)  # the folder is no part of it: its own name may have brackets
        files = [base / found for found in sorted(glob.glob(pattern, root_dir=base))]
        if not files:
            raise StudyError(f"There is no file {base / pattern}.")
        for one in files:
            seed, near = one.stem, one.relative_to(base) if one.is_relative_to(base) else one
            yield PlannedModel(f"{group}#{seed}", seed=seed, checkpoint=str(near), **same)
