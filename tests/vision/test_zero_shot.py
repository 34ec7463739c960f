"""CLIP and SigLIP as classifiers: the logits are the models' own, and everything works as on any classifier."""

import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image

import suffice
from suffice import load
from suffice.errors import MissingExtra, OptionError, UnknownModel
from suffice.vision.anatomy import record
from suffice.vision.identity import weights_hash
from tests.vision.two_towers import save_open_clip, save_transformers

LABELS = ["cat", "dog", "red owl"]
PROMPTS = ["a photo of a {}", "a drawing of the {}", "the {}"]


@pytest.fixture(scope="module")
def pictures():
    generator = np.random.default_rng(0)
    small = (Image.fromarray(generator.integers(0, 255, (6, 8, 3), dtype=np.uint8)) for _ in range(3))
    return [picture.resize((48, 40)) for picture in small]


@pytest.fixture(scope="module", params=["clip", "siglip"])
def saved(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    return request.param, folder, *save_transformers(request.param, folder)


@pytest.fixture(scope="module")
def saved_open_clip(tmp_path_factory):
    folder = tmp_path_factory.mktemp("open_clip")
    return folder, *save_open_clip(folder)


def tokens(kind, words, texts):
    """As the documentation of each model says."""
    if kind == "clip":
        padded = words(texts, padding=True, return_tensors="pt")
        return {"input_ids": padded["input_ids"], "attention_mask": padded["attention_mask"]}
    padded = words(texts, padding="max_length", max_length=12, return_tensors="pt")
    return {"input_ids": padded["input_ids"]}


@torch.no_grad()
def test_logits_are_those_of_transformers(saved, pictures):
    kind, folder, model, processor, words = saved
    net = load(f"hf/{folder}", device="cpu", labels=LABELS, prompt="a photo of a {}")
    inputs = net.normalize(net.prepare(pictures))
    theirs = processor(pictures, return_tensors="pt")["pixel_values"]
    # Their processor resizes uint8 tensors, ours PIL images: a level of 8-bit rounding apart.
    assert (inputs - theirs).abs().max() < 3 / 255 / min(net.std)
    text = tokens(kind, words, ["a photo of a cat", "a photo of a dog", "a photo of a red owl"])
    expected = model(pixel_values=inputs, **text).logits_per_image
    torch.testing.assert_close(net.logits(inputs), expected, rtol=1e-4, atol=1e-4)
    assert (expected.amax(1) - expected.amin(1)).min() > 1e-2  # so that a mistake would show
    torch.testing.assert_close(net.predict(pictures).scores, expected.softmax(1), rtol=1e-4, atol=1e-4)
    assert net.labels == LABELS
    sigmoid = load(f"hf/{folder}", device="cpu", labels=LABELS, prompt="a photo of a {}", score="sigmoid")
    torch.testing.assert_close(sigmoid.predict(pictures).scores, expected.sigmoid(), rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_labels_alone_are_whole_texts(saved, pictures):
    kind, folder, model, _, words = saved
    net = load(f"hf/{folder}", device="cpu", labels=["a red cat", "the dog"])
    inputs = net.normalize(net.prepare(pictures))
    expected = model(pixel_values=inputs, **tokens(kind, words, ["a red cat", "the dog"])).logits_per_image
    torch.testing.assert_close(net.logits(inputs), expected, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_several_prompts_are_averaged_as_directions(saved, pictures, monkeypatch):
    monkeypatch.setattr("suffice.vision.zero_shot.TEXTS_AT_ONCE", 4)
    kind, folder, model, _, words = saved
    net = load(f"hf/{folder}", device="cpu", labels=LABELS, prompt=PROMPTS)
    rows = []
    for label in LABELS:
        given = [model.get_text_features(**tokens(kind, words, [p.format(label)])) for p in PROMPTS]
        features = torch.cat([getattr(g, "pooler_output", g) for g in given])
        rows.append(sum(f / f.norm() for f in features) / len(PROMPTS))
    directions = torch.stack([row / row.norm() for row in rows])
    inputs = net.normalize(net.prepare(pictures))
    seen = model.get_image_features(pixel_values=inputs)
    images = F.normalize(getattr(seen, "pooler_output", seen), dim=1)
    bias = model.logit_bias if kind == "siglip" else 0.0
    expected = images @ directions.T * model.logit_scale.exp() + bias
    torch.testing.assert_close(net.logits(inputs), expected, rtol=1e-4, atol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("bias", [None, -2.0])
def test_logits_are_those_of_open_clip(bias, pictures, tmp_path):
    model, transform = save_open_clip(tmp_path, bias=bias)
    import open_clip

    model.eval()
    net = load(f"open_clip/{tmp_path}", device="cpu", labels=LABELS, prompt=PROMPTS)
    inputs = torch.stack([transform(picture) for picture in pictures])
    torch.testing.assert_close(net.normalize(net.prepare(pictures)), inputs, rtol=1e-4, atol=1e-4)
    words = open_clip.get_tokenizer(f"local-dir:{tmp_path}")
    directions = open_clip.build_zero_shot_classifier(model, words, LABELS, PROMPTS)
    expected = model.encode_image(inputs, normalize=True) @ directions * model.logit_scale.exp() + (bias or 0.0)
    torch.testing.assert_close(net.logits(inputs), expected, rtol=1e-4, atol=1e-4)
    one = load(f"open_clip/{tmp_path}", device="cpu", labels=LABELS)
    theirs, _ = model.get_logits(inputs, words(LABELS))
    torch.testing.assert_close(one.logits(inputs), theirs, rtol=1e-4, atol=1e-4)


def check_everything(net, pictures):
    """What a classifier is for, in small."""
    maps = suffice.attribute(net, pictures, "grad-cam", targets="dog")
    assert maps.targets.tolist() == [1, 1, 1]
    assert maps.maps.shape == (3, 4, 4)
    assert (maps.maps.flatten(1).std(dim=1) > 0).any()  # one may be below zero everywhere
    for method, options in (("rollout", {}), ("cgw2", {}), ("gradient", {}), ("tis", {"masks": 8})):
        assert (suffice.attribute(net, pictures, method, **options).maps.flatten(1).std(dim=1) > 0).all(), method
    scores = suffice.measure(net, pictures, maps, ["insertion", "deletion"])
    assert all(len(outcome.values) == 3 and outcome.values.isfinite().all() for outcome in scores.outcomes.values())
    found = suffice.find_evidence(net, pictures[:1], targets="dog", grid=2, threshold=0.5)
    assert found[0].label == "dog"
    assert found[0].mses


def test_everything_works_on_them(saved, pictures):
    _, folder, *_ = saved
    net = load(f"hf/{folder}", device="cpu", labels=LABELS, prompt="a photo of a {}")
    assert (net.anatomy.kind, net.anatomy.token_grid) == ("transformer", (4, 4))
    check_everything(net, pictures)


def test_everything_works_on_those_of_open_clip(saved_open_clip, pictures):
    net = load(f"open_clip/{saved_open_clip[0]}", device="cpu", labels=LABELS)
    assert (net.anatomy.kind, net.anatomy.token_grid) == ("transformer", (4, 4))
    check_everything(net, pictures)


@torch.no_grad()
def test_attention_is_that_of_transformers(saved, pictures):
    _, folder, model, *_ = saved
    net = load(f"hf/{folder}", device="cpu", labels=LABELS)
    inputs = net.normalize(net.prepare(pictures))
    with record(net.module, attention=net.anatomy.attention) as seen:
        net.logits(inputs)
    model.vision_model.config._attn_implementation = "eager"  # others do not hand it out in every version
    theirs = model.vision_model(inputs, output_attentions=True).attentions
    assert len(theirs) == 2
    for ours, own in zip(seen.attention.values(), theirs, strict=True):
        torch.testing.assert_close(ours, own, rtol=1e-4, atol=1e-5)


def test_texts_belong_to_the_identity_and_their_tower_is_not_kept(saved):
    _, folder, model, *_ = saved
    net = load(f"hf/{folder}", device="cpu", labels=LABELS)
    other = load(f"hf/{folder}", device="cpu", labels=LABELS, prompt="a photo of a {}")
    again = load(f"hf/{folder}", device="cpu", labels=LABELS)
    assert weights_hash(net.module) != weights_hash(other.module)
    assert weights_hash(net.module) == weights_hash(again.module)
    text = sum(p.numel() for p in model.text_model.parameters())
    assert sum(p.numel() for p in net.module.parameters()) <= sum(p.numel() for p in model.parameters()) - text


@torch.no_grad()
def test_weights_from_a_file(saved, tmp_path):
    from safetensors.torch import save_file

    _, folder, model, *_ = saved
    save_file({name: value.contiguous() for name, value in model.state_dict().items()}, tmp_path / "w.safetensors")
    theirs = load(f"hf/{folder}", device="cpu", labels=LABELS)
    ours = load(f"hf/{folder}", device="cpu", labels=LABELS, checkpoint=tmp_path / "w.safetensors")
    chance = load(f"hf/{folder}", device="cpu", labels=LABELS, pretrained=False)
    pixels = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(ours(pixels), theirs(pixels))
    assert (chance(pixels) - theirs(pixels)).abs().max() > 1e-3


def test_mistakes_are_said(saved, tmp_path):
    _, folder, *_ = saved
    for labels in (None, "cat", []):
        with pytest.raises(OptionError, match="labels="):
            load(f"hf/{folder}", device="cpu", labels=labels)
    for prompt in ("a photo", "{} and {}", ["{}", "a photo"]):
        with pytest.raises(OptionError, match=r"write one \{\} in it"):
            load(f"hf/{folder}", device="cpu", labels=LABELS, prompt=prompt)
    with pytest.raises(OptionError, match="leave it out"):
        load(f"hf/{folder}", device="cpu", labels=LABELS, prompt=[])
    with pytest.raises(OptionError, match=r"at most 12 tokens, and 'a red red red"):
        load(f"hf/{folder}", device="cpu", labels=["cat", "a" + " red" * 20 + " dog"])
    with pytest.raises(OptionError, match="classes of its own"):
        load("timm/resnet10t", device="cpu", pretrained=False, prompt="a {}")


def test_prompts_are_not_for_classifiers_of_transformers(tmp_path):
    transformers = pytest.importorskip("transformers")
    from tests.vision.two_towers import TOWER

    config = transformers.CLIPConfig(vision_config={"image_size": 32, "patch_size": 8, **TOWER}, num_labels=3)
    transformers.CLIPForImageClassification(config).save_pretrained(tmp_path)
    processor = transformers.CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    processor.save_pretrained(tmp_path)
    with pytest.raises(OptionError, match="classes of its own"):
        load(f"hf/{tmp_path}", device="cpu", prompt="a {}")
    net = load(f"hf/{tmp_path}", device="cpu", labels=LABELS)
    assert net(torch.rand(1, 3, 32, 32)).shape == (1, 3)


def test_other_pairs_of_towers_are_refused(tmp_path):
    transformers = pytest.importorskip("transformers")
    config = transformers.ChineseCLIPConfig()
    config.architectures = ["ChineseCLIPModel"]
    config.save_pretrained(tmp_path)
    with pytest.raises(UnknownModel, match="chinese_clip"):
        load(f"hf/{tmp_path}", device="cpu", labels=LABELS)


def test_names_in_open_clip():
    pytest.importorskip("open_clip", reason="open_clip is not installed: pip install open_clip_torch")
    with pytest.raises(UnknownModel, match="open_clip/ViT-B-32"):
        load("open_clip/ViT-B-23", labels=LABELS)
    with pytest.raises(UnknownModel, match="laion2b_s34b_b79k"):
        load("open_clip/ViT-B-32.laion", labels=LABELS)
    with pytest.raises(OptionError, match=r"ViT-B-32\.openai"):
        load("open_clip/ViT-B-32", labels=LABELS)
    assert suffice.list_models("open_clip/ViT-B-3?") == ["open_clip/ViT-B-32"]


def test_open_clip_is_optional(monkeypatch):
    monkeypatch.setitem(sys.modules, "open_clip", None)
    with pytest.raises(MissingExtra, match="open-clip"):
        load("open_clip/ViT-B-32.openai", labels=LABELS)
    assert suffice.list_models("open_clip/*") == []
