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
_CAPTUM = ("gradient", "integrated-gradients", "smoothgrad", "occlusion")
# Names of their classes, in TorchCAM and in pytorch-grad-cam.
_CAMS = {
    "grad-cam": ("GradCAM", "GradCAM"),
    "grad-cam++": ("GradCAMpp", "GradCAMPlusPlus"),
    "score-cam": ("ScoreCAM", "ScoreCAM"),
}


@dataclass(frozen=True)
class Work:
    """What both sides do."""

    net: Classifier
    inputs: Tensor  # normalized images, [N, 3, H, W]
    targets: Tensor  # classes to explain, [N] int64
    batch_size: int  # inputs per forward, where the peer has such an option
    options: Mapping[str, Any]  # of the method

    @property
    def versions(self) -> int:
        """Versions of all images that go through the model at once."""
        return max(1, self.batch_size // len(self.inputs))


def peers(method: str, work: Work) -> dict[str, Call]:
    """Calls of the peers that have a method, by the name of the package; those not installed are left out."""
    found: dict[str, Call] = {}
    if method in _CAPTUM and find_spec("captum"):
        found["captum"] = _captum(work, method)
    if method in _CAMS and work.net.anatomy.kind == "cnn":
        if find_spec("torchcam"):
            found["torchcam"] = _torchcam(work, _CAMS[method][0])
        if find_spec("pytorch_grad_cam"):
            found["pytorch-grad-cam"] = _pytorch_grad_cam(work, _CAMS[method][1])
    if method == "rise":
        found["one image at a time"] = _published_rise(work)
    return found


def _captum(work: Work, method: str) -> Call:
    import captum.attr as captum

    targets, options, logits = work.targets, work.options, work.net.logits
    leaf = work.inputs.clone().requires_grad_()
    if method == "gradient":
        return lambda: captum.Saliency(logits).attribute(leaf, targets)
    if method == "integrated-gradients":
        gradients = captum.IntegratedGradients(logits)
        how = {"n_steps": options["steps"], "internal_batch_size": max(work.batch_size, len(leaf))}
        return lambda: gradients.attribute(leaf, target=targets, **how)
    if method == "smoothgrad":
        tunnel = captum.NoiseTunnel(captum.Saliency(logits))
        how = {"nt_samples": options["samples"], "nt_samples_batch_size": work.versions}
        return lambda: tunnel.attribute(leaf, target=targets, stdevs=0.15, **how)
    window, stride = ((3, options[side], options[side]) for side in ("window", "stride"))
    occlusion = captum.Occlusion(lambda x: work.net.scores(logits(x)))
    how = {"target": targets, "perturbations_per_eval": work.versions}
    return lambda: occlusion.attribute(work.inputs, window, stride, **how)


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
