"""How true maps are, by metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeVar

from suffice.errors import OptionError, UnreadableImage
from suffice.metrics import find_metric, find_protocol, measure
from suffice.metrics.choices import choices_of, questions_of
from suffice.metrics.protocols import TargetClass
from suffice.study.kinds.classes import lacking_labels
from suffice.study.measurement import Found, Measurement, Options, Work, below
from suffice.vision import Classifier, Images


@dataclass(frozen=True)
class ScoresOfMaps(Measurement):
    """Scores of the maps of another measurement; further options are those of the metrics.

    Where ``maps`` names a table with several methods, or is a list, it stands for several measurements, one for each.

    Attributes:
        maps: The measurement that makes the maps.
        metrics: Names of metrics; ``"insertion/gray"`` is the part of insertion over that baseline, where a protocol
            has several.
        protocol: Every choice that is not made here.
        label: What tables call the method of the maps.
        options: Of the metrics; each goes to those that have it.
    """

    maps: str
    metrics: Sequence[str] = ("insertion", "deletion")
    protocol: str = "default"
    label: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls: type[Self], options: Options) -> Self:
        """From the names of maps and metrics, with the options of the metrics beside them."""
        if not isinstance(options.get("maps"), str):
            raise OptionError(f"{cls.kind} needs 'maps', the name of the measurement that makes them, or several.")
        own = {f.name: options[f.name] for f in fields(cls) if f.name in options and f.name != "options"}
        if isinstance(own.get("metrics"), str):
            own["metrics"] = (own["metrics"],)
        further = {name: value for name, value in options.items() if name not in own}
        made = cls(**own, options=further)
        for name in made.measured:
            find_metric(name)
        made.choices()  # what cannot be is said here
        return made

    @classmethod
    def several(cls, options: Options, makers: Mapping[str, Options]) -> dict[str, Options]:
        """One measurement for each of the maps, by the label of their method, with the models that have these maps."""
        given: Any = options.get("maps")
        names = given if isinstance(given, list) else [given]
        if not names or not all(isinstance(name, str) for name in names):
            return {"": options}
        found: dict[str, Options] = {}
        for maps in [maps for name in names for maps in below(name, makers) or [name]]:
            maker = makers.get(maps, {})
            label = options.get("label") or maker.get("label") or maker.get("method") or maps
            models = {"models": maker["models"]} if "models" in maker else {}
            part = "" if maps == given else maps.partition("/")[2] or maps
            if part in found:
                raise OptionError(f"There are two {part!r} among the maps; give each a label of its own.")
            found[part] = {**models, **options, "maps": maps, "label": label}
        return found

    @property
    def facts(self) -> dict[str, str]:
        """The method, in all rows."""
        return {"method": self.label}

    @property
    def measured(self) -> list[str]:
        """The metrics, without the names of parts."""
        return list(dict.fromkeys(name.partition("/")[0] for name in self.metrics))

    def choices(self) -> dict[str, dict[str, Any]]:
        """Every choice for each metric."""
        return choices_of(self.measured, find_protocol(self.protocol), self.options)

    @property
    def reads(self) -> tuple[str, ...]:
        """The measurement whose maps it reads."""
        return (self.maps,)

    def lacks(self, images: Images) -> str | None:
        """Why the metrics, or the labels that they ask about, cannot be had of images; None where they can."""
        needing = [name for name in self.measured if "boxes" in find_metric(name).needs]
        if needing and not any(picture.boxes for picture in images):
            return (
                f"{needing[0]!r} looks at boxes of objects, and no image has any; write boxes=, "
                "a list (.csv or .jsonl) with columns path and boxes"
            )
        # Whose class is asked about, each kind of scores has choices of its own for.
        rule = getattr(self, "target_class", None) or find_protocol(self.protocol).target_class
        return lacking_labels(images) if rule == "label" else None

    def questions(self, net: Classifier) -> float | None:
        """Inputs that a map of an image puts through the model."""
        return questions_of(net, self.measured, self.choices())


Self = TypeVar("Self", bound=ScoresOfMaps)


@dataclass(frozen=True)
class Metrics(ScoresOfMaps):
    """Scores of a model's own maps.

    Attributes:
        target_class: The class asked about: the one that was ``"explained"``, the ``"predicted"`` one or the
            ``"label"``; None: as the protocol has it.
    """

    kind: ClassVar[str] = "metrics"
    target_class: TargetClass | None = None

    def measure(self, work: Work) -> Found:
        """Score the maps."""
        import pyarrow as pa

        maps = work.maps(self.maps)
        skipped = {skip.index for skip in maps.skipped}
        index = [i for i in range(len(work.images)) if i not in skipped]
        if not index:
            raise UnreadableImage("None of the images could be read.")
        found = measure(
            work.net, work.images[index], maps, self.measured, self.protocol, target_class=self.target_class,
            seed=work.seed, runner=work.runner, **self.options,
        )  # fmt: skip
        table = found.to_arrow().replace_schema_metadata()
        # Where no model was asked, the class is the one that was explained.
        targets = (maps.targets if found.targets is None else found.targets).tolist()
        for name, values in (("index", index), ("target", targets)):
            table = table.set_column(table.schema.get_field_index(name), name, pa.array(values, pa.int64()))
        labels = [work.net.labels[target] if work.net.labels else str(target) for target in targets]
        return Found(table.append_column("label", pa.array(labels, pa.string())), found.about, maps.skipped)
