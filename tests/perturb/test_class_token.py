"""Vision transformers without the tokens that nobody reads: the same answers and gradients, with less arithmetic."""

import pytest
import timm
import torch
from torch.utils.flop_counter import FlopCounterMode

from suffice import Classifier
from suffice.perturb import Runner
from suffice.perturb.class_token import without_unread_tokens

SMALL = {"img_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 3, "num_heads": 4, "num_classes": 5}
MODELS = {
    "class token": ("vit_tiny_patch16_224", {}),
    "registers": ("vit_tiny_patch16_224", {"reg_tokens": 2}),
    "layer scale, normalized queries, no bias": (
        "vit_tiny_patch16_224", {"init_values": 0.5, "qk_norm": True, "qkv_bias": False}
    ),
    "distilled": ("deit_tiny_distilled_patch16_224", {}),
}  # fmt: skip


def made(name="vit_tiny_patch16_224", **options):
    torch.manual_seed(0)
    module = timm.create_model(name, **SMALL, **options).eval()
    for parameter in module.parameters():  # so that no part is without effect
        torch.nn.init.normal_(parameter, std=0.2)
    return module


@pytest.mark.parametrize("case", MODELS.values(), ids=MODELS)
def test_answers_and_gradients_are_the_same(case):
    name, options = case
    module = made(name, **options).double()
    lean = without_unread_tokens(module)
    assert lean is not module
    images = torch.rand(3, 3, 32, 32, dtype=torch.float64, requires_grad=True)
    (own, found), slopes = (module(images), lean(images)), torch.randn(3, 5, dtype=torch.float64)
    assert torch.allclose(own, found, atol=1e-10)
    expected, gradient = (torch.autograd.grad((logits * slopes).sum(), images)[0] for logits in (own, found))
    assert torch.allclose(expected, gradient, atol=1e-10)


@pytest.mark.parametrize(
    "module",
    [
        made(global_pool="avg"),
        made(global_pool="avg", class_token=False),
        timm.create_model("resnet18", num_classes=5),
    ],
    ids=["mean of tokens", "no class token", "CNN"],
)
def test_where_all_tokens_are_read_nothing_is_left_out(module):
    assert without_unread_tokens(module) is module


def test_what_is_looked_at_is_computed():
    module = made()
    handle = module.blocks[-1].attn.register_forward_hook(lambda *_: None)
    assert without_unread_tokens(module) is module
    handle.remove()
    assert without_unread_tokens(module) is not module


def test_the_model_stays_as_it_is_and_shares_its_weights():
    module = made()
    before, parts = {n: p.clone() for n, p in module.state_dict().items()}, list(module.modules())
    lean = without_unread_tokens(module)
    assert [id(part) for part in module.modules()] == [id(part) for part in parts]
    assert {id(p) for p in lean.parameters()} == {id(p) for p in module.parameters()}
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def flops(runner):
    with FlopCounterMode(display=False) as counted:
        runner.logits(torch.zeros(2, 3, 32, 32))
    return counted.get_total_flops()


@pytest.mark.parametrize("work", ["scores", "gradients"])
def test_runners_do_less_arithmetic(work):
    net = Classifier(made(), size=32, mean=(0.5,) * 3, std=(0.5,) * 3)
    whole, less = (flops(Runner(net, fold=fold).variant(work)) for fold in (False, True))
    # In the last of three blocks keys and values, two of twelve products with weights, are left for all tokens.
    assert 0.7 < less / whole < 0.8
    inside = Runner(net).variant("gradients inside" if work == "gradients" else "inside")
    assert flops(inside) == whole
