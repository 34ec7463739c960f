"""Methods that follow attention: against literal twins, in several libraries, and where they do not fit."""

import copy
import functools

import pytest
import torch
from timm.models.deit import VisionTransformerDistilled
from timm.models.vision_transformer import VisionTransformer

from suffice.attribution import all_methods, attribute, explain
from suffice.errors import OptionError
from suffice.perturb import Batch, Runner
from suffice.vision import Classifier
from tests.attribution.nets import MEAN, STD, assert_close, pictures
from tests.attribution.tokens import twin as twins
from tests.attribution.trained import TRAINED, scenes, trained, untrained

NAMES = ("raw-attention", "rollout", "cgw2", "attention-grad-cam", "tam", "bt-h", "bt-t")
POOLED = ("rollout", "cgw2", "bt-h", "bt-t")
TARGETS = [1, 4, 2, 0, 3, 3, 1, 2]


def lively(module, seed=0):
    """Weights far from their usual start, so that attention is uneven and heads and tokens differ."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.25 * torch.randn(parameter.shape, generator=generator)
    return module.eval()


def tiny(kind=VisionTransformer, depth=3, **options):
    torch.manual_seed(0)
    given = {"img_size": 32, "patch_size": 8, "embed_dim": 24, "num_heads": 3, "num_classes": 5, **options}
    return lively(kind(depth=depth, **given))


# Name: the module, and the tokens that its head reads (None: all patches).
MODELS = {
    "vit": (lambda: tiny(depth=12), [0]),
    "distilled": (lambda: tiny(VisionTransformerDistilled, depth=4), [0, 1]),
    "registers": (lambda: tiny(reg_tokens=2, qk_norm=True, init_values=0.5), [0]),
    "pooled": (lambda: tiny(global_pool="avg", reg_tokens=1), None),
}


def classifier(module, dtype=torch.float32):
    return Classifier(module.to(dtype), size=32, mean=MEAN, std=STD, name="tiny")


@functools.cache
def case(model, dtype):
    """A classifier, three images, a class of each, and the tokens that the classifier's head reads."""
    if model in TRAINED:
        images, targets = scenes()
        return trained(model, dtype), images[3:6], targets[3:6], TRAINED[model]
    make, read = MODELS[model]
    return classifier(make(), dtype), pictures(3), TARGETS[:3], read


@functools.cache
def known_twin(model, dtype, index):
    """The twin of an image, made once for all methods."""
    net, images, targets, read = case(model, dtype)
    return twin_of(net, images[index : index + 1], targets[index], read)


def twin_of(net, image, target, read, **options):
    return twins.Twin(net.module, net.normalize(net.prepare(image)), target, read, **options)


# Published start layers count in models of 12 blocks; shallower ones start at the same share of their depth.
STARTS = {"tam": {12: 4, 4: 1, 3: 1}, "bt-h": {12: 3, 4: 1, 3: 0}, "bt-t": {12: 6, 4: 2, 3: 1}}


# Trained networks are larger than others, and of them one has all that the other has.
SLOW = {name: pytest.param(name, marks=pytest.mark.slow) for name in TRAINED}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("model", [*MODELS, SLOW["deit"], "deit-distilled"])
def test_each_equals_its_twin(name, model):
    net, images, targets, read = case(model, torch.float32)
    if read is None and name not in POOLED:
        pytest.skip("it needs a class token")
    options = {"start_layer": STARTS[name][len(net.module.blocks)]} if name in STARTS else {}
    twin = getattr(twins, name.replace("-", "_"))
    theirs = [twin(known_twin(model, torch.float32, i), **options) for i in (0, 2)]
    together = attribute(net, images, name, targets, batch_size=8).maps
    assert together.shape == (3, *net.module.patch_embed.grid_size)
    assert_close(together[[0, 2]], theirs)
    alone = attribute(net, images[2:], name, targets[2], batch_size=8).maps
    assert_close(alone, theirs[1:])


OPTIONS = [
    ("raw-attention", {"layer": 0}),
    ("raw-attention", {"layer": -2, "heads": "max"}),
    ("rollout", {"start_layer": 1}),
    ("rollout", {"heads": "max", "discard": 0.5}),
    ("rollout", {"variant": "vit-explain"}),
    ("rollout", {"variant": "vit-explain", "heads": "min", "discard": 0.4, "start_layer": 2}),
    ("rollout", {"variant": "tam"}),
    ("rollout", {"variant": "tam", "heads": "max", "discard": 0.3, "start_layer": 1}),
    ("cgw2", {"start_layer": 2}),
    ("cgw2", {"clip": "mean"}),
    ("attention-grad-cam", {"layer": 1, "positive": False}),
    ("tam", {"start_layer": 0, "steps": 5}),
    ("bt-h", {"start_layer": 0, "steps": 5}),
    ("bt-t", {"start_layer": 0, "steps": 5}),
]


@pytest.mark.parametrize("model", ["distilled", SLOW["deit-distilled"]])
@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=[f"{n}-{list(o.values())}" for n, o in OPTIONS])
def test_options(name, options, model):
    # In float64, as which entries are discarded hangs on the last bits.
    net, images, targets, _read = case(model, torch.float64)
    twin = getattr(twins, name.replace("-", "_"))
    theirs = [twin(known_twin(model, torch.float64, i), **options) for i in (0, 2)]
    together = attribute(net, images, name, targets, batch_size=8, **options).maps
    assert_close(together[[0, 2]], theirs)
    usual = {"steps": 5} if "steps" in options else {}
    alone, usual = (attribute(net, images[2:], name, targets[2], **given).maps for given in (options, usual))
    assert_close(alone, theirs[1:])
    assert (alone - usual).abs().max() > 1e-3 * usual.abs().max()


@pytest.mark.parametrize("name", ["cgw2", "attention-grad-cam", "tam", "bt-h", "bt-t"])
def test_scores_can_be_differentiated(name):
    net, images = classifier(MODELS["registers"][0]()), pictures(1)
    options = {"start_layer": 1} if name in STARTS else {}
    twin = getattr(twins, name.replace("-", "_"))(twin_of(net, images, 2, [0], output="score"), **options)
    assert_close(attribute(net, images, name, 2, output="score", **options).maps, [twin])


@pytest.mark.parametrize("name", ["tam", "bt-h", "bt-t"])
def test_the_way_can_start_elsewhere(name):
    net, images = classifier(MODELS["registers"][0]()), pictures(1)
    black = net.normalize(torch.zeros_like(images))
    twin = getattr(twins, name.replace("-", "_"))(twin_of(net, images, 2, [0], hidden=black), start_layer=1)
    assert_close(attribute(net, images, name, 2, baseline="black", start_layer=1).maps, [twin])


@pytest.mark.parametrize("name", NAMES)
def test_more_images_than_fit_at_once(name):
    net, images = classifier(MODELS["distilled"][0]()), pictures(5)
    targets, ids = torch.tensor(TARGETS[:5]), [str(i) for i in range(5)]
    whole, parts = (explain(Batch(net, images, targets, ids, 0, Runner(net, batch_size=size)), name) for size in (5, 2))
    torch.testing.assert_close(parts, whole, rtol=1e-4, atol=1e-5 * float(whole.abs().max()))


@pytest.mark.parametrize(
    ("name", "forwards"),
    [("raw-attention", 1), ("rollout", 1), ("cgw2", 1), ("attention-grad-cam", 1), ("tam", 21), ("bt-h", 21)],
)
def test_forwards_per_image(name, forwards):
    net, images = classifier(MODELS["distilled"][0]()), pictures(3)
    assert net.anatomy.blocks  # looked up beforehand, as finding it out takes a forward
    sizes = []
    net.module.register_forward_pre_hook(lambda module, args: sizes.append(len(args[0])))
    attribute(net, images, name, TARGETS[:3], batch_size=30)
    # One more to know the confidence.
    assert sum(sizes) == 3 * (1 + forwards)
    assert max(sizes) <= 30


@pytest.mark.parametrize(
    ("name", "differentiated"), [("tam", {3}), ("bt-t", {3}), ("bt-h", {1, 2, 3}), ("cgw2", {0, 1, 2, 3})]
)
def test_gradients_go_back_only_as_far_as_needed(name, differentiated):
    net = classifier(MODELS["distilled"][0]())
    seen = set()
    for number, block in enumerate(net.module.blocks):
        block.register_forward_hook(
            lambda module, args, out, number=number: seen.add(number) if out.requires_grad else None
        )
    attribute(net, pictures(2), name, TARGETS[:2])
    assert seen == differentiated


@pytest.mark.parametrize("name", ["raw-attention", "rollout"])
def test_lower_precision_is_used_where_no_gradients_are_needed(name, monkeypatch):
    net, images = classifier(MODELS["registers"][0]()), pictures(2)
    full, half = (attribute(net, images, name, precision=p).maps for p in ("fp32", "bf16"))
    assert 0 < (full - half).abs().max() < 0.1 * full.abs().max()
    monkeypatch.setattr(torch, "compile", lambda function, **options: function)  # takes seconds to load
    with pytest.raises(OptionError, match="no compile="):
        attribute(net, images, name, compile=True)


@pytest.mark.parametrize("name", POOLED)
def test_modules_that_are_in_half_precision_themselves(name):
    images = pictures(2)
    full, half = (
        attribute(classifier(MODELS["registers"][0](), dtype), images, name, TARGETS[:2]).maps.flatten(1)
        for dtype in (torch.float32, torch.bfloat16)
    )
    assert torch.nn.functional.cosine_similarity(half, full).min() > 0.99


def as_torchvision(module):
    """A ViT of timm as one of torchvision."""
    from torchvision.models.vision_transformer import VisionTransformer as TorchvisionViT

    names = {
        "cls_token": "class_token",
        "pos_embed": "encoder.pos_embedding",
        "patch_embed.proj": "conv_proj",
        "blocks.": "encoder.layers.encoder_layer_",
        "norm1": "ln_1",
        "norm2": "ln_2",
        "mlp.fc1": "mlp.0",
        "mlp.fc2": "mlp.3",
        "attn.proj": "self_attention.out_proj",
        "attn.qkv.": "self_attention.in_proj_",
    }
    state = {renamed(key, names): value for key, value in module.state_dict().items()}
    for part in ("weight", "bias"):
        state[f"encoder.ln.{part}"] = state.pop(f"norm.{part}")
        state[f"heads.head.{part}"] = state.pop(f"head.{part}")
    other = TorchvisionViT(32, 8, num_layers=3, num_heads=3, hidden_dim=24, mlp_dim=96, num_classes=5)
    other.load_state_dict(state)
    return other.eval()


def as_transformers(module):
    """A ViT of timm as one of transformers."""
    transformers = pytest.importorskip("transformers", minversion="5")  # whose names these are
    names = {
        "cls_token": "vit.embeddings.cls_token",
        "pos_embed": "vit.embeddings.position_embeddings",
        "patch_embed.proj": "vit.embeddings.patch_embeddings.projection",
        "blocks.": "vit.layers.",
        "norm1": "layernorm_before",
        "norm2": "layernorm_after",
        "attn.proj": "attention.o_proj",
        "head.": "classifier.",
    }
    state = {renamed(key, names): value for key, value in module.state_dict().items()}
    for part in ("weight", "bias"):
        state[f"vit.layernorm.{part}"] = state.pop(f"norm.{part}")
        for i in range(3):
            parts = state.pop(f"vit.layers.{i}.attn.qkv.{part}").chunk(3)
            for letter, own in zip("qkv", parts, strict=True):
                state[f"vit.layers.{i}.attention.{letter}_proj.{part}"] = own
    config = transformers.ViTConfig(
        hidden_size=24,
        num_hidden_layers=3,
        num_attention_heads=3,
        intermediate_size=96,
        image_size=32,
        patch_size=8,
        num_labels=5,
        layer_norm_eps=1e-6,
    )
    other = transformers.ViTForImageClassification(config)
    other.load_state_dict(state)
    return other.eval()


def renamed(key, names):
    for old, new in names.items():
        key = key.replace(old, new)
    return key


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("copied", [as_torchvision, as_transformers])
def test_the_same_network_of_another_library_has_the_same_maps(copied, name):
    module, images = tiny(), pictures(2)
    ours, theirs = (attribute(classifier(m), images, name, TARGETS[:2]).maps for m in (module, copied(module)))
    assert_close(theirs, ours.double())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("model", ["swin", "nest", "levit"])
def test_windows_and_changing_grids_are_refused(name, model):
    net = untrained(model)
    with pytest.raises(OptionError, match=rf"{name} does not fit zoo/{model}"):
        attribute(net, torch.rand(1, 3, 56, 56), name)


@pytest.mark.parametrize("name", POOLED)
def test_models_with_windows_are_known_not_to_fit(name):
    nets = {model: untrained(model) for model in ("swin-4", "nest", "pit", "deit")}
    reasons = {model: all_methods()[name].incompatibility(net) for model, net in nets.items()}
    assert "windows" in reasons["swin-4"]
    assert "windows" in reasons["nest"]
    assert reasons["pit"] is None  # can be entered after its pooling
    assert reasons["deit"] is None


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(POOLED)))
def test_without_class_token_is_refused_where_nothing_else_is_defined(name):
    with pytest.raises(OptionError, match="class token"):
        attribute(classifier(MODELS["pooled"][0]()), pictures(1), name)


@pytest.mark.parametrize("name", ["rollout", "cgw2", "tam", "bt-h"])
def test_the_message_says_where_a_model_that_pools_can_be_entered(name):
    net = untrained("pit")
    images = torch.rand(2, 3, 56, 56)
    with pytest.raises(OptionError, match=r"13×13 .* 7×7.*start_layer=2"):
        attribute(net, images, name)
    assert attribute(net, images, name, start_layer=2).maps.shape == (2, 7, 7)


@pytest.mark.parametrize("loudness", [1e-3, 1.0])  # an activation is almost linear where values are small, or large
def test_values_need_a_linear_projection(loudness):
    module = lively(copy.deepcopy(untrained("levit").module))  # an activation before the projection
    net = untrained("levit").with_module(module)
    for name, parameter in module.named_parameters():
        if ".qkv." in name:
            parameter.data *= loudness
    with pytest.raises(OptionError, match="linear"):
        attribute(net, torch.rand(1, 3, 56, 56), "bt-t", start_layer=3)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("raw-attention", {"layer": 3}, "has 3 blocks"),
        ("raw-attention", {"heads": "median"}, "'mean', 'max' or 'min'"),
        ("attention-grad-cam", {"layer": -4}, "has 3 blocks"),
        ("rollout", {"variant": "abnar"}, "'chefer', 'vit-explain' or 'tam'"),
        ("rollout", {"discard": 1.0}, "discard=1.0; it can be a number from 0 to below 1"),
        ("rollout", {"start_layer": 3}, "has 3 blocks"),
        ("cgw2", {"start_layer": -1}, "from 0 to 2"),
        ("cgw2", {"clip": "all"}, "'heads' or 'mean'"),
        ("tam", {"steps": 1}, "steps=1; it can be a whole number from 2 on"),
        ("bt-h", {"start_layer": 3}, "has 3 blocks"),
        ("bt-t", {"start_layer": 3}, "has 3 blocks"),
    ],
)
def test_wrong_options(name, options, said):
    with pytest.raises(OptionError, match=said):
        attribute(classifier(MODELS["registers"][0]()), pictures(1), name, **options)


@pytest.mark.parametrize(("alias", "name"), [("chefer2", "cgw2"), ("gae", "cgw2"), ("attention-rollout", "rollout")])
def test_aliases(alias, name):
    net, images = classifier(MODELS["registers"][0]()), pictures(1)
    found = attribute(net, images, alias)
    assert found.settings["method"] == name
