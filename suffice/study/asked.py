"""What a study asks for: images, models and measurements, from a TOML or JSON file or from Python."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from suffice.errors import OptionError, StudyError, SufficeError
from suffice.options import check_options
from suffice.plugins import did_you_mean
from suffice.study.choices import Contrast, HowToRun, ImageChoice, ModelChoice
from suffice.study.measurement import Measurement, below, find_kind
from suffice.study.places import Place, Places, texts_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Chosen = TypeVar("Chosen")
NAME = re.compile(r"\w[\w.+-]*(/\w[\w.+-]*)?")
TAKEN = ("models", "failures")  # tables that export adds


@dataclass(frozen=True)
class Asked:
    """What a study asks for.

    Attributes:
        name: Of the study.
        images: Which images.
        models: Which models.
        measure: Which measurements, by name; each a mapping with ``kind``, perhaps ``models`` (patterns of the labels
            of those it is for), and the options of the kind. Those that one table of the file stands for, such as one
            with several methods, have its name before a slash: ``maps/rise``.
        run: What holds for all of them.
        contrasts: The comparisons that it was made for.
        base: Folder that paths are relative to.
        places: Where all this is written, for errors.
    """

    name: str
    images: ImageChoice
    models: tuple[ModelChoice, ...]
    measure: Mapping[str, Mapping[str, Any]]
    run: HowToRun = field(default_factory=HowToRun)
    contrasts: tuple[Contrast, ...] = ()
    base: Path = Path()
    places: Places = field(default=Places(), compare=False, repr=False)

    @cached_property
    def measurements(self) -> dict[str, Measurement]:
        """The measurements by name, checked, those that others read first."""
        return _in_order({name: measurement_of(name, one) for name, one in self.measure.items()})

    @property
    def tables(self) -> list[str]:
        """Names of the tables of results: measurements before the slash have one together."""
        return list(dict.fromkeys(name.partition("/")[0] for name in self.measure))

    def named(self, name: str) -> list[str]:
        """The measurements that a name stands for: its own, and those that have it before a slash."""
        if found := below(name, self.measure):
            return found
        known = dict.fromkeys([*self.tables, *self.measure])
        raise StudyError(f"There is no measurement {name!r}.{did_you_mean(name, known) or _there_are(self.tables)}")

    def to_dict(self) -> dict[str, Any]:
        """What was asked, as plain values; without the folder and the places."""
        plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self), default=str))
        del plain["base"], plain["places"]
        return plain


def read_file(path: str | Path) -> tuple[Asked, str]:
    """What the file of a study asks for, checked, and its text.

    Raises:
        StudyError: With the line of the file.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise StudyError(f"{file} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise StudyError(f"{file} cannot be read: {error}") from error
    read: Callable[[str], Any] = json.loads if file.suffix == ".json" else tomllib.loads
    try:
        content = read(text)
    except ValueError as error:  # both parsers' errors are
        raise StudyError(f"{file}: {error}") from error
    places = Places(str(file), "" if file.suffix == ".json" else text, content)
    return dataclasses.replace(_Reader(places).asked(content, file.parent), places=places), text


def read_dict(content: Mapping[str, Any], base: str | Path = ".") -> Asked:
    """The same from a mapping with the same keys."""
    return _Reader(Places("The study", "", content)).asked(content, Path(base))


def measurement_of(name: str, options: Mapping[str, Any]) -> Measurement:
    """A measurement from its options."""
    given = {key: value for key, value in options.items() if key not in ("kind", "models")}
    return find_kind(options["kind"]).of(given)


class _Reader:
    """Reads what is asked, and says where something is wrong."""

    def __init__(self, places: Places) -> None:
        self.error, self.placed = places.error, places.at
        self.owners: dict[str, str] = {}  # from the measurements to the tables that stand for them

    def asked(self, content: Any, base: Path) -> Asked:
        if not isinstance(content, Mapping):
            raise self.error((), "expected a table with name, images, models and measure")
        self.only(content, (), ("name", "images", "models", "measure", "run", "contrasts"))
        for key in ("images", "models", "measure"):
            if key not in content:
                raise self.error((), f"there is no {key!r}")
        name = content.get("name", "study")
        if not isinstance(name, str) or not name:
            raise self.error(("name",), f"the name is {name!r}; expected a text")
        images = content["images"]
        if not isinstance(images, Mapping):
            images = {"source": images}
        asked = Asked(
            name,
            self.made(ImageChoice, images, ("images",)),
            self._models(content["models"]),
            self._measure(content["measure"]),
            self.made(HowToRun, content.get("run", {}), ("run",)),
            self._contrasts(content.get("contrasts", [])),
            base,
        )
        self._check_reads(asked)
        return asked

    def _models(self, given: Any) -> tuple[ModelChoice, ...]:
        entries = [given] if isinstance(given, (str, Mapping)) else given
        if not isinstance(entries, Sequence) or not entries:
            raise self.error(("models",), "expected one or more models")
        return tuple(
            self.made(ModelChoice, {"name": one} if isinstance(one, str) else one, ("models", number))
            for number, one in enumerate(entries)
        )

    def _contrasts(self, given: Any) -> tuple[Contrast, ...]:
        if not isinstance(given, Sequence) or isinstance(given, str):
            raise self.error(("contrasts",), "expected a list of tables with 'of' and 'against'")
        return tuple(self.made(Contrast, one, ("contrasts", number)) for number, one in enumerate(given))

    def _measure(self, given: Any) -> dict[str, Mapping[str, Any]]:
        if not isinstance(given, Mapping) or not given:
            raise self.error(("measure",), "expected one or more measurements, such as [measure.evidence]")
        for name, options in given.items():
            self._check_table(name, options)
        made: dict[str, dict[str, Any]] = {}
        for name in sorted(given, key=lambda name: not find_kind(given[name]["kind"]).makes_maps):
            options = given[name]
            with self.placed(("measure", name)):
                for part, own in find_kind(options["kind"]).several(options, made).items():
                    whole = f"{name}/{part}" if part else name
                    if not NAME.fullmatch(whole):
                        raise OptionError(f"the label {part!r} can have letters, digits and .+-_ only.")
                    if self.owners.setdefault(whole, name) != name:
                        raise OptionError(f"There are two measurements {whole!r}.")
                    measurement_of(whole, own)
                    made[whole] = dict(own)
        return {whole: made[whole] for name in given for whole in made if self.owners[whole] == name}

    def _check_table(self, name: str, options: Any) -> None:
        """What holds for the table of any measurement."""
        path = ("measure", name)
        if not NAME.fullmatch(name):
            raise self.error(path, f"the name {name!r} can have letters, digits and .+-_ only")
        if name in TAKEN:
            raise self.error(path, f"the name {name!r} is that of a table that every study has")
        if not isinstance(options, Mapping):
            raise self.error(path, f"expected a table [measure.{name}] with kind and options")
        if not isinstance(options.get("kind"), str):
            raise self.error(path, 'there is no kind, such as kind = "evidence"')
        with self.placed(path):
            find_kind(options["kind"])
        models = options.get("models", [])
        if not isinstance(models, list) or not all(isinstance(one, str) for one in models):
            raise self.error((*path, "models"), "expected a list of names or patterns")

    def _check_reads(self, asked: Asked) -> None:
        """What reads maps must find some."""
        for name, one in asked.measurements.items():
            for read in one.reads:
                key = next(key for key, value in asked.measure[name].items() if read in texts_of(value))
                path = ("measure", self.owners[name], key)
                if read not in asked.measure:
                    hint = did_you_mean(read, asked.measure) or _there_are(asked.tables)
                    raise self.error(path, f"there is no measurement {read!r}.{hint}")
                if not asked.measurements[read].makes_maps:
                    raise self.error(path, f"{read!r} makes no maps")

    def made(self, kind: Callable[..., Chosen], given: Any, path: Place) -> Chosen:
        """A part of the study from its table."""
        if not isinstance(given, Mapping):
            raise self.error(path, f"expected a table, not {given!r}")
        known = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
        self.only(given, path, known)
        for option, value in given.items():
            try:
                check_options({option: value}, kind)
            except SufficeError as error:
                raise self.error((*path, option), str(error)) from error
        try:
            with self.placed(path):
                return kind(**given)
        except TypeError as error:
            lacking = re.findall(r"'(\w+)'", str(error))
            raise self.error(path, f"there is no {lacking[0]!r}" if lacking else str(error)) from error

    def only(self, given: Mapping[str, Any], path: Place, known: Sequence[str]) -> None:
        """Keys that mean nothing are an error."""
        for key in given:
            if key not in known:
                hint = did_you_mean(str(key), known) or f" There are {', '.join(known)}."
                raise self.error((*path, key), f"there is no key {key!r} here.{hint}")


def _there_are(names: Iterable[str]) -> str:
    return f" There are {', '.join(names)}."


def _in_order(measurements: Mapping[str, Measurement]) -> dict[str, Measurement]:
    """Measurements such that each comes after those that it reads, which read none themselves."""
    return dict(sorted(measurements.items(), key=lambda item: bool(item[1].reads)))
