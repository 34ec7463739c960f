"""What a method is: a function over a batch of images, with the facts about it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union

from torch import Tensor

from suffice.errors import AnatomyError
from suffice.options import check_options
from suffice.plugins import Registry, keyword_options, matching

if TYPE_CHECKING:
    from suffice.perturb.runner import Work
    from suffice.vision import Classifier, Model

Need = Literal["gradients", "feature maps", "tokens", "attention", "class token", "relevance"]
Lacks = Callable[["Classifier", Mapping[str, Any]], "str | None"]
Records = Callable[["Classifier", Mapping[str, Any]], Mapping[str, Any]]
Questions = Union[int, Callable[["Classifier", Mapping[str, Any]], "float | None"], None]
Function = TypeVar("Function", bound=Callable[..., Tensor])

_registry: Registry[Method] = Registry("method", "suffice.attribution.methods", "suffice.methods")


@dataclass(frozen=True)
class Method:
    """An attribution method and what is known about it.

    Attributes:
        name: By which users call it.
        function: ``function(batch, **options)``, from a :class:`suffice.perturb.Batch` to maps [B, h, w], high =
            important.
        about: What it does, in one line.
        reference: Where it was published.
        needs: What it needs of a model: ``"gradients"``, ``"feature maps"``, ``"tokens"``, ``"attention"``, a
            ``"class token"``, rules by which ``"relevance"`` is propagated through it, or nothing.
        options: Its options with their defaults.
        aliases: Other names.
        incompatible: Looks closer at a model than ``needs`` can say: why the method does not fit it, or None.
        lacks: What the method lacks for a model with some options, such as weights of its own; or None.
        as_it_is: Whether it runs the classifier's own module, or a network of its own, rather than what a runner makes
            of the module: then it is never compiled, nor in another precision.
        cost: How much memory an image takes, in inputs of the model; so many fewer images come in one batch.
        questions: How many inputs an image puts through the model, a number or a function of the classifier and the
            options; None where that shows only on the way.
        records: What records of maps say beside the options, of the classifier and the options, such as which file was
            found and what it decided; or None.
    """

    name: str
    function: Callable[..., Tensor]
    about: str = ""
    reference: str = ""
    needs: tuple[Need, ...] = ()
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    aliases: tuple[str, ...] = ()
    incompatible: Callable[[Classifier], str | None] | None = None
    cost: int = 1
    questions: Questions = None
    lacks: Lacks | None = None
    as_it_is: bool = False
    records: Records | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def work(self) -> Work:
        """What kind of work it is for the runner of a model."""
        if "relevance" in self.needs:
            return "relevance"
        if "gradients" in self.needs:
            return "gradients" if self.needs == ("gradients",) else "gradients inside"
        return "inside" if "attention" in self.needs else "scores"

    @property
    def only_fp32(self) -> bool:
        """Whether it takes no other precision than the model's own."""
        return self.as_it_is or self.work == "relevance"

    def incompatibility(self, net: Classifier, options: Mapping[str, Any] = MappingProxyType({})) -> str | None:
        """Why this method, with these options, does not fit a model; None where it does."""
        if not set(self.needs) <= {"gradients", "relevance"}:
            try:
                anatomy = net.anatomy
            except AnatomyError as error:
                return f"its anatomy is not known ({error})"
            if "tokens" in self.needs and anatomy.token_grid is None:
                return "it has no tokens"
            if "attention" in self.needs and not anatomy.attention:
                return "no attention of it can be read"
            if "class token" in self.needs and not anatomy.read_tokens:
                return "its head reads no class token"
        reason = None if self.incompatible is None else self.incompatible(net)
        return self.lacks(net, {**self.options, **options}) if reason is None and self.lacks is not None else reason

    def check(self, options: Mapping[str, Any]) -> None:
        """Raise an error if an option is unknown, or has a value that it cannot have."""
        check_options(options, self.function, self.name)

    def questions_of(self, net: Classifier, options: Mapping[str, Any]) -> float | None:
        """How many inputs an image puts through the model with these options, where that is known beforehand."""
        return self.questions(net, {**self.options, **options}) if callable(self.questions) else self.questions

    def records_of(self, net: Classifier, options: Mapping[str, Any]) -> dict[str, Any]:
        """What records say of the method beside these options."""
        return {} if self.records is None else dict(self.records(net, {**self.options, **options}))


def method(
    name: str,
    *,
    reference: str,
    needs: tuple[Need, ...] = (),
    aliases: tuple[str, ...] = (),
    incompatible: Callable[[Classifier], str | None] | None = None,
    cost: int = 1,
    questions: Questions = None,
    lacks: Lacks | None = None,
    as_it_is: bool = False,
    records: Records | None = None,
) -> Callable[[Function], Function]:
    """Declare a method; that is all it takes for it to be listed, called by name, offered by commands, and tested.

    The first line of the function's docstring says what it does. Its keyword-only parameters are its options, and their
    annotations say what values these can have; see :mod:`suffice.options`. The rest is as in :class:`Method`. The
    decorator gives the function back as it was.

    Example:
        >>> @method("brightness", reference="nowhere")
        ... def brightness(batch, *, power: float = 1.0):
        ...     \"\"\"Bright pixels.\"\"\"
        ...     return batch.pixels.mean(dim=1) ** power
        >>> find_method("brightness").options["power"]
        1.0
        >>> forget_method("brightness")
    """

    def declare(function: Function) -> Function:
        about = (inspect.getdoc(function) or "").partition("\n")[0]
        options = MappingProxyType(keyword_options(function, name))
        facts = (about, reference, needs, options, aliases, incompatible, cost, questions, lacks, as_it_is, records)
        _registry.add(Method(name, function, *facts), aliases)
        return function

    return declare


def forget_method(name: str) -> None:
    """Take a method off the list."""
    _registry.forget(name)


def all_methods() -> dict[str, Method]:
    """All methods by name: of this package, of others by entry points in the group ``suffice.methods``, and yours.

    Example:
        >>> all_methods()["integrated-gradients"].needs
        ('gradients',)
    """
    return _registry.all()


def list_methods(pattern: str = "*", net: Model | None = None) -> list[str]:
    """List the names of attribution methods that match a shell-style pattern, and fit a classifier where one is given.

    Example:
        >>> list_methods("cgw*")
        ['cgw1', 'cgw2']
    """
    from suffice.vision import as_classifier

    known, asked = all_methods(), None if net is None else as_classifier(net)
    return [n for n in matching(known, pattern) if asked is None or known[n].incompatibility(asked) is None]


def find_method(name: str | Method) -> Method:
    """A method by its name or an alias; an unknown name is an error that suggests close ones."""
    return _registry.find(name)
