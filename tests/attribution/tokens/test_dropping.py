"""Tokens left out for real: as the plain forward when none are, as by hand when some are."""

import pytest
import timm
import torch
import torchvision

from suffice.attribution.tokens.dropping import can_drop_tokens, token_dropping
from suffice.perturb import Runner
from suffice.vision import Classifier
from suffice.vision.zero_shot import ZeroShot
from tests.attribution.nets import MEAN, STD, pictures, small_cnn
from tests.attribution.token_nets import distilled, lively, plain, registers
from tests.vision.two_towers import enlivened, transformers_model


def from_torchvision():
    module = torchvision.models.VisionTransformer(
        image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=24, mlp_dim=48, num_classes=5
    )
    return Classifier(lively(module), size=32, mean=MEAN, std=STD)


def from_transformers(family="ViT", head="ForImageClassification"):
    transformers = pytest.importorskip("transformers")
    config = getattr(transformers, f"{family}Config")(
        image_size=32,
        patch_size=8,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=48,
        num_labels=5,
    )
    return Classifier(lively(getattr(transformers, family + head)(config)), size=32, mean=MEAN, std=STD)


def with_teacher():
    return from_transformers("DeiT", "ForImageClassificationWithTeacher")


def in_a_wrapper():
    return Classifier(torch.nn.Sequential(torch.nn.Identity(), plain().module), size=32, mean=MEAN, std=STD)


def zero_shot(model, vision):
    texts = torch.nn.functional.normalize(torch.randn(5, 16, generator=torch.Generator().manual_seed(0)), dim=1)
    projection = torch.nn.Linear(24, 16, bias=False) if vision == "vision_model" else torch.nn.Identity()
    module = ZeroShot(getattr(model, vision), lively(projection), texts, scale=10.0)
    return Classifier(module.eval(), size=32, mean=MEAN, std=STD)


def from_clip():
    return zero_shot(transformers_model("clip"), "vision_model")


def from_siglip():
    return zero_shot(transformers_model("siglip"), "vision_model")


def from_open_clip():
    open_clip = pytest.importorskip("open_clip", reason="open_clip is not installed: pip install open_clip_torch")
    text = {"context_length": 12, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 1}
    vision = {"image_size": 32, "layers": 2, "width": 64, "head_width": 32, "patch_size": 8}
    return zero_shot(enlivened(open_clip.CLIP(16, vision, text)), "visual")


MAKERS = [
    plain, distilled, registers, from_torchvision, from_transformers, with_teacher, in_a_wrapper, from_clip,
    from_siglip, from_open_clip,
]  # fmt: skip


@pytest.mark.parametrize("make", MAKERS)
def test_keeping_all_tokens_is_the_plain_forward(make):
    net = make()
    inputs = net.normalize(pictures(5))
    before = {name: value.clone() for name, value in net.module.state_dict().items()}
    assert can_drop_tokens(net.module)
    images = torch.tensor([4, 0, 4, 2])
    everything = torch.arange(16).expand(4, -1)
    with token_dropping(Runner(net, batch_size=2), inputs) as ask:
        all_kept = ask(images, everything)
        shuffled = ask(images, everything.flip(1))
        few = ask(images, everything[:, ::2])
    whole = net.logits(inputs)[images]
    torch.testing.assert_close(all_kept, whole, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(shuffled, whole, rtol=1e-4, atol=1e-5)  # tokens are a set
    assert (few - whole).abs().max() > 1e-2
    assert not net.module.get_submodule(net.anatomy.blocks[0])._forward_pre_hooks
    assert all(torch.equal(value, before[name]) for name, value in net.module.state_dict().items())
    torch.testing.assert_close(net.logits(inputs)[images], whole)


@pytest.mark.parametrize("make", [plain, distilled, registers])
@torch.no_grad()
def test_some_tokens_by_hand(make):
    net = make(torch.float64)
    inputs, module = net.normalize(pictures(3)), net.module
    kept = torch.tensor([[1, 5, 6], [0, 3, 15]])
    prefix = module.num_prefix_tokens
    with token_dropping(Runner(net), inputs) as ask:
        ours = ask(torch.tensor([2, 0]), kept)
    for row, (image, own) in enumerate(zip([2, 0], kept, strict=True)):
        x = module._pos_embed(module.patch_embed(inputs[image : image + 1]))
        x = torch.cat([x[:, :prefix], x[:, prefix + own]], dim=1)
        by_hand = module.forward_head(module.norm(module.blocks(module.norm_pre(x))))
        assert x.shape[1] == prefix + 3
        torch.testing.assert_close(ours[row : row + 1], by_hand.float())


def test_half_the_tokens_are_less_than_half_the_work():
    from torch.utils.flop_counter import FlopCounterMode

    net = plain()
    inputs = net.normalize(pictures(4))
    with token_dropping(Runner(net), inputs) as ask:
        counts = []
        for step in (1, 2):
            with FlopCounterMode(display=False) as counter:
                ask(torch.arange(4), torch.arange(0, 16, step).expand(4, -1))
            counts.append(counter.get_total_flops())
    assert counts[1] < 0.6 * counts[0]  # 1 + 8 tokens of 1 + 16


def test_an_error_leaves_no_trace():
    net = plain()
    before, inputs, runner = net.module.blocks[0], net.normalize(pictures(1)), Runner(net)
    with token_dropping(runner, inputs) as ask:
        expected = ask(torch.tensor([0]), torch.tensor([[0, 3]]))
        with pytest.raises(IndexError):
            ask(torch.tensor([3]), torch.tensor([[0]]))
    with token_dropping(runner, inputs) as ask:
        assert torch.equal(ask(torch.tensor([0]), torch.tensor([[0, 3]])), expected)
    assert net.module.blocks[0] is before
    assert not before._forward_pre_hooks


def test_precision_of_the_runner():
    net = plain()
    inputs = net.normalize(pictures(2))
    with token_dropping(Runner(net, precision="bf16"), inputs) as ask:
        rough = ask(torch.arange(2), torch.arange(16).expand(2, -1))
    torch.testing.assert_close(rough, net.logits(inputs), rtol=0.1, atol=0.3)
    assert (rough != net.logits(inputs)).any()


def test_others_cannot():
    assert not can_drop_tokens(small_cnn().module)
    swin = timm.models.SwinTransformer(img_size=32, patch_size=4, embed_dim=8, depths=(1, 1), num_heads=(1, 1))
    assert not can_drop_tokens(swin)
    assert not can_drop_tokens(timm.models.Beit(img_size=32, patch_size=8, embed_dim=24, depth=1, num_heads=2))
