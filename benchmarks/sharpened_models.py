"""Architectures of the CVPR 2024 paper with random weights, as sure of photographs as trained ones: for speed alone.

    { name = "benchmarks.sharpened_models:swin_tiny", label = "Swin-T" }  # in the file of a study

Where there is no hub, they show what a study of the thirteen networks takes. The four ResNet-50 of the paper are one
here, as they differ in their weights only.
"""

from __future__ import annotations

from collections.abc import Callable

import suffice
from benchmarks.real_models import photographs, sharpened

Maker = Callable[..., suffice.Classifier]


def _maker(name: str) -> Maker:
    def make(device: str = "cpu") -> suffice.Classifier:
        geometry = suffice.load(name, pretrained=False, device="cpu")
        return sharpened(name, device, geometry.prepare(photographs()[:16]))

    return make


vgg19 = _maker("timm/vgg19")
resnet50 = _maker("timm/resnet50")
convnext_tiny = _maker("timm/convnext_tiny")
swin_tiny = _maker("timm/swin_tiny_patch4_window7_224")
nest_tiny = _maker("timm/nest_tiny_jx")
deit_small = _maker("timm/deit_small_patch16_224")
pit_small = _maker("timm/pit_s_224")
deit_small_distilled = _maker("timm/deit_small_distilled_patch16_224")
pit_small_distilled = _maker("timm/pit_s_distilled_224")
levit_256 = _maker("timm/levit_256")
