"""What can be measured in a study: a kind of measurement is one class, whose fields are its options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from suffice.attribution import Attribution
from suffice.errors import OptionError
from suffice.options import check_fields, check_options
from suffice.perturb import Runner
from suffice.plugins import provide, provided, resolve, unknown
from suffice.vision import Classifier, Images
from suffice.vision.stream import Skip, stream

if TYPE_CHECKING:
    import pyarrow

GROUP = "suffice.measurements"
Options = Mapping[str, Any]


@dataclass(frozen=True)
class Work:
    """What a measurement is made of: one model and some images.

    Attributes:
        net: The classifier.
        runner: Puts inputs through it.
        images: The images.
        seed: Of everything random.
        maps: From the name of a measurement, and perhaps the label of another model, to its maps of these images.
        makers: Labels of the models whose maps are to be read.
    """

    net: Classifier
    runner: Runner
    images: Images
    seed: int
    maps: Callable[..., Attribution]
    makers: Sequence[str] = ()

    def unreadable(self) -> Sequence[Skip]:
        """The images that cannot be read, with the reason."""
        batches = stream(self.images, self.net.geometry, batch_size=8, on_error="skip")
        for _ in batches:
            pass
        return batches.skipped


@dataclass(frozen=True)
class Found:
    """What a measurement found.

    Attributes:
        table: Rows; ``index`` is the position among the images of the work.
        about: All that has to be known to find the same again.
        skipped: Images that could not be read.
        maps: Maps, where it makes some.
    """

    table: pyarrow.Table
    about: Mapping[str, Any]
    skipped: Sequence[Skip] = ()
    maps: Attribution | None = None


@dataclass(frozen=True)
class Measurement:
    """A kind of measurement; subclasses are frozen dataclasses whose fields are its options.

    Attributes:
        kind: Its name.
        makes_maps: Whether other measurements can read its maps.
        crosses: Whether it reads the maps of all models that it is made with, not just those of its own.
    """

    kind: ClassVar[str]
    makes_maps: ClassVar[bool] = False
    crosses: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_fields(self)

    @classmethod
    def of(cls: type[Self], options: Options) -> Self:
        """The measurement with some options; one that it does not have, or cannot be, is an error."""
        check_options(options, cls, cls.kind)
        lacking = [f.name for f in fields(cls) if f.name not in options and _must_be_given(f)]
        if lacking:
            raise OptionError(f"{cls.kind} needs {lacking[0]!r}.")
        return cls(**options)

    @classmethod
    def several(cls, options: Options, makers: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
        """The options of each measurement that one table of a study stands for, by what is added to its name.

        Most stand for one, to whose name nothing is added.

        Args:
            options: As the study has them.
            makers: Options of the measurements that make maps, by name.
        """
        return {"": options}

    @property
    def facts(self) -> dict[str, str]:
        """Columns that are the same in all rows, also in those of what failed."""
        return {}

    @property
    def reads(self) -> tuple[str, ...]:
        """The measurements whose maps it reads."""
        return ()

    @property
    def files(self) -> tuple[str, ...]:
        """Files that it reads beside images and the weights of models, or folders with some."""
        return ()

    def misfit(self, net: Classifier) -> str | None:
        """Why it cannot be made with a model; None where it can."""
        return None

    def lacks(self, images: Images) -> str | None:
        """What images lack for it, such as labels, as far as shows without decoding any; None where nothing does."""
        return None

    def questions(self, net: Classifier) -> float | None:
        """Inputs that an image puts through the model; None where that is not known beforehand."""
        return None

    def for_any_weights(self: Self) -> Self:
        """The same such that it asks enough, also of a model with random weights, to see how fast that is."""
        return self

    def measure(self, work: Work) -> Found:
        """Measure."""
        raise NotImplementedError


Self = TypeVar("Self", bound=Measurement)


def _must_be_given(one: Any) -> bool:
    return one.default is MISSING and one.default_factory is MISSING


def below(name: str, names: Iterable[str]) -> list[str]:
    """A name and those that have it before a slash, of some names.

    Example:
        >>> below("maps", ["maps/rise", "maps/tis", "mapsack"])
        ['maps/rise', 'maps/tis']
    """
    return [one for one in names if one == name or one.startswith(f"{name}/")]


def register_kind(name: str, kind: type[Measurement] | str) -> None:
    """Make a kind of measurement known; packages do it by an entry point of the group ``suffice.measurements``.

    Args:
        name: What studies call it.
        kind: The class, or ``"package.module:NAME"`` of one to be imported when first needed.
    """
    provide(GROUP, name, kind)


def find_kind(name: str) -> type[Measurement]:
    """A kind of measurement by its name."""
    if name not in provided(GROUP):
        raise unknown("kind of measurement", name, sorted(provided(GROUP)))
    found: type[Measurement] = resolve(GROUP, name)
    return found


for _name, _where in {
    "predictions": "predictions:Predictions",
    "evidence": "evidence:EvidenceSearch",
    "attribution": "attribution:Maps",
    "metrics": "metrics:Metrics",
    "sanity": "sanity:Sanity",
}.items():
    register_kind(_name, f"suffice.study.kinds.{_where}")
