"""The checks: explain a trained model, randomize it, explain it again, compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from suffice.attribution import Attribution, Method, attribute, find_method
from suffice.errors import OptionError
from suffice.metrics.sanity.randomize import How, Randomizer
from suffice.metrics.sanity.report import SanityReport, SanityRow
from suffice.metrics.sanity.similarity import SIMILARITIES, constant
from suffice.options import Count, check_options
from suffice.perturb.runner import AnyPrecision, Runner
from suffice.progress import plan, reports
from suffice.vision import Classifier, Images, Model, as_classifier, open_images
from suffice.vision.classifier import Targets, targets_of
from suffice.vision.provenance import provenance
from suffice.vision.stream import OnError, readable

# So many images are explained at every step before their maps are let go of.
BLOCK = 256
TRAINED = "trained"

Methods: TypeAlias = str | Method | Sequence[str | Method]


@reports("Explaining")
def sanity_check(
    net: Model,
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
    precision: AnyPrecision = "fp32",
    runner: Runner | None = None,
    on_error: OnError = "raise",
    progress: bool = False,
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
        precision: Of the models, as in :func:`suffice.attribute`; methods that take fp32 only have it.
        runner: A :class:`suffice.Runner` of the trained model instead of the two. Its choices hold for random weights
            as well, but nothing is compiled: the weights change with every step.
        on_error: ``"raise"`` the error of an image that cannot be read, or ``"skip"`` it and record it.
        progress: Show how many questions were put to the models, how fast, and the time left.
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
    net = as_classifier(net)
    first = Randomizer(net.module, how, seed)
    layers = first.layers[::-1]

    def versions(draw: int) -> Iterator[Classifier]:
        random = Randomizer(net.module, how, seed + draw) if draw else first
        version = net.with_module(random.module)
        for step in range(len(layers) + 1):
            random.randomize(layers[:step] if check == "cascading" else layers[max(step - 1, 0) : step])
            yield version

    steps = (TRAINED, *(layer.name for layer in layers))
    report = partial(SanityReport, check=check, how=how, steps=steps, draws=draws, seed=seed)
    runner = Runner.of(net, runner, batch_size=batch_size, precision=precision)
    return _compare(report, versions, runner, images, methods, targets, options or {}, on_error, on_progress)


@reports("Explaining")
def data_randomization(
    net: Model,
    permuted: Model,
    images: Any,
    methods: Methods,
    *,
    targets: Targets = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    permuted_options: Mapping[str, Mapping[str, Any]] | None = None,
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
    precision: AnyPrecision = "fp32",
    runner: Runner | None = None,
    on_error: OnError = "raise",
    progress: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> SanityReport:
    """Compare maps of a model with those of one that was trained on permuted labels (Adebayo et al. 2018).

    The second has learned its training images by heart and nothing else. A method whose maps are alike for both shows
    the image, not what the model knows. ``suffice train NAME --permute-labels`` trains such a model.

    Arguments are those of :func:`sanity_check`, and ``permuted``, the same network trained on permuted labels. The
    images are ones that neither was trained on; the classes are, for None, what ``net`` predicts.
    ``permuted_options`` are options for the second model alone, such as ``{"eea": {"explainer": FILE}}``: a method that
    has learned from the first one keeps what it learned, unless it is given what was learned from the second.
    """
    trained, other = as_classifier(net), as_classifier(permuted)

    def versions(draw: int) -> Iterator[Classifier]:
        yield trained
        yield other

    steps = (TRAINED, "permuted labels")
    report = partial(SanityReport, check="data", how="trained", steps=steps, draws=1, seed=seed)
    runner = Runner.of(trained, runner, batch_size=batch_size, precision=precision)
    return _compare(
        report, versions, runner, images, methods, targets, options or {}, on_error, on_progress,
        own_options=(other, permuted_options or {}),
    )  # fmt: skip


def _compare(
    report: partial[SanityReport],
    versions: Callable[[int], Iterator[Classifier]],
    runner: Runner,
    images: Any,
    methods: Methods,
    targets: Targets,
    options: Mapping[str, Mapping[str, Any]],
    on_error: OnError,
    on_progress: Callable[[int, int], None] | None,
    own_options: tuple[Classifier | None, Mapping[str, Mapping[str, Any]]] = (None, {}),
) -> SanityReport:
    """Compare the maps of a model with those of its versions in each draw, block by block of the images.

    One of the versions may have options of its own.
    """
    net = runner.net
    steps, draws, seed = (report.keywords[name] for name in ("steps", "draws", "seed"))
    given = open_images(images.detach() if isinstance(images, Tensor) else images)
    chosen = _fitting(methods, net, options)
    targets_of(targets, (), len(given))  # a wrong number of them is said at once
    opened, skipped = readable(given, on_error)
    unread = {skip.index for skip in skipped}
    classes = targets_of(targets, [index for index in range(len(given)) if index not in unread], len(given))
    total = len(chosen) * len(opened) * (1 + draws * len(steps))
    done = 0
    for method in chosen:
        plan(method.name, total // len(chosen), method.questions_of(net, options.get(method.name, {})))

    # By method, which explainer it took: for the trained model, and for the one that has options of its own.
    learned: dict[str, dict[str, Any]] = {}
    learned_of_other: dict[str, dict[str, Any]] = {}

    def explained(version: Classifier, some: Images, method: Method, classes: Targets) -> Attribution:
        nonlocal done
        # What a method has learned of the trained model stays when that is randomized.
        kept = {"any_weights": True} if "any_weights" in method.options else {}
        own = {**kept, **options.get(method.name, {})}
        if version is own_options[0]:
            own |= own_options[1].get(method.name, {})
        asked = runner.alike(version)  # anew each time, as it may keep weights in another precision
        found = attribute(version, some, method, classes, seed=seed, runner=asked, **own)
        if version is own_options[0]:
            learned_of_other[method.name] = _learned(found)
        done += len(some)
        if on_progress is not None:
            on_progress(done, total)
        return found

    gathered = [(method, _Gathered(draws, len(steps))) for method in chosen]
    decided: list[Tensor] = []
    precisions: dict[str, str] = {}
    for start in range(0, len(opened), BLOCK):
        some = opened[start : start + BLOCK]
        wanted = targets_of(classes, range(start, start + len(some)), len(opened))
        for method, own in gathered:
            before = explained(net, some, method, wanted)
            own.begin(before.maps)
            precisions[method.name] = before.about["precision"]
            learned[method.name] = _learned(before)
            if method is chosen[0]:
                decided.append(before.targets)
        for draw in range(draws):
            for step, version in enumerate(versions(draw)):
                for method, own in gathered:
                    own.add(draw, step, explained(version, some, method, decided[-1]).maps)
    settings = {
        "check": report.keywords["check"], "how": report.keywords["how"], "draws": draws, "seed": seed,
        "methods": {
            method.name: {**method.options, **options.get(method.name, {}), **learned[method.name]} for method in chosen
        },
        "permuted_options": {
            method.name: {**own_options[1].get(method.name, {}), **learned_of_other.get(method.name, {})}
            for method in chosen
        },
    }  # fmt: skip
    if not any(own_options[1].values()):
        del settings["permuted_options"]
    return report(
        rows=tuple(own.row(method.name) for method, own in gathered),
        model=net.name,
        images=len(opened),
        targets=torch.cat(decided),
        pixels=net.prepare(opened[:1])[0].cpu(),
        names=opened.names,
        ids=opened.ids,
        skipped=tuple(skipped),
        about=provenance(net, settings, targets, precision=", ".join(dict.fromkeys(precisions.values()))),
    )


def _learned(found: Attribution) -> dict[str, Any]:
    return {key: value for key, value in found.settings.items() if key == "learned"}


class _Gathered:
    """Similarities of one method, as the blocks of images come in: for each block [draws, steps, B] float64."""

    def __init__(self, draws: int, steps: int) -> None:
        self.shape = (draws, steps)
        self.values: dict[str, list[Tensor]] = {similarity: [] for similarity in (*SIMILARITIES, "constant")}
        self.others: dict[str, list[Tensor]] = {similarity: [] for similarity in SIMILARITIES}
        self.example: list[Tensor] = []

    def begin(self, maps: Tensor) -> None:
        """Take a block of maps of the trained model; compare each with the next image's, the last with the first."""
        self.before = maps
        empty = torch.full((*self.shape, len(maps)), torch.nan, dtype=torch.float64, device=maps.device)
        for blocks in self.values.values():
            blocks.append(empty.clone())
        for name, function in SIMILARITIES.items():
            self.others[name].append(function(maps, maps.roll(1, 0)) if len(maps) > 1 else empty[0, 0])

    def add(self, draw: int, step: int, after: Tensor) -> None:
        """Compare maps of the trained model with those of another version."""
        if self.before.shape != after.shape:
            raise OptionError(
                f"Maps of the two models have shapes {list(self.before.shape[1:])} and {list(after.shape[1:])}; "
                "give two models of the same architecture."
            )
        for name, function in SIMILARITIES.items():
            self.values[name][-1][draw, step] = function(self.before, after)
        self.values["constant"][-1][draw, step] = constant(after).double()
        if len(self.example) == step and draw == 0:
            self.example.append(after[0])

    def row(self, method: str) -> SanityRow:
        """All of it."""
        values = {name: torch.cat(blocks, dim=2) for name, blocks in self.values.items()}
        others = {name: torch.cat(blocks) for name, blocks in self.others.items()}
        constants = values.pop("constant").mean(dim=(0, 2))
        return SanityRow(method, values, others, constants, torch.stack(self.example))


def _fitting(methods: Methods, net: Classifier, options: Mapping[str, Mapping[str, Any]]) -> list[Method]:
    listed = [methods] if isinstance(methods, (str, Method)) else list(methods)
    found = [find_method(m) for m in listed]
    if len({m.name for m in found}) < len(found):
        raise OptionError(f"methods={[m.name for m in found]}; expected different ones.")
    fitting = [m for m in found if m.incompatibility(net, options.get(m.name, {})) is None]
    if not fitting:
        names = ", ".join(m.name for m in found) or "no method"
        raise OptionError(f"None of {names} fits {net.name}; suffice.list_methods() lists others.")
    return fitting
