"""The checks: explain a trained model, randomize it, explain it again, compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from suffice.attribution import Attribution, Method, attribute, find_method
from suffice.errors import OptionError
from suffice.metrics.sanity.randomize import How, Randomizer
from suffice.metrics.sanity.report import Check, SanityReport, SanityRow
from suffice.metrics.sanity.similarity import SIMILARITIES, constant
from suffice.options import Count, check_options
from suffice.vision import Classifier, Images, open_images
from suffice.vision.classifier import Targets, targets_of

# So many images are explained at every step before their maps are let go of.
BLOCK = 256
TRAINED = "trained"

Methods = str | Method | Sequence[str | Method]
Versions = Callable[[int], Iterator[Classifier]]


def sanity_check(
    net: Classifier,
    images: Any,
    methods: Methods,
    *,
    check: Literal["cascading", "independent"] = "cascading",
    how: How = "reinitialize",
    targets: Targets = None,
    draws: Count = 1,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
    on_progress: Callable[[int, int], None] | None = None,
) -> SanityReport:
    """Randomize the weights of a model layer by layer, and see whether its maps change (Adebayo et al. 2018).

    Maps are compared at their own resolution. Every step explains the same classes with the same seed, so that nothing
    but the weights differs; a method that ignores the model gets similarity 1. The model itself is not touched.

    Args:
        net: The trained classifier.
        images: Anything that :func:`suffice.open_images` takes.
        methods: One method or several; those that do not fit the model are left out.
        check: ``"cascading"`` randomizes from the output down to the input, keeping what is randomized already;
            ``"independent"`` randomizes one layer at a time.
        how: ``"reinitialize"`` or ``"permute"``; see :class:`suffice.metrics.sanity.Randomizer`.
        targets: The classes to explain: None (what the trained model predicts), an index or label for all, or one per
            image.
        draws: How many times random weights are drawn; similarities are means over draws.
        options: Of methods, by name.
        seed: Seed of the random weights and of everything random in methods.
        batch_size: Inputs per forward.
        on_progress: Called with (maps made, maps in all).

    Returns:
        Similarities for each method, image and step, verdicts, tables and figures.

    Raises:
        OptionError: Something does not fit; the message says what does.

    Example:
        >>> from torch import nn
        >>> from suffice.attribution import from_function
        >>> module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
        >>> net = Classifier(module, size=16, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))
        >>> bright = from_function(lambda model, inputs, targets: inputs.mean(dim=1), "bright")
        >>> found = sanity_check(net, torch.rand(4, 3, 16, 16), bright)
        >>> found.steps, found.row("bright").means()
        (('trained', '3', '0'), tensor([1., 1., 1.], dtype=torch.float64))
        >>> str(found.verdict("bright"))
        'does not depend on the weights'
    """
    if check == "data":
        raise OptionError("check='data' compares two models; write data_randomization(net, permuted, images, methods).")
    check_options({"check": check, "how": how, "draws": draws}, sanity_check)
    first = Randomizer(net.module, how, seed)
    layers = first.layers[::-1]

    def versions(draw: int) -> Iterator[Classifier]:
        random = Randomizer(net.module, how, seed + draw) if draw else first
        version = net.with_module(random.module)
        for step in range(len(layers) + 1):
            random.randomize(layers[:step] if check == "cascading" else layers[max(step - 1, 0) : step])
            yield version

    steps = (TRAINED, *(layer.name for layer in layers))
    comparison = _Comparison(check, how, steps, versions, draws, options or {}, seed, batch_size, on_progress)
    return comparison(net, images, methods, targets)


def data_randomization(
    net: Classifier,
    permuted: Classifier,
    images: Any,
    methods: Methods,
    *,
    targets: Targets = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
    on_progress: Callable[[int, int], None] | None = None,
) -> SanityReport:
    """Compare maps of a model with those of one that was trained on permuted labels (Adebayo et al. 2018).

    The second has learned its training images by heart and nothing else. A method whose maps are alike for both shows
    the image, not what the model knows. ``suffice train NAME --permute-labels`` trains such a model.

    Args:
        net: The classifier, trained on true labels.
        permuted: The same network, trained on permuted labels.
        images: Anything that :func:`suffice.open_images` takes; images that neither was trained on.
        methods: As for :func:`sanity_check`, as are the other arguments.
        targets: The classes to explain in both; None: what ``net`` predicts.
        options: Of methods, by name.
        seed: Seed of everything random.
        batch_size: Inputs per forward.
        on_progress: Called with (maps made, maps in all).

    Returns:
        Similarities for each method and image, and verdicts.
    """

    def versions(draw: int) -> Iterator[Classifier]:
        yield net
        yield permuted

    steps = (TRAINED, "permuted labels")
    comparison = _Comparison("data", "trained", steps, versions, 1, options or {}, seed, batch_size, on_progress)
    return comparison(net, images, methods, targets)


@dataclass(frozen=True)
class _Comparison:
    """Compares the maps of a model with those of other versions of it, block by block of the images.

    Attributes:
        check: Name of the check.
        how: How versions were made.
        steps: Name of each version.
        versions: From the number of a draw to the versions, one after the other.
        draws: How many draws there are.
        options: Of methods, by name.
        seed: Seed of everything random in methods.
        batch_size: Inputs per forward.
        on_progress: Called with (maps made, maps in all).
    """

    check: Check
    how: str
    steps: tuple[str, ...]
    versions: Versions
    draws: int
    options: Mapping[str, Mapping[str, Any]]
    seed: int
    batch_size: int | Literal["auto"]
    on_progress: Callable[[int, int], None] | None

    def __call__(self, net: Classifier, images: Any, methods: Methods, targets: Targets) -> SanityReport:
        opened = open_images(images.detach() if isinstance(images, Tensor) else images)
        chosen = _fitting(methods, net)
        targets_of(targets, (), len(opened))  # a wrong number of them is said at once
        total = len(chosen) * len(opened) * (1 + self.draws * len(self.steps))
        done = 0

        def explained(version: Classifier, some: Images, method: Method, classes: Targets) -> Attribution:
            nonlocal done
            own = self.options.get(method.name, {})
            found = attribute(version, some, method, classes, seed=self.seed, batch_size=self.batch_size, **own)
            done += len(some)
            if self.on_progress is not None:
                self.on_progress(done, total)
            return found

        gathered = {method.name: _Gathered(self.draws, len(self.steps)) for method in chosen}
        decided: list[Tensor] = []
        for start in range(0, len(opened), BLOCK):
            some = opened[start : start + BLOCK]
            wanted = targets_of(targets, range(start, start + len(some)), len(opened))
            before = {method.name: explained(net, some, method, wanted) for method in chosen}
            classes = before[chosen[0].name].targets
            decided.append(classes)
            for method in chosen:
                gathered[method.name].trained(before[method.name].maps)
            for draw in range(self.draws):
                for step, version in enumerate(self.versions(draw)):
                    for method in chosen:
                        maps = explained(version, some, method, classes).maps
                        gathered[method.name].add(draw, step, before[method.name].maps, maps)
        return SanityReport(
            check=self.check,
            how=self.how,
            steps=self.steps,
            rows=tuple(gathered[method.name].row(method.name) for method in chosen),
            model=net.name,
            images=len(opened),
            draws=self.draws,
            seed=self.seed,
            targets=torch.cat(decided),
            pixels=net.prepare(opened[:1])[0].cpu(),
        )


class _Gathered:
    """Similarities of one method, as the blocks of images come in."""

    def __init__(self, draws: int, steps: int) -> None:
        self.values = {s: [[list[Tensor]() for _ in range(steps)] for _ in range(draws)] for s in SIMILARITIES}
        self.others: dict[str, list[Tensor]] = {s: [] for s in SIMILARITIES}
        self.constant = [list[Tensor]() for _ in range(steps)]
        self.example: list[Tensor] = []

    def trained(self, maps: Tensor) -> None:
        """Compare maps of the trained model with those of the next image, the last with the first."""
        for similarity, function in SIMILARITIES.items():
            alone = torch.full((len(maps),), torch.nan, dtype=torch.float64)
            self.others[similarity].append(function(maps, maps.roll(1, 0)) if len(maps) > 1 else alone)

    def add(self, draw: int, step: int, before: Tensor, after: Tensor) -> None:
        """Compare maps of the trained model with those of another version."""
        if before.shape != after.shape:
            raise OptionError(
                f"Maps of the two models have shapes {list(before.shape[1:])} and {list(after.shape[1:])}; "
                "give two models of the same architecture."
            )
        for similarity, function in SIMILARITIES.items():
            self.values[similarity][draw][step].append(function(before, after))
        self.constant[step].append(constant(after).double())
        if len(self.example) == step and draw == 0:
            self.example.append(after[0])

    def row(self, method: str) -> SanityRow:
        """All of it."""
        return SanityRow(
            method,
            {
                s: torch.stack([torch.stack([torch.cat(v) for v in d]) for d in draws])
                for s, draws in self.values.items()
            },
            {similarity: torch.cat(values) for similarity, values in self.others.items()},
            torch.stack([torch.cat(values).mean() for values in self.constant]),
            torch.stack(self.example),
        )


def _fitting(methods: Methods, net: Classifier) -> list[Method]:
    listed = [methods] if isinstance(methods, (str, Method)) else list(methods)
    found = [find_method(m) for m in listed]
    if len({m.name for m in found}) < len(found):
        raise OptionError(f"methods={[m.name for m in found]}; expected different ones.")
    fitting = [m for m in found if m.incompatibility(net) is None]
    if not fitting:
        names = ", ".join(m.name for m in found) or "no method"
        raise OptionError(f"None of {names} fits {net.name}; suffice.list_methods() lists others.")
    return fitting
