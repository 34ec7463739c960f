"""The same methods of other packages, called so that they do the same work; benchmarks compare with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from suffice.bench.published import ONE_AT_A_TIME, published
from suffice.perturb.masks import cell_of_pixel
from suffice.vision import Classifier

Call = Callable[[], Any]
_CAPTUM = ("gradient", "integrated-gradients", "smoothgrad", "occlusion", "deep-lift", "kernel-shap", "lime")
# Names of their classes, in TorchCAM and in pytorch-grad-cam; None where there is none.
_CAMS = {
    "grad-cam": ("GradCAM", "GradCAM"),
    "grad-cam++": ("GradCAMpp", "GradCAMPlusPlus"),
    "score-cam": ("ScoreCAM", "ScoreCAM"),
    "layer-cam": ("LayerCAM", "LayerCAM"),
    "hires-cam": (None, "HiResCAM"),
    "eigen-cam": (None, "EigenCAM"),
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
        in_torchcam, in_grad_cam = _CAMS[method]
        if in_torchcam and find_spec("torchcam"):
            found["torchcam"] = _torchcam(work, in_torchcam)
        if find_spec("pytorch_grad_cam"):
            found["pytorch-grad-cam"] = _pytorch_grad_cam(work, in_grad_cam)
    loop = published(method, work)
    if loop is not None:
        found[ONE_AT_A_TIME] = loop
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
    if method == "deep-lift":
        black = work.net.normalize(torch.zeros_like(work.inputs))
        with work.net.evaluating():
            rescale = captum.DeepLift(work.net.module)
        return lambda: rescale.attribute(leaf, black, target=targets)
    if method in ("kernel-shap", "lime"):
        return _captum_samples(work, method)
    window, stride = ((3, options[side], options[side]) for side in ("window", "stride"))
    occlusion = captum.Occlusion(lambda x: work.net.scores(logits(x)))
    how = {"target": targets, "perturbations_per_eval": work.versions}
    return lambda: occlusion.attribute(work.inputs, window, stride, **how)


def _captum_samples(work: Work, method: str) -> Call:
    """KernelSHAP and LIME over the cells of a grid, which Captum does for one image after the other."""
    import captum.attr as captum

    side, net = work.options["grid"], work.net
    rows, columns = (cell_of_pixel(length, side, work.inputs.device) for length in net.size)
    cells = rows[:, None] * side + columns
    kind = captum.KernelShap if method == "kernel-shap" else captum.Lime
    surrogate = kind(lambda x: net.scores(net.logits(x)))
    how = {"feature_mask": cells.expand(1, 3, *net.size), "n_samples": work.options["samples"]}
    how["perturbations_per_eval"] = work.batch_size

    def loop() -> None:
        for image, target in zip(work.inputs.split(1), work.targets.tolist(), strict=True):
            surrogate.attribute(image, target=target, **how)

    return loop


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
