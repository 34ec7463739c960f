"""What figures there are: each a function from a study, or from a model and images, to a drawing.

A figure declares itself with :func:`figure`; packages outside do the same, in a module that an entry point of the group
``suffice.figures`` names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, Union

from suffice.errors import OptionError, StudyError
from suffice.options import check_options
from suffice.plugins import Registry, matching
from suffice.report.figures.drawing import Drawing

if TYPE_CHECKING:
    from suffice.study import Study
    from suffice.vision import Classifier

Drawn = Union[Drawing, list[Drawing]]
Function = TypeVar("Function", bound=Callable[..., Drawn])
MODEL = "model"  # what a figure needs that is made of models and images
FILE = "file"  # what one needs that is made of files of a command

FIGURES: Registry[Figure] = Registry("figure", "suffice.report.figures", "suffice.figures")


@dataclass(frozen=True)
class Figure:
    """A figure, and what is known about it.

    Attributes:
        name: By which users call it.
        title: What it shows.
        papers: Which figures and tables of which papers it corresponds to.
        needs: Kinds of measurement that a study must have for it; ``("model",)`` for one that is made of models and
            images, and ``("file",)`` for one of the files of a command, both without a study.
        draw: From a study, or from models and images, to a drawing or several.
        order: Its place among the figures of a report.
        asks: Whether models are asked once more to make it; such figures are made when they are asked for.
        images: How many images it looks at, of those that it is made of; None where its option ``count`` says so, or
            where it looks at all.
        maker: Whether just the first of its models makes maps.
        options: Its options with their defaults.
    """

    name: str
    title: str
    papers: tuple[str, ...]
    needs: tuple[str, ...]
    draw: Callable[..., Drawn]
    order: int = 1000
    asks: bool = False
    images: int | None = None
    maker: bool = False
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def function(self) -> Callable[..., Drawn]:
        """What makes it."""
        return self.draw

    @property
    def of_file(self) -> bool:
        """Whether it is made of files of a command instead of a study."""
        return self.needs == (FILE,)

    @property
    def of_model(self) -> bool:
        """Whether it is made of models and images instead of a study."""
        return self.needs == (MODEL,)

    def fitting(self, nets: Sequence[Classifier], options: Mapping[str, Any]) -> dict[str, list[str]]:
        """The methods that it takes the maps of, and that do not fit, of each model; none where it takes no method."""
        from suffice.attribution import find_method

        named = str({**self.options, **options}.get("method", ""))
        methods = [find_method(name.strip()) for name in named.split(",") if name.strip()]
        makers = nets[:1] if self.maker else nets
        return {net.name: [one.name for one in methods if one.incompatibility(net) is not None] for net in makers}

    def drawings(self, of: Any, *more: Any, **options: Any) -> list[Drawing]:
        """Make it; options that it does not have, or that cannot be, are an error."""
        check_options(options, self.draw, self.name)
        made = self.draw(of, *more, **options)
        return [made] if isinstance(made, Drawing) else list(made)


def figure(
    name: str,
    title: str,
    *,
    needs: str | Sequence[str],
    papers: Sequence[str] = (),
    order: int = 1000,
    asks: bool = False,
    images: int | None = None,
    maker: bool = False,
) -> Callable[[Function], Function]:
    """Declare a figure: that is all it takes for it to be listed, drawn by the command, and shown in reports.

    The function takes a study (or, where ``needs="model"``, models and images), and has its options as keyword-only
    parameters with defaults. The rest is as in :class:`Figure`.

    Example:
        >>> @figure("rows", "How many rows there are", needs="predictions")
        ... def rows(study):
        ...     count = study.table("said").num_rows
        ...     return Drawing("rows", "Rows", "", f"{count} rows.", svg="<svg/>")
        >>> find_figure("rows").needs
        ('predictions',)
        >>> FIGURES.forget("rows")
    """

    def declare(function: Function) -> Function:
        kinds = (needs,) if isinstance(needs, str) else tuple(needs)
        options = MappingProxyType(_options(function, name))
        asked = asks or kinds == (MODEL,)
        FIGURES.add(Figure(name, title, tuple(papers), kinds, function, order, asked, images, maker, options))
        return function

    return declare


def list_figures(pattern: str = "*") -> list[str]:
    """Names of figures that match a shell-style pattern, in the order of reports.

    Example:
        >>> "mse-sizes" in list_figures("mse-*")
        True
    """
    ordered = sorted(FIGURES.all().values(), key=lambda one: one.order)
    return matching([one.name for one in ordered], pattern)


def find_figure(name: str) -> Figure:
    """A figure by its name; an unknown name is an error that suggests close ones."""
    return FIGURES.find(name)


def figures_of(study: Study, *, asks: bool = False) -> list[Drawing]:
    """All figures that a study has the data for, in the order of reports.

    Args:
        study: That was run.
        asks: Also those for which its models are asked once more.
    """
    return list(_figures_of(study, asks))


def _figures_of(study: Study, asks: bool) -> Iterator[Drawing]:
    kinds = {one.kind for one in study.plan.measurements.values()}
    for name in list_figures():
        one = find_figure(name)
        if not set(one.needs) <= kinds or (one.asks and not asks):
            continue
        try:
            yield from one.drawings(study)
        except (OptionError, StudyError):  # too few models, or images, or nothing is done yet: there is nothing to draw
            continue


def _options(function: Callable[..., Drawn], name: str) -> dict[str, Any]:
    """Options of a figure; those made of models and images take two things before them."""
    import inspect

    keywords = [p for p in inspect.signature(function).parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY]
    if any(one.default is inspect.Parameter.empty for one in keywords):
        raise OptionError(f"The options of {name} must have defaults.")
    return {one.name: one.default for one in keywords}
