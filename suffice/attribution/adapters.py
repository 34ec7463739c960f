"""Methods of other packages, called like our own; and our own, called like theirs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from suffice.attribution.api import check_fit, explain
from suffice.attribution.method import Method, Need, find_method
from suffice.attribution.methods.gradient import Reduction, over_channels
from suffice.errors import AnatomyError, OptionError
from suffice.options import check_options
from suffice.perturb import enlarge
from suffice.perturb.batch import Batch
from suffice.perturb.runner import Runner
from suffice.vision import Classifier, Model, as_classifier
from suffice.vision.anatomy.structure import Layout
from suffice.vision.anatomy.trace import find_modules, name_of


def from_function(
    function: Callable[[nn.Module, Tensor, Tensor], Any],
    name: str | None = None,
    *,
    needs: tuple[Need, ...] = ("gradients",),
    reduction: Reduction = "sum",
) -> Method:
    """Any function as a method, for ``suffice.attribute(net, images, method)``.

    Args:
        function: ``function(model, inputs, targets)`` from the module, normalized inputs [B, 3, H, W] and classes [B]
            to maps [B, h, w], [B, 1, h, w] or [B, 3, h, w], as tensor or array, high = important.
        name: By which results call it; default: the function's own.
        needs: What it needs of a model.
        reduction: How three channels become one.

    Example:
        >>> import suffice
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(3,)], grid=4)
        >>> bright = from_function(lambda model, inputs, targets: inputs.abs(), "bright")
        >>> suffice.attribute(oracle.classifier(32), oracle.image(32), bright)
        Attribution(1 maps 32×32, method='bright')
    """

    def adapted(batch: Batch) -> Tensor:
        with torch.enable_grad():
            found = function(batch.net.module, batch.inputs.detach().clone(), batch.targets)
        maps = torch.as_tensor(found).detach().to(batch.pixels.device)
        if maps.dim() == 4:
            maps = maps[:, 0] if maps.shape[1] == 1 else over_channels(maps, reduction)
        return maps

    own = str(name or getattr(function, "__name__", "function"))
    return Method(own, adapted, f"{own}, given as a function.", needs=needs, as_it_is=True)


def from_captum(algorithm: type, *, reduction: Reduction = "sum", **options: Any) -> Method:
    """An attribution algorithm of Captum as a method, for ``suffice.attribute(net, images, method)``.

    Args:
        algorithm: A class such as ``captum.attr.IntegratedGradients``, which is made of a forward function. For one
            that needs more, give a function that makes it: ``lambda f: NoiseTunnel(Saliency(f))``.
        reduction: How three channels become one.
        **options: Of its ``attribute``, such as ``n_steps=20``. Inputs are normalized, and so must be baselines. It is
            told how many inputs fit through a model at once where it has an option for that.

    Example:
        >>> import captum.attr
        >>> from_captum(captum.attr.InputXGradient).name
        'captum.InputXGradient'
    """

    def adapted(batch: Batch) -> Tensor:
        with torch.enable_grad():
            leaf = batch.inputs.detach().requires_grad_()
            made = algorithm(batch.net.logits)
            found = made.attribute(leaf, target=batch.targets, **{**_bounds(made.attribute, batch), **options})
        return over_channels(found.detach(), reduction)

    name = f"captum.{getattr(algorithm, '__name__', 'algorithm')}"
    return Method(name, adapted, f"{name}, by Captum.", needs=("gradients",), as_it_is=True)


def from_cam(algorithm: Callable[..., Any], *, layer: str | nn.Module | None = None, **options: Any) -> Method:
    """A CAM of the package pytorch-grad-cam as a method, for ``suffice.attribute(net, images, method)``.

    Args:
        algorithm: A class such as ``pytorch_grad_cam.GradCAM``; with arguments of its own, a partial of it:
            ``functools.partial(AblationCAM, batch_size=8)``.
        layer: The layer it reads, by its name or as a module of the model; default: the one that the anatomy of the
            model names. The anatomy also says how its output is laid out, in place of a ``reshape_transform``.
        **options: Of the call, such as ``eigen_smooth=True``.
    """
    check_options({"layer": layer}, from_cam)
    own = f"cam.{getattr(getattr(algorithm, 'func', algorithm), '__name__', 'algorithm')}"

    def adapted(batch: Batch) -> Tensor:
        anatomy = batch.net.anatomy
        name, part = _layer_read(batch.net, layer)
        targets = [itemgetter((..., target)) for target in batch.targets.tolist()]
        with torch.enable_grad(), _gradients_kept(batch.net.module):
            made = algorithm(
                model=batch.net.module,
                target_layers=[part],
                reshape_transform=lambda activation: anatomy.maps(name, activation),
                **_ablating(algorithm, anatomy.layout(name)),
            )
            # The parameters are frozen, so that the graph begins at the inputs.
            inputs = batch.inputs.detach().clone().requires_grad_()
            with made as cam:
                try:
                    found = cam(input_tensor=inputs, targets=targets, **options)
                except IndexError as error:  # of which pytorch-grad-cam would go on without maps
                    raise OptionError(f"{own} cannot read {name!r} of {batch.net.name}: {error}.") from error
        return torch.as_tensor(np.asarray(found)).to(batch.pixels.device)

    return Method(own, adapted, f"{own}, by pytorch-grad-cam.", needs=("gradients", "feature maps"), as_it_is=True)


def as_explain_func(
    net: Model, method: str | Method = "grad-cam", *, batch_size: int = 32, seed: int = 0, **options: Any
) -> Callable[..., np.ndarray]:
    """A method with its options as the ``explain_func`` that Quantus calls.

    That is ``explain_func(model, inputs, targets, **ignored)``, from a module, inputs [B, 3, H, W] normalized as for
    the classifier and classes [B] to maps [B, H, W], those of a coarser method enlarged bilinearly. The module may be
    another one than the classifier's, as in tests that randomize weights. ``batch_size`` bounds the inputs per forward,
    and ``seed`` is that of everything random.
    """
    chosen = find_method(method)
    chosen.check(options)
    classifier = as_classifier(net)
    check_fit(chosen, classifier, options)

    def explain_func(model: nn.Module, inputs: Any, targets: Any, **_: Any) -> np.ndarray:
        own = classifier.with_module(model)
        mean, std = (torch.tensor(v, device=own.device).view(-1, 1, 1) for v in (own.mean, own.std))
        pixels = torch.as_tensor(inputs, dtype=torch.float32).to(own.device) * std + mean
        classes = torch.as_tensor(targets, dtype=torch.long).to(own.device).flatten()
        if pixels.dim() != 4 or len(classes) != len(pixels):
            raise OptionError(
                f"Expected inputs [B, 3, H, W] and targets [B]; got {list(pixels.shape)}, {len(classes)}."
            )
        ids = [str(i) for i in range(len(pixels))]
        batch = Batch(own, pixels, classes, ids, seed, Runner(own, batch_size=batch_size))
        maps = enlarge(explain(batch, chosen, **options), (pixels.shape[2], pixels.shape[3]), "bilinear")
        return maps.cpu().numpy()

    return explain_func


def _layer_read(net: Classifier, layer: str | nn.Module | None) -> tuple[str, nn.Module]:
    """Name and module of a layer whose maps the anatomy of a model can read."""
    try:
        name = name_of(layer, net.module) if isinstance(layer, nn.Module) else layer or net.anatomy.target_layer
        part = find_modules(net.module, [name])[name]
        net.anatomy.layout(name)
    except AnatomyError as error:
        hint = " Copies of a model have the same names, but other modules." if isinstance(layer, nn.Module) else ""
        raise OptionError(f"layer= is none of {net.name} that can be read: {error}{hint}") from error
    return name, part


def _ablating(algorithm: Callable[..., Any], layout: Layout) -> dict[str, Any]:
    """What AblationCAM is told of a layer whose channels come last; by itself it blanks channels that come first."""
    chosen = "ablation_layer" in getattr(algorithm, "keywords", {})
    if layout.form == "nchw" or chosen or "ablation_layer" not in inspect.signature(algorithm).parameters:
        return {}
    from pytorch_grad_cam import AblationLayerVit

    return {"ablation_layer": AblationLayerVit()}


@contextmanager
def _gradients_kept(module: nn.Module) -> Iterator[None]:
    """Within it the parameters have no gradients, and others may clear them; afterwards they are as before."""
    before = [(parameter, parameter.grad) for parameter in module.parameters()]
    try:
        for parameter, _ in before:
            parameter.grad = None
        yield
    finally:
        for parameter, gradient in before:
            parameter.grad = gradient


def _bounds(attribute: Callable[..., Any], batch: Batch) -> dict[str, int]:
    """By what options an algorithm of Captum puts no more inputs through a model at once than fit."""
    size = batch.runner.batch_size
    bounds = {"internal_batch_size": size, "nt_samples_batch_size": max(1, size // len(batch))}
    taken = inspect.signature(attribute).parameters
    return {name: most for name, most in bounds.items() if name in taken}
