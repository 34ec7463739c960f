"""Methods of other packages, called like our own; and our own, called like theirs."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from suffice.attribution.call import explain
from suffice.attribution.method import Method, Need, find_method
from suffice.attribution.reduce import Reduction, over_channels
from suffice.attribution.task import Task
from suffice.errors import OptionError
from suffice.perturb.forwarder import Forwarder
from suffice.vision import Classifier


def from_function(
    function: Callable[[torch.nn.Module, Tensor, Tensor], Any],
    name: str | None = None,
    *,
    needs: tuple[Need, ...] = ("gradients",),
    reduction: Reduction = "sum",
) -> Method:
    """Any function as a method.

    Args:
        function: ``function(model, inputs, targets)`` from the module, normalized inputs [B, 3, H, W] and classes [B]
            to maps [B, h, w], [B, 1, h, w] or [B, 3, h, w], as tensor or array, high = important.
        name: By which results call it; default: the function's own.
        needs: What it needs of a model.
        reduction: How three channels become one.

    Returns:
        A method, for ``suffice.attribute(net, images, method)``.

    Example:
        >>> import suffice
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(3,)], grid=4)
        >>> bright = from_function(lambda model, inputs, targets: inputs.abs(), "bright")
        >>> suffice.attribute(oracle.classifier(32), oracle.image(32), bright)
        Attribution(1 maps 32×32, method='bright')
    """

    def adapted(task: Task) -> Tensor:
        with torch.enable_grad():
            found = function(task.net.module, task.inputs.detach().clone(), task.targets)
        maps = torch.as_tensor(found).detach().to(task.pixels.device)
        if maps.dim() == 4:
            maps = maps[:, 0] if maps.shape[1] == 1 else over_channels(maps, reduction)
        return maps

    own = str(name or getattr(function, "__name__", "function"))
    return Method(own, f"{own}, given as a function.", "", needs, MappingProxyType({}), (), adapted)


def from_captum(algorithm: type, *, reduction: Reduction = "sum", **options: Any) -> Method:
    """An attribution algorithm of Captum as a method.

    Args:
        algorithm: A class such as ``captum.attr.IntegratedGradients``, which is made of a forward function. For one
            that needs more, give a function that makes it: ``lambda f: NoiseTunnel(Saliency(f))``.
        reduction: How three channels become one.
        **options: Of its ``attribute``, such as ``n_steps=20``. Inputs are normalized, and so must be baselines.

    Returns:
        A method, for ``suffice.attribute(net, images, method)``.

    Example:
        >>> import captum.attr
        >>> from_captum(captum.attr.InputXGradient).name
        'captum.InputXGradient'
    """

    def adapted(task: Task) -> Tensor:
        with torch.enable_grad():
            leaf = task.inputs.detach().requires_grad_()
            found = algorithm(task.net.logits).attribute(leaf, target=task.targets, **options)
        return over_channels(found.detach(), reduction)

    name = f"captum.{getattr(algorithm, '__name__', 'algorithm')}"
    return Method(name, f"{name}, by Captum.", "", ("gradients",), MappingProxyType({}), (), adapted)


def from_cam(algorithm: type, *, layer: str | None = None, **options: Any) -> Method:
    """A CAM of the package pytorch-grad-cam as a method.

    Args:
        algorithm: A class such as ``pytorch_grad_cam.GradCAM``.
        layer: Name of the layer it reads; default: the one that the anatomy of the model names.
        **options: Of the call, such as ``eigen_smooth=True``.

    Returns:
        A method, for ``suffice.attribute(net, images, method)``.
    """

    def adapted(task: Task) -> Tensor:
        anatomy = task.net.anatomy
        name = layer or anatomy.target_layer
        targets = [_Chosen(t) for t in task.targets.tolist()]
        with torch.enable_grad():
            made = algorithm(
                model=task.net.module,
                target_layers=[task.net.module.get_submodule(name)],
                reshape_transform=lambda activation: anatomy.maps(name, activation),
            )
            with made as cam:
                found = cam(input_tensor=task.inputs.detach().clone(), targets=targets, **options)
        return torch.as_tensor(np.asarray(found)).to(task.pixels.device)

    name = f"cam.{getattr(algorithm, '__name__', 'algorithm')}"
    return Method(
        name, f"{name}, by pytorch-grad-cam.", "", ("gradients", "feature maps"), MappingProxyType({}), (), adapted
    )


def as_explain_func(
    net: Classifier, method: str | Method = "grad-cam", *, batch_size: int = 32, seed: int = 0, **options: Any
) -> Callable[..., np.ndarray]:
    """A method as the ``explain_func`` that Quantus calls.

    Args:
        net: The classifier whose preprocessing the inputs have gone through.
        method: The method.
        batch_size: Inputs per forward.
        seed: Seed of everything random.
        **options: Of the method.

    Returns:
        ``explain_func(model, inputs, targets, **ignored)``, from a module, normalized inputs [B, 3, H, W] and classes
        [B] to maps [B, H, W]. The module may be another one than the classifier's, as in tests that randomize weights.
    """
    chosen = method if isinstance(method, Method) else find_method(method)
    chosen.check(options)

    def explain_func(model: torch.nn.Module, inputs: Any, targets: Any, **_: Any) -> np.ndarray:
        own = net.with_module(model)
        mean, std = (torch.tensor(v, device=own.device).view(-1, 1, 1) for v in (own.mean, own.std))
        pixels = torch.as_tensor(inputs, dtype=torch.float32).to(own.device) * std + mean
        classes = torch.as_tensor(targets, dtype=torch.long).to(own.device).flatten()
        if pixels.dim() != 4 or len(classes) != len(pixels):
            raise OptionError(
                f"Expected inputs [B, 3, H, W] and targets [B]; got {list(pixels.shape)}, {len(classes)}."
            )
        ids = [str(i) for i in range(len(pixels))]
        forwarder = Forwarder(own, batch_size=batch_size)
        maps = explain(chosen, own, pixels, classes, ids, seed, forwarder, options)
        return maps.cpu().numpy()

    return explain_func


class _Chosen:
    """Picks one class of the output of a model."""

    def __init__(self, target: int) -> None:
        self.target = target

    def __call__(self, output: Tensor) -> Tensor:
        return output[..., self.target]
