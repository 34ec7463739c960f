"""Models by name, from every source, without a network."""

import socket

import numpy as np
import pytest
import torch
from PIL import Image

from suffice import load
from suffice.errors import CheckpointError, DownloadError, OptionError, UnknownModel
from suffice.plugins import provided
from suffice.vision import Classifier, ModelEntry, Source, register_source
from suffice.vision.families import default_family
from suffice.vision.models import GROUP, model_entries


@pytest.fixture
def picture():
    generator = np.random.default_rng(0)
    return Image.fromarray(generator.integers(0, 255, (9, 12, 3), dtype=np.uint8)).resize((300, 260))


@pytest.fixture
def no_network(monkeypatch):
    def fail(*args, **kwargs):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    monkeypatch.setattr("urllib.request.getproxies", dict)


# The thirteen models of Jiang, Khorram and Li, and relatives.
@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("timm/vgg19", "older-cnn"),
        ("timm/resnet50.tv_in1k", "older-cnn"),
        ("timm/resnet50.c1_in1k", "newer-cnn"),
        ("timm/resnet50.c2_in1k", "newer-cnn"),
        ("timm/resnet50d", "newer-cnn"),
        ("timm/convnext_tiny", "convnext"),
        ("timm/swin_tiny_patch4_window7_224", "transformer"),
        ("timm/nest_tiny", "transformer"),
        ("timm/deit_small_patch16_224", "transformer"),
        ("timm/deit_small_distilled_patch16_224", "distilled-transformer"),
        ("timm/pit_s_224", "transformer"),
        ("timm/pit_s_distilled_224", "distilled-transformer"),
        ("timm/levit_256", "distilled-transformer"),
        ("torchvision/resnet50.IMAGENET1K_V1", "older-cnn"),
        ("torchvision/resnet50.IMAGENET1K_V2", "newer-cnn"),
        ("hf/facebook/deit-small-distilled-patch16-224", "distilled-transformer"),
        ("hf/microsoft/swin-tiny-patch4-window7-224", "transformer"),
        ("timm/repvgg_a0", "newer-cnn"),
        ("timm/resnest14d", "newer-cnn"),
        ("something", None),
    ],
)
def test_families(name, family):
    assert default_family(name) == family


def test_timm(picture):
    from timm.data import create_transform, resolve_data_config

    net = load("timm/vit_tiny_patch16_224", pretrained=False, device="cpu", depth=1)
    transform = create_transform(**resolve_data_config({}, model=net.module))
    with torch.no_grad(), net.evaluating():
        expected = net.module(transform(picture)[None]).softmax(dim=1)
    assert torch.allclose(net.predict(picture).scores, expected, atol=1e-6)
    assert (net.name, net.family, net.mean) == ("timm/vit_tiny_patch16_224", "transformer", (0.5, 0.5, 0.5))
    assert net.labels[281] == "tabby"
    assert net.synsets[281] == "n02123045"
    assert net.class_index("n02123045") == 281


def test_timm_with_other_classes_has_no_labels():
    net = load("timm/resnet10t", pretrained=False, device="cpu", num_classes=7, resize="squash", score="sigmoid")
    assert net.labels is None
    assert net.geometry.rule == "squash"
    assert net(torch.rand(1, 3, *net.size)).shape == (1, 7)


def test_torchvision(picture):
    from torchvision.models import ResNet18_Weights

    net = load("torchvision/resnet18", pretrained=False, device="cpu")
    with torch.no_grad(), net.evaluating():
        expected = net.module(ResNet18_Weights.DEFAULT.transforms()(picture)[None]).softmax(dim=1)
    assert torch.allclose(net.predict(picture).scores, expected, atol=1e-6)
    assert net.labels[281] == "tabby"
    assert net.synsets[281] == "n02123045"


def test_checkpoints_by_name(tmp_path):
    torch.manual_seed(1)
    first = load("torchvision/squeezenet1_1", pretrained=False, device="cpu", num_classes=4)
    torch.save(
        {"state_dict": {f"module.{k}": v for k, v in first.module.state_dict().items()}},
        tmp_path / "mine.pth",
    )
    second = load("torchvision/squeezenet1_1", checkpoint=tmp_path / "mine.pth", device="cpu", num_classes=4)
    pixels = torch.rand(1, 3, *first.size)
    assert torch.equal(first(pixels), second(pixels))
    with pytest.raises(CheckpointError, match="num_classes="):
        load("torchvision/squeezenet1_1", checkpoint=tmp_path / "mine.pth", device="cpu")


HF_CASES = ["vit", "deit", "convnext", "crop"]


@pytest.mark.parametrize("case", HF_CASES)
def test_transformers_from_a_local_folder(case, picture, tmp_path):
    transformers = pytest.importorskip("transformers")
    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    names = {"id2label": {0: "cat", 1: "dog", 2: "owl"}, "label2id": {"cat": 0, "dog": 1, "owl": 2}}
    if case == "vit":
        model = transformers.ViTForImageClassification(
            transformers.ViTConfig(image_size=64, patch_size=16, **small, **names)
        )
        processor = transformers.ViTImageProcessor(size={"height": 64, "width": 64})
    elif case == "deit":
        model = transformers.DeiTForImageClassification(
            transformers.DeiTConfig(image_size=64, patch_size=16, **small, **names)
        )
        processor = transformers.DeiTImageProcessor(
            size={"height": 72, "width": 72}, crop_size={"height": 64, "width": 64}
        )
    elif case == "convnext":
        config = transformers.ConvNextConfig(depths=[1, 1, 1, 1], hidden_sizes=[8, 8, 8, 8], **names)
        model = transformers.ConvNextForImageClassification(config)
        processor = transformers.ConvNextImageProcessor(size={"shortest_edge": 64}, crop_pct=0.875)
    else:
        config = transformers.ResNetConfig(depths=[1, 1, 1, 1], hidden_sizes=[8, 8, 8, 8], embedding_size=8, **names)
        model = transformers.ResNetForImageClassification(config)
        processor = transformers.CLIPImageProcessor(size={"shortest_edge": 72}, crop_size={"height": 64, "width": 64})
    model.eval().save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)

    net = load(f"hf/{tmp_path}", device="cpu")
    theirs = processor(picture, return_tensors="pt")["pixel_values"]
    ours = net.normalize(net.prepare(picture))
    assert ours.shape == theirs.shape
    # Their processor resizes uint8 tensors, ours PIL images: a level of 8-bit rounding apart.
    assert (ours - theirs).abs().max() < 3 / 255 / min(net.std)
    with torch.no_grad():
        assert torch.allclose(net(net.prepare(picture)), model(ours).logits.softmax(dim=1), atol=1e-5)
    assert net.labels == ["cat", "dog", "owl"]
    assert net.size == (64, 64)


def test_unknown_names_suggest_close_ones():
    with pytest.raises(UnknownModel, match="timm/vit_tiny_patch16_224"):
        load("timm/vit_tiny_patch16_22")
    with pytest.raises(UnknownModel, match="torchvision/resnet50"):
        load("torchvision/resnet5O")
    with pytest.raises(UnknownModel, match="Did you mean 'timm/resnet50' or 'torchvision/resnet50'"):
        load("resnet50")
    with pytest.raises(UnknownModel, match=r"timm/resnet50\."):
        load("timm/resnet50.a1_in2k")
    with pytest.raises(UnknownModel, match="IMAGENET1K_V1"):
        load("torchvision/resnet50.V9")
    with pytest.raises(UnknownModel, match="begin with their source"):
        load("zuu/resnet")
    with pytest.raises(UnknownModel, match="has no weights"):
        load(next(m.name for m in model_entries("timm/*") if not m.pretrained))


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("timm/vit_tiny_patch16_224", "checkpoint="),
        ("torchvision/squeezenet1_1", "checkpoint="),
        ("hf/google/vit-base-patch16-224", "local folder"),
    ],
)
def test_without_a_network_the_error_shows_the_way(name, said, monkeypatch, tmp_path):
    if name.startswith("hf/"):
        pytest.importorskip("transformers")
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    with pytest.raises(DownloadError, match=said):
        load(name)
    assert before == constants.HF_HUB_OFFLINE


def test_listing():
    names = [m.name for m in model_entries("timm/deit_small*")]
    assert "timm/deit_small_patch16_224" in names
    assert [m.family for m in model_entries("timm/deit_small_distilled_patch16_224")] == ["distilled-transformer"]
    assert model_entries("timm/nothing*") == []
    prefixes = {m.name.partition("/")[0] for m in model_entries("*vit*")}
    assert prefixes - {"open_clip"} == {"timm", "torchvision", "hf", "zoo"}  # that one only where it is installed


def test_another_package_can_add_a_source():
    def build(name, *, pretrained, checkpoint, **options):
        module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(2))
        return Classifier(module, size=8, mean=(0, 0, 0), std=(1, 1, 1), name=f"mine/{name}", **options)

    source = Source(build, lambda: [ModelEntry("tiny", "toy", facts=(("accuracy", 0.9),))], "mine")
    try:
        register_source("mine", source)
        assert load("mine/tiny", device="cpu", family="toy").family == "toy"
        entry = model_entries("mine/*")[0]
        assert (entry.name, dict(entry.facts)) == ("mine/tiny", {"accuracy": 0.9})
        assert load(entry, device="cpu").name == "mine/tiny"
    finally:
        del provided(GROUP)["mine"]


def test_a_source_that_cannot_be_imported_stands_in_nobodys_way():
    try:
        register_source("gone", "nowhere_to_be_found:SOURCE")
        assert load("timm/resnet10t", pretrained=False, device="cpu").name == "timm/resnet10t"
        with pytest.raises(ModuleNotFoundError, match="nowhere_to_be_found"):
            load("gone/model", device="cpu")
    finally:
        del provided(GROUP)["gone"]


def test_real_vit(assets):
    net = load("timm/vit_tiny_patch16_224", checkpoint=assets / "vit_tiny_patch16_224.safetensors", device="cpu")
    from suffice import open_images

    photographs = open_images(assets / "imagenet_val_1000" / "index.csv", root=assets / "imagenet_val_1000" / "images")[
        :60:2
    ]
    found = net.predict(photographs)
    right = sum(
        t == net.class_index(label) for t, label in zip(found.targets.tolist(), photographs.labels, strict=True)
    )
    assert right >= 18  # 76 % on all of them


def test_a_module_instead_of_a_name_is_told_where_to_go():
    with pytest.raises(OptionError, match=r"Classifier\(module, …\)"):
        load(torch.nn.Linear(2, 2))
