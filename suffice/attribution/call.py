"""From a classifier, images and the name of a method to maps."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor

from suffice.attribution.attribution import Attribution
from suffice.attribution.method import Method, all_methods, find_method
from suffice.attribution.task import Task
from suffice.errors import OptionError, SufficeWarning
from suffice.perturb.forwarder import Forwarder, Layout, Precision
from suffice.vision import Classifier, open_images
from suffice.vision.anatomy.preserve import preserved
from suffice.vision.classifier import Targets, targets_of
from suffice.vision.stream import OnError, stream

# Forwards with gradients keep their activations, so fewer fit than without.
GRADIENT_BATCH = {"cuda": 128, "cpu": 16}


def attribute(
    net: Classifier,
    images: Any,
    method: str | Method = "grad-cam",
    targets: Targets = None,
    *,
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
    precision: Precision = "fp32",
    compile: bool = False,
    forwarder: Forwarder | None = None,
    on_error: OnError = "raise",
    on_progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Attribution:
    """Say how much each place of each image matters for a class.

    Args:
        net: The classifier.
        images: Anything that :func:`suffice.open_images` takes.
        method: Name of the method; :func:`suffice.list_methods` lists them.
        targets: The classes to explain: None (the predicted one), an index or label for all, or one per image.
        seed: Seed of everything random; each image's own randomness depends on it and on the image alone.
        batch_size: Inputs per forward, which bounds memory; halved when memory runs out.
        precision: Of the model: ``"fp32"``, ``"tf32"``, ``"bf16"`` or ``"fp16"``, see
            :class:`suffice.perturb.Forwarder`. Methods that send relevance back take fp32 only. Gradients of small
            scores can be too small for fp16.
        compile: Compile the model, for methods that do not look inside it; worth it for long work on a GPU.
        forwarder: A :class:`suffice.perturb.Forwarder` of this model instead of the three, so that it is compiled or
            converted once for many calls.
        on_error: ``"raise"`` the error of an image that cannot be read, or ``"skip"`` it and record it.
        on_progress: Called with (images done, images in all).
        **options: Options of the method.

    Returns:
        Maps, one an image, high = important, on the device of ``images`` where they are a tensor, else on the CPU.

    Raises:
        OptionError: The method does not fit the model, or an option is wrong; the message says what fits.

    Example:
        >>> from suffice.testing import WeightedSum
        >>> oracle = WeightedSum({5: 1.0, 6: 1.0}, threshold=1.0, grid=4, link="smooth")  # looks at cells 5 and 6
        >>> found = attribute(oracle.classifier(32), oracle.image(32), "gradient", targets=1)
        >>> found.maps.shape, found.targets
        (torch.Size([1, 32, 32]), tensor([1]))
    """
    chosen = method if isinstance(method, Method) else find_method(method)
    chosen.check(options)
    _check_fit(chosen, net)
    if forwarder is None:
        forwarder = forwarder_for(chosen, net, batch_size, precision, compile)
    else:
        _check_arithmetic(chosen, forwarder.precision, forwarder.compiled)
    given = images.detach() if isinstance(images, Tensor) else images
    opened = open_images(given)
    targets_of(targets, (), len(opened))  # a wrong number of them is said at once
    batches = stream(opened, net.geometry, batch_size=forwarder.batch_size, on_error=on_error)
    maps, classes, confidences, rows = [], [], [], []
    # Preserved here too, so that it need not be done for every batch.
    with torch.inference_mode(False), torch.no_grad(), preserved(net.module, frozen=True):
        for batch in batches:
            index = batch.index.tolist()
            own = targets_of(targets, index, len(opened))
            pixels = batch.pixels.to(net.device)
            scores = net.scores(net.logits(net.normalize(pixels)))
            classes.append(net.targets(own, scores))
            confidences.append(scores.gather(1, classes[-1][:, None])[:, 0])
            ids = [opened[i].id for i in index]
            maps.append(explain(chosen, net, pixels, classes[-1], ids, seed, forwarder, options))
            rows += index
            if on_progress is not None:
                on_progress(rows[-1] + 1, len(opened))
    if not maps:
        raise OptionError("None of the images could be read.")
    where = images.device if isinstance(images, Tensor) else torch.device("cpu")
    found = [torch.cat(part).to(where) for part in (maps, classes, confidences)]
    return Attribution(
        maps=found[0],
        targets=found[1],
        confidences=found[2],
        settings={
            "method": chosen.name,
            "options": {**chosen.options, **options},
            "seed": seed,
            "model": net.name,
            "score": net.score,
            "size": list(net.size),
        },
        names=[opened[i].name for i in rows],
        labels=[net.labels[t] if net.labels else str(t) for t in found[1].tolist()],
        skipped=tuple(batches.skipped),
    )


def explain(
    method: Method,
    net: Classifier,
    pixels: Tensor,
    targets: Tensor,
    ids: Sequence[str],
    seed: int,
    forwarder: Forwarder,
    options: Mapping[str, Any],
) -> Tensor:
    """Maps of one batch; where memory runs out, again with fewer inputs at once.

    Args:
        method: The method.
        net: The classifier.
        pixels: [B, 3, H, W], on its device.
        targets: [B] int64.
        ids: Identity of each image.
        seed: The user's seed.
        forwarder: Knows how many inputs fit.
        options: Of the method.

    Returns:
        [B, h, w] float32, finite.
    """
    # Also under inference_mode, whose tensors could not be part of a gradient.
    with ExitStack() as stack, torch.inference_mode(False), torch.no_grad(), preserved(net.module, frozen=True):
        if "gradients" in method.needs:
            stack.enter_context(forwarder.arithmetic())  # others ask the model through the forwarder
        while True:
            try:
                maps = method.function(Task(net, pixels, targets, ids, seed, forwarder), **options)
                break
            except RuntimeError as error:
                forwarder.make_room(error)
    if maps.dim() != 3 or len(maps) != len(pixels):
        raise OptionError(f"{method.name} returned {list(maps.shape)}; expected maps [{len(pixels)}, h, w].")
    broken = ~maps.isfinite().flatten(1).all(dim=1)
    if broken.any():
        warnings.warn(
            f"{method.name} found values that are not finite numbers in {int(broken.sum())} of {len(maps)} images; "
            "they are set to 0.",
            SufficeWarning,
            stacklevel=3,
        )
    return torch.nan_to_num(maps.detach().float(), nan=0.0, posinf=0.0, neginf=0.0)


def _check_fit(method: Method, net: Classifier) -> None:
    reason = method.incompatibility(net)
    if reason is not None:
        fitting = ", ".join(m.name for m in all_methods().values() if m.incompatibility(net) is None)
        raise OptionError(f"{method.name} does not fit {net.name}: {reason}. These fit: {fitting}.")


def forwarder_for(
    method: Method,
    net: Classifier,
    batch_size: int | Literal["auto"] = "auto",
    precision: Precision = "fp32",
    compile: bool = False,
) -> Forwarder:
    """How a method puts batches through a model: as it is where gradients are needed, else as fast as asked for."""
    _check_arithmetic(method, precision, compile)
    if "gradients" not in method.needs:
        return Forwarder(net, batch_size=batch_size, precision=precision, compile=compile)
    auto = GRADIENT_BATCH.get(net.device.type, 64)
    size = auto if batch_size == "auto" else batch_size
    layout = _layout_for_gradients(method, net, compile)
    return Forwarder(net, batch_size=size, precision=precision, channels_last=layout, compile=compile)


def _layout_for_gradients(method: Method, net: Classifier, compile: bool) -> Layout:
    """The fastest; of the module itself, where nothing asks for a copy."""
    if "relevance" in method.needs:  # it is sent back through the layout that models have
        return False
    if compile:
        return "auto"
    # On GPUs, the way back through convolutions is slower with channels last, so it must be short.
    return "inputs" if net.device.type != "cuda" or "feature maps" in method.needs else False


class Forwarders:
    """The ways in which different methods put batches through one model, as fast as each allows and made once.

    Args:
        net: The classifier.
        batch_size: Inputs per forward.
        precision: Of the model, for methods without gradients. Those with gradients go no lower than tf32, and those
            that send relevance back are in fp32.
        compile: Compile the model, for methods that do not look inside it.
    """

    def __init__(
        self,
        net: Classifier,
        batch_size: int | Literal["auto"] = "auto",
        precision: Precision = "fp32",
        compile: bool = False,
    ) -> None:
        self.net = net
        self.fast = Forwarder(net, batch_size=batch_size, precision=precision, compile=compile)
        self._batch_size = batch_size
        self._made: dict[tuple[frozenset[str], bool, bool], Forwarder] = {}

    @cached_property
    def uncompiled(self) -> Forwarder:
        """The same, not compiled."""
        return Forwarder(self.net, batch_size=self._batch_size, precision=self.fast.precision)

    def of(self, method: Method) -> Forwarder:
        """The forwarder for a method."""
        if {"gradients", "relevance"} & set(method.needs):
            tf32 = self.fast.precision == "tf32" and "relevance" not in method.needs
            compile = self.fast.compiled and method.needs == ("gradients",)
            kind = (frozenset(method.needs), tf32, compile)
            if kind not in self._made:
                precision: Precision = "tf32" if tf32 else "fp32"
                self._made[kind] = forwarder_for(method, self.net, self._batch_size, precision, compile)
            return self._made[kind]
        # What a compiled model does not show.
        return self.uncompiled if self.fast.compiled and {"tokens", "attention"} & set(method.needs) else self.fast


def _check_arithmetic(method: Method, precision: Precision, compiled: bool) -> None:
    if compiled and "gradients" in method.needs and len(method.needs) > 1:
        raise OptionError(f"{method.name} looks inside the model, which a compiled one does not allow: no compile=.")
    if precision != "fp32" and "relevance" in method.needs:
        raise OptionError(
            f"{method.name} divides by sums near 0, which lower precision cannot tell from it; write precision='fp32'."
        )
