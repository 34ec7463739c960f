"""From a classifier, images and the name of a method to maps."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Annotated, Any, Literal, overload

import torch
from torch import Tensor, nn

from suffice.attribution.attribution import Attribution
from suffice.attribution.method import Method, find_method, list_methods
from suffice.draw import small_picture
from suffice.errors import OptionError, SufficeWarning, UnreadableImage
from suffice.options import Range, check_options
from suffice.perturb.batch import Batch
from suffice.perturb.runner import AnyPrecision, Runner
from suffice.plugins import check_arguments
from suffice.progress import counted, plan, reports
from suffice.vision import Classifier, Model, as_classifier, open_images
from suffice.vision.anatomy.preserve import preserved
from suffice.vision.anatomy.trace import name_of
from suffice.vision.classifier import Targets, targets_of
from suffice.vision.provenance import provenance
from suffice.vision.stream import OnError, stream

Seed = Annotated[int, Range(-(2**63), 2**63 - 1)]  # what tensors hold


@overload
def attribute(
    net: Model, images: Any, method: str | Method = ..., targets: Targets = ..., **options: Any
) -> Attribution: ...


@overload
def attribute(
    net: Model, images: Any, method: Sequence[str | Method], targets: Targets = ..., **options: Any
) -> dict[str, Attribution]: ...


@reports("Explaining")
def attribute(
    net: Model,
    images: Any,
    method: str | Method | Sequence[str | Method] = "grad-cam",
    targets: Targets = None,
    *,
    seed: Seed = 0,
    batch_size: int | Literal["auto"] = "auto",
    precision: AnyPrecision = "fp32",
    compile: bool = False,
    runner: Runner | None = None,
    on_error: OnError = "raise",
    progress: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Attribution | dict[str, Attribution]:
    """Compute attribution maps of images by a named method.

    Args:
        net: The classifier, or a module of timm, which knows its preprocessing.
        images: Anything that :func:`suffice.open_images` takes.
        method: Name of the method; :func:`suffice.list_methods` lists them. Or a list of methods.
        targets: The classes to explain: None (the predicted one), an index or label for all, or one per image.
        seed: Seed of everything random; each image's own randomness depends on it and on the image alone.
        batch_size: Inputs per forward, which bounds memory; halved when memory runs out.
        precision: Of the model: ``"fp32"``, ``"tf32"``, ``"fp16"``, ``"bf16"`` or ``"auto"``, see
            :class:`suffice.Runner`. Methods that propagate relevance take fp32 only. Gradients of small scores can be
            too small for fp16.
        compile: Compile the model, for methods that do not look inside it; worth it for long work on a GPU.
        runner: A :class:`suffice.Runner` of this model instead of the three, so that it is compiled or converted once
            for many calls; it chooses the variant that the method needs.
        on_error: ``"raise"`` the error of an image that cannot be read, or ``"skip"`` it and record it.
        progress: Show how many questions were put to the model, how fast, and the time left.
        on_progress: Called with (images done, images in all).
        **options: Options of the method. A layer is given by its name, or as the module itself. Of several methods,
            each gets those that it has.

    Returns:
        Maps, one an image, high = important, on the device of ``images`` where they are a tensor, else on the CPU. Of
        several methods, a dict of them by name.

    Raises:
        OptionError: The method does not fit the model, or an option is wrong; the message says what fits.

    Example:
        >>> from suffice.testing import WeightedSum
        >>> oracle = WeightedSum({5: 1.0, 6: 1.0}, threshold=1.0, grid=4, link="smooth")  # looks at cells 5 and 6
        >>> found = attribute(oracle.classifier(32), oracle.image(32), "gradient", targets=1)
        >>> found.maps.shape, found.targets
        (torch.Size([1, 32, 32]), tensor([1]))
    """
    check_options({"seed": seed, "on_error": on_error}, attribute)
    net = as_classifier(net)
    methods = [find_method(one) for one in ([method] if isinstance(method, (str, Method)) else method)]
    check_arguments(attribute, options, (name for one in methods for name in one.options))
    if not isinstance(method, (str, Method)):
        runner = Runner.of(net, runner, batch_size=batch_size, precision=precision, compile=compile)
        how = {"targets": targets, "seed": seed, "runner": runner, "on_error": on_error}
        return _by_each(net, images, methods, how, on_progress, options)
    chosen = methods[0]
    options = _by_name(options, net)
    chosen.check(options)
    check_fit(chosen, net, options)
    records = chosen.records_of(net, options)  # before the work: files that it reads may be replaced meanwhile
    if runner is None:
        _check_arithmetic(chosen, precision, compile)
    runner = Runner.of(net, runner, batch_size=batch_size, precision=precision, compile=compile).variant(chosen.work)
    opened = open_images(images.detach() if isinstance(images, Tensor) else images)
    if not len(opened):
        raise OptionError("There are no images to explain; images= is empty.")
    targets_of(targets, (), len(opened))  # a wrong number of them is said at once
    batches = stream(opened, net.geometry, batch_size=runner.batch_size, on_error=on_error)
    maps, classes, confidences, pictures, rows = [], [], [], [], []
    # Preserved here too, so that it need not be done for every batch.
    with _undisturbed(net.device), torch.no_grad(), preserved(net.module, frozen=True):
        questions = chosen.questions_of(net, options)
        for decoded in counted(batches, chosen.name, len(opened), questions):
            index = decoded.index.tolist()
            pixels = decoded.on(net.device)
            scores = _scores_of_whole(pixels, runner)
            wanted = net.targets(targets_of(targets, index, len(opened)), scores)
            ids = [opened[i].id for i in index]
            batch = Batch(net, pixels, wanted, ids, seed, runner, decoded.index, len(opened))
            maps.append(explain(batch, chosen, **options))
            classes.append(wanted)
            confidences.append(scores.gather(1, wanted[:, None])[:, 0])
            pictures.append(small_picture(pixels))
            rows += index
            if on_progress is not None:
                on_progress(rows[-1] + 1, len(opened))
    if not maps:
        raise UnreadableImage(f"None of the images could be read. {batches.skipped[0].reason}")
    where = images.device if isinstance(images, Tensor) else torch.device("cpu")
    all_maps, all_classes, all_confidences = (torch.cat(part).to(where) for part in (maps, classes, confidences))
    settings = {
        "method": chosen.name,
        "options": {**chosen.options, **options},
        **records,
        "seed": seed,
        "model": net.name,
        "score": net.score,
        "size": list(net.size),
    }
    return Attribution(
        maps=all_maps,
        targets=all_classes,
        confidences=all_confidences,
        settings=settings,
        names=[opened[i].name for i in rows],
        ids=[opened[i].id for i in rows],
        labels=[net.labels[t] if net.labels else str(t) for t in all_classes.tolist()],
        pictures=torch.cat(pictures),
        skipped=tuple(batches.skipped),
        about=provenance(net, settings, targets, precision="fp32" if chosen.as_it_is else runner.precision),
    )


def _by_each(
    net: Classifier,
    images: Any,
    methods: Sequence[Method],
    how: Mapping[str, Any],
    on_progress: Callable[[int, int], None] | None,
    options: Mapping[str, Any],
) -> dict[str, Attribution]:
    """Maps by several methods, each with those of the options that it has."""
    names = [method.name for method in methods]
    if not names or len(set(names)) < len(names):
        raise OptionError(f"method={names!r}; expected one or more different ones.")
    if unknown := [name for name in options if not any(name in method.options for method in methods)]:
        raise OptionError(f"None of {', '.join(names)} has an option {unknown[0]!r}.")
    options = _by_name(options, net)
    for method in methods:  # before any work
        own = {name: value for name, value in options.items() if name in method.options}
        method.check(own)
        check_fit(method, net, own)
    opened = open_images(images.detach() if isinstance(images, Tensor) else images)
    for method in methods:
        own = {name: value for name, value in options.items() if name in method.options}
        plan(method.name, len(opened), method.questions_of(net, own))
    found = {}
    for number, method in enumerate(methods):

        def report(done: int, count: int, before: int = number) -> None:
            if on_progress is not None:
                on_progress(before * count + done, len(methods) * count)

        own = {name: value for name, value in options.items() if name in method.options}
        given = images if isinstance(images, Tensor) else opened  # a tensor's device is that of the maps
        found[method.name] = attribute(net, given, method, on_progress=report, **how, **own)
    return found


def explain(batch: Batch, method: str | Method, **options: Any) -> Tensor:
    """Compute maps of a batch by a method with its options, as many images at once as fit; [B, h, w] float32, finite.

    The batch's runner is taken in the variant that the method needs.
    """
    chosen = find_method(method)
    runner = batch.runner = batch.runner.variant(chosen.work)
    with ExitStack() as stack, _undisturbed(batch.pixels.device), torch.no_grad():
        stack.enter_context(preserved(batch.net.module, frozen=True))
        if "gradients" in chosen.needs:
            stack.enter_context(runner.arithmetic())  # other methods ask the model through the runner alone
        parts = runner.run(len(batch), lambda rows: chosen.function(batch[rows], **options), cost=chosen.cost)
        maps = torch.cat(list(parts))
    if maps.dim() != 3 or len(maps) != len(batch):
        raise OptionError(f"{chosen.name} returned {list(maps.shape)}; expected maps [{len(batch)}, h, w].")
    broken = ~maps.isfinite().flatten(1).all(dim=1)
    if broken.any():
        warnings.warn(
            f"{chosen.name} found values that are not finite numbers in {int(broken.sum())} of {len(maps)} images; "
            "they are set to 0.",
            SufficeWarning,
            stacklevel=4,
        )
    return torch.nan_to_num(maps.detach().float(), nan=0.0, posinf=0.0, neginf=0.0)


@contextmanager
def _undisturbed(device: torch.device) -> Iterator[None]:
    """Within it surroundings change nothing: the precision is what was asked for, also under autocast.

    And under inference_mode, whose tensors could not be part of a gradient.
    """
    kind = device.type if device.type == "cuda" else "cpu"  # older versions of torch know no others
    with torch.inference_mode(False), torch.autocast(kind, enabled=False):
        yield


def _scores_of_whole(pixels: Tensor, runner: Runner) -> Tensor:
    """Scores [B, classes] by the model as it is, so that the class explained does not depend on the precision."""
    return torch.cat(list(runner.run(len(pixels), lambda rows: runner.net(pixels[rows]))))


def _by_name(options: Mapping[str, Any], net: Classifier) -> dict[str, Any]:
    """Options with layers by their names where modules were given."""
    return {name: name_of(v, net.module) if isinstance(v, nn.Module) else v for name, v in options.items()}


def check_fit(method: Method, net: Classifier, options: Mapping[str, Any]) -> None:
    """Raise an error that says why a method, with these options, does not fit a model, and which methods do."""
    reason = method.incompatibility(net, options)
    if reason is not None:
        fitting = ", ".join(list_methods(net=net))
        raise OptionError(f"{method.name} does not fit {net.name}: {reason}. These fit: {fitting}.")


def _check_arithmetic(method: Method, precision: AnyPrecision, compile: bool) -> None:
    """What was asked for and cannot be is an error; a runner that is shared by many methods adapts to each instead."""
    if method.as_it_is and (compile or precision not in ("fp32", "auto")):
        raise OptionError(
            f"{method.name} runs a module as it is, never compiled or in another precision; write precision='fp32' and "
            "no compile=."
        )
    if compile and method.work not in ("scores", "gradients"):
        raise OptionError(f"{method.name} looks inside the model, which a compiled one does not allow: no compile=.")
    if precision not in ("fp32", "auto") and method.work == "relevance":
        raise OptionError(
            f"{method.name} divides by sums near 0, which lower precision cannot tell from it; write precision='fp32'."
        )
