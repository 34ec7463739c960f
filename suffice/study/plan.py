"""From what is asked to what has to be done: models with their weights, images, and shards."""

from __future__ import annotations

import fnmatch
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any
from urllib.parse import quote

import torch

from suffice import __version__
from suffice.errors import StudyError
from suffice.plugins import did_you_mean
from suffice.study.asked import Asked, read_dict
from suffice.study.choosing import chosen_images, images_of_choice, images_of_names
from suffice.study.files import hashes
from suffice.study.measurement import Measurement
from suffice.study.models import PlannedModel, chosen_models
from suffice.study.parquet import read_parquet
from suffice.study.store import Store
from suffice.vision import Classifier, Images
from suffice.vision.devices import usable_device
from suffice.vision.identity import weights_hash

FORMAT = "suffice.study/1"
PLAN, IMAGES = "plan.json", "images.parquet"
_KEYS = ("checkpoint", "seeds", "name")  # of a model, that an error about loading it can be about
BLOCKS = {"cuda": 512, "cpu": 16}  # images per shard


@dataclass(frozen=True)
class Shard:
    """A measurement of a block of images with a model: what is done, and written, at once."""

    measurement: str
    model: str
    number: int

    @property
    def name(self) -> str:
        """Its place below the folders of tables, maps and locks."""
        return f"measurement={quote(self.measurement, safe='')}/model={quote(self.model, safe='')}/{self.number:05d}"

    @property
    def table(self) -> str:
        """The file of its rows."""
        return f"tables/{self.name}.parquet"

    @property
    def maps(self) -> str:
        """The file of its maps, where it makes some."""
        return f"maps/{self.name}.safetensors"

    def __str__(self) -> str:
        return f"{self.measurement} of {self.model}, block {self.number}"


@dataclass(frozen=True)
class Plan:
    """What has to be done.

    Attributes:
        asked: What was asked.
        models: The models.
        names: Names of the images, in order.
        block: Images per shard.
        versions: Of what computes.
        files: Hashes of the files that measurements read beside images and the weights of models, by path.
    """

    asked: Asked
    models: tuple[PlannedModel, ...]
    names: tuple[str, ...]
    block: int
    versions: Mapping[str, str]
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def measurements(self) -> dict[str, Measurement]:
        """The measurements by name, those that others read first."""
        return self.asked.measurements

    @property
    def blocks(self) -> int:
        """Number of blocks of images."""
        return -(-len(self.names) // self.block)

    def rows(self, shard: Shard) -> range:
        """Positions of the images of a shard."""
        return range(shard.number * self.block, min((shard.number + 1) * self.block, len(self.names)))

    def model(self, label: str) -> PlannedModel:
        """A model by its label."""
        return next(model for model in self.models if model.label == label)

    def measured(self, measurement: str, model: PlannedModel) -> bool:
        """Whether a measurement is made with a model."""
        patterns = self.asked.measure[measurement].get("models", ["*"])
        wanted = any(fnmatch.fnmatchcase(label, p) for p in patterns for label in (model.label, model.group))
        return wanted and measurement not in (model.misfits or {})

    def shards(self, only: Sequence[str] = ()) -> list[Shard]:
        """All shards, in an order in which they can be done, those of a model together."""
        names = [name for name in self.measurements if not only or name in only]
        return [
            Shard(name, model.label, number)
            for model in self.models
            for name in names
            if self.measured(name, model)
            for number in range(self.blocks)
        ]

    def makers(self, shard: Shard) -> list[str]:
        """Labels of the models whose maps a shard reads: its own, or all that the measurement is made with."""
        if not self.measurements[shard.measurement].crosses:
            return [shard.model]
        return [model.label for model in self.models if self.measured(shard.measurement, model)]

    def inputs(self, shard: Shard) -> list[Shard]:
        """The shards whose maps a shard reads."""
        reads, makers = self.measurements[shard.measurement].reads, self.makers(shard)
        return [replace(shard, measurement=read, model=maker) for read in reads for maker in makers]

    @cached_property
    def images(self) -> Images:
        """The images of the plan; what is no longer there is an image that cannot be read."""
        found = chosen_images(self.asked)
        if tuple(found.names) == self.names:
            return found
        if new := [*(Counter(found.names) - Counter(self.names)).elements()]:
            if self.asked.images.take is None and self.asked.images.every == 1:
                raise StudyError(
                    f"There are {len(new)} images that the study did not begin with, such as {new[0]}. "
                    "Begin another one, in another folder, or take them away."
                )
            found = images_of_choice(self.asked)  # where one is gone, others have taken its place
        return images_of_names(found, self.names)

    @cached_property
    def loaded(self) -> dict[tuple[str, str | None], Classifier]:
        """Models that are loaded already, by label and device; whoever uses one takes it out."""
        return {}

    def as_before(self, before: Plan) -> Plan:
        """This plan with the blocks of an earlier one of the same study, and the models that only that one has."""
        labels = {model.label for model in self.models}
        models = (*self.models, *(model for model in before.models if model.label not in labels))
        files = {**before.files, **self.files}
        return replace(self, block=before.block, models=models, files=files).with_open(vars(self))

    def with_open(self, opened: Mapping[str, Any]) -> Plan:
        """This plan with images and models that are open already, and need not be opened again; copies are without."""
        vars(self).update({name: opened[name] for name in ("images", "loaded") if name in opened})
        return self

    def to_json(self) -> str:
        """The plan as a text."""
        content = {
            "format": FORMAT,
            "asked": self.asked.to_dict(),
            "base": str(self.asked.base.resolve()),
            "block": self.block,
            "images": len(self.names),
            "versions": dict(self.versions),
            "files": dict(self.files),
            "models": [asdict(model) for model in self.models],
        }
        return json.dumps(content, indent=1, ensure_ascii=False)

    def save(self, store: Store) -> None:
        """Write the plan, and the list of images, to a folder."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table({"index": pa.array(range(len(self.names)), pa.int64()), "image": pa.array(list(self.names))})
        buffer = io.BytesIO()
        pq.write_table(table, buffer)
        store.sweep("*")
        store.write(IMAGES, buffer.getvalue())
        store.write(PLAN, self.to_json().encode())

    @classmethod
    def load(cls, store: Store) -> Plan:
        """Read the plan of a folder."""
        content = json.loads(store.read(PLAN))
        if content.get("format") != FORMAT:
            raise StudyError(f"The study in {store} has the format {content.get('format')!r}; expected {FORMAT!r}.")
        names = read_parquet(io.BytesIO(store.read(IMAGES)))["image"].to_pylist()
        asked = read_dict(content["asked"], content["base"])
        models = tuple(PlannedModel(**model) for model in content["models"])
        return cls(asked, models, tuple(names), content["block"], content["versions"], content.get("files", {}))


def make_plan(asked: Asked, device: str | None = None) -> Plan:
    """Look at images and models, and say before anything is measured what cannot be."""
    usable_device(device)  # before anything that could say the same of a model
    images = chosen_images(asked)
    _check_images(images, asked)
    planned: list[PlannedModel] = []
    loaded: dict[tuple[str, str | None], Classifier] = {}
    for place, model in chosen_models(asked):
        loaded.clear()  # two models at once may be too much for the memory; the last one, often the only one, stays
        with asked.places.at(place, *_KEYS):
            loaded[model.label, device] = model.load(asked.base, device)
        planned.append(_checked(model, asked, loaded[model.label, device]))
    kind = "cuda" if torch.cuda.is_available() and device != "cpu" else "cpu"
    block = BLOCKS[kind] if asked.run.block == "auto" else asked.run.block
    read = hashes(path for one in asked.measurements.values() for path in one.files)
    plan = Plan(asked, tuple(planned), tuple(images.names), block, versions_here(), read)
    plan.with_open({"images": images, "loaded": loaded})
    for name in asked.tables:
        if not any(plan.measured(one, model) for one in asked.named(name) for model in planned):
            said = f"No model of the study is measured by {name}; see its key 'models'."
            raise asked.places.error((*asked.places.measurement(name), "models"), said)
    for name in asked.measure:
        for model in planned:
            lacking = [r for r in asked.measurements[name].reads if not plan.measured(r, model)]
            if plan.measured(name, model) and lacking:
                said = f"{name} reads {lacking[0]!r}, which is not made with {model.label}."
                raise asked.places.error(asked.places.about(asked.places.measurement(name), said, "maps"), said)
    known = dict.fromkeys(name for model in planned for name in (model.group, model.label))
    for number, one in enumerate(asked.contrasts):
        for key, name in (("of", one.of), ("against", one.against)):
            if name not in known:
                said = f"There is no model {name!r}.{did_you_mean(name, known)}"
                raise asked.places.error(("contrasts", number, key), said)
    return plan


def versions_here() -> dict[str, str]:
    """Versions of what computes in this process."""
    return {"suffice": __version__, "torch": torch.__version__}


def _check_images(images: Images, asked: Asked) -> None:
    """Raise an error if the images lack what a measurement needs, such as labels."""
    for name, one in asked.measurements.items():
        if (lacking := one.lacks(images)) is not None:
            table = asked.places.measurement(name)
            place = asked.places.about(table, lacking, "target_class", "protocol", "methods")
            raise asked.places.error(place, f"{name} does not fit the images: {lacking}")


def _checked(model: PlannedModel, asked: Asked, net: Classifier) -> PlannedModel:
    """A model with the hash of its weights, its family, and the measurements that it does not fit."""
    misfits = {}
    plan = Plan(asked, (model,), (), 1, {})
    for name, one in asked.measurements.items():
        if not plan.measured(name, model):
            continue
        with asked.places.at(asked.places.measurement(name)):
            reason = one.misfit(net)
        if reason is not None:
            if asked.run.misfits == "raise":
                table = asked.places.measurement(name)
                last, by = name.rpartition("/")[2], getattr(one, "method", None)
                place = asked.places.about(table, f"{reason}, {last!r}", "methods", "method")
                what = name if by in (None, last) else f"{name} ({by})"
                so = "Leave out one of the two."
                if asked.places.name:
                    so = (
                        f"Name the models that it is for in 'models' of [{'.'.join(map(str, table))}], or write "
                        'misfits = "skip" in [run].'
                    )
                raise asked.places.error(place, f"{what} does not fit {model.label}: {reason}. {so}")
            misfits[name] = reason
    # What reads maps that are not made with this model is not made with it either.
    for name, one in asked.measurements.items():
        for read in one.reads:
            if read in misfits:
                misfits.setdefault(name, f"it reads {read}")
    return replace(model, family=net.family, weights=weights_hash(net.module), misfits=misfits)


def changes(before: Plan, after: Plan) -> list[str]:
    """What differs between two plans such that their results do not belong together; what was added does not count."""
    said = []
    old, new = before.asked.to_dict(), after.asked.to_dict()
    for name in old["measure"]:
        if name in new["measure"]:
            said += _different(old["measure"][name], new["measure"][name], f"measure.{name}.")
    said += _different(old["run"], new["run"], "run.", leave_out=("block", "batch"))
    said += _different(dict(before.versions), dict(after.versions), "the version of ")
    now = {model.label: model for model in after.models}
    for model in before.models:
        other = now.get(model.label, model)
        if other.weights != model.weights:
            said.append(f"the weights of {model.label} are others")
        said += _different(model.options or {}, other.options or {}, f"{model.label}: ")
    said += [f"the file {path} is another" for path, was in before.files.items() if after.files.get(path, was) != was]
    kept = ("source", "take", "every", "classes", "root")  # what is chosen shows in the names
    said += _different(old["images"], new["images"], "images.", leave_out=kept)
    if before.names != after.names:
        lost, added = (len(set(a) - set(b)) for a, b in ((before.names, after.names), (after.names, before.names)))
        said.append(f"the images are others ({added} added, {lost} gone)")
    return said


def only_gone(before: Plan, after: Plan) -> bool:
    """Whether nothing differs between two plans but that some images are no longer there."""
    gone, new = Counter(before.names) - Counter(after.names), Counter(after.names) - Counter(before.names)
    return bool(gone) and not new and len(changes(before, after)) == 1


def _different(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str, leave_out: Sequence[str] = ()) -> list[str]:
    return [
        f"{prefix}{key} is {new.get(key)}, was {old.get(key)}"
        for key in dict.fromkeys([*old, *new])
        if key not in leave_out and old.get(key) != new.get(key)
    ]
