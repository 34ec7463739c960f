"""The same methods of other packages, called so that they do the same work; benchmarks compare with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from suffice.attribution.methods.rise import RandomMasks
from suffice.vision import Classifier

Call = Callable[[], Any]


@dataclass(frozen=True)
class Work:
    """What both sides do.

    Attributes:
        net: The classifier.
        inputs: Normalized images, [N, 3, H, W].
        targets: Classes to explain, [N] int64.
        batch_size: Inputs per forward, where the peer has such an option.
        options: Of the method.
    """

    net: Classifier
    inputs: Tensor
    targets: Tensor
    batch_size: int
    options: Mapping[str, Any]

    @property
    def versions(self) -> int:
        """Versions of all images that go through the model at once."""
        return max(1, self.batch_size // len(self.inputs))


def peers(method: str, work: Work) -> dict[str, Call]:
    """Calls of the peers that have a method, by the name of the package; those not installed are left out."""
    found: dict[str, Call] = {}
    if method in _CAPTUM and find_spec("captum"):
        found["captum"] = _CAPTUM[method](work)
    if method in _CAMS and work.net.anatomy.kind == "cnn":
        if find_spec("torchcam"):
            found["torchcam"] = _torchcam(work, _CAMS[method][0])
        if find_spec("pytorch_grad_cam"):
            found["pytorch-grad-cam"] = _pytorch_grad_cam(work, _CAMS[method][1])
    if method == "rise":
        found["one image at a time"] = _published_rise(work)
    return found


def _saliency(work: Work) -> Call:
    import captum.attr as captum

    leaf = work.inputs.clone().requires_grad_()
    return lambda: captum.Saliency(work.net.logits).attribute(leaf, work.targets)


def _integrated_gradients(work: Work) -> Call:
    import captum.attr as captum

    leaf, algorithm = work.inputs.clone().requires_grad_(), captum.IntegratedGradients(work.net.logits)
    how = {"n_steps": work.options["steps"], "internal_batch_size": max(work.batch_size, len(leaf))}
    return lambda: algorithm.attribute(leaf, target=work.targets, **how)


def _smoothgrad(work: Work) -> Call:
    import captum.attr as captum

    leaf, tunnel = work.inputs.clone().requires_grad_(), captum.NoiseTunnel(captum.Saliency(work.net.logits))
    how = {"nt_samples": work.options["samples"], "nt_samples_batch_size": work.versions}
    return lambda: tunnel.attribute(leaf, target=work.targets, stdevs=0.15, **how)


def _occlusion(work: Work) -> Call:
    import captum.attr as captum

    window, stride = ((3, work.options[side], work.options[side]) for side in ("window", "stride"))
    algorithm = captum.Occlusion(lambda x: work.net.scores(work.net.logits(x)))
    how = {"target": work.targets, "perturbations_per_eval": work.versions}
    return lambda: algorithm.attribute(work.inputs, window, stride, **how)


def _torchcam(work: Work, name: str) -> Call:
    import torchcam.methods as torchcam

    net, more = work.net, {"batch_size": work.batch_size} if name == "ScoreCAM" else {}

    def cam() -> None:
        with net.evaluating(), getattr(torchcam, name)(net.module, target_layer=net.anatomy.target_layer, **more) as it:
            it(work.targets.tolist(), net.module(work.inputs.clone().requires_grad_()), normalized=False)

    return cam


def _pytorch_grad_cam(work: Work, name: str) -> Call:
    import pytorch_grad_cam
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

    net = work.net

    def cam() -> None:
        layer = net.module.get_submodule(net.anatomy.target_layer)
        with net.evaluating(), getattr(pytorch_grad_cam, name)(net.module, [layer]) as it:
            it.batch_size = work.batch_size
            it(work.inputs, [ClassifierOutputTarget(target) for target in work.targets.tolist()])

    return cam


def _published_rise(work: Work) -> Call:
    """Masks that lie ready in memory, one image after the other, the scores of all classes times all masks."""
    net, (height, width) = work.net, work.net.size
    count, share = work.options["masks"], work.options["share"]
    numbers = torch.arange(count, device=work.inputs.device)
    masks = RandomMasks(count, work.options["side"], share, 0, 1).make(numbers, net.size)

    @torch.no_grad()
    def loop() -> Tensor:
        maps = []
        for image, target in zip(work.inputs, work.targets.tolist(), strict=True):
            scores = torch.cat([net.scores(net.logits(part[:, None] * image)) for part in masks.split(work.batch_size)])
            maps.append((scores.T @ masks.flatten(1))[target] / count / share)
        return torch.stack(maps).view(-1, height, width)

    return loop


_CAPTUM: Mapping[str, Callable[[Work], Call]] = {
    "gradient": _saliency,
    "integrated-gradients": _integrated_gradients,
    "smoothgrad": _smoothgrad,
    "occlusion": _occlusion,
}
# Names of their classes, in TorchCAM and in pytorch-grad-cam.
_CAMS = {
    "grad-cam": ("GradCAM", "GradCAM"),
    "grad-cam++": ("GradCAMpp", "GradCAMPlusPlus"),
    "score-cam": ("ScoreCAM", "ScoreCAM"),
}
