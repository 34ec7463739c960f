"""ViT-CX against a literal twin, one image and one mask at a time in float64."""

import numpy as np
import pytest
import timm
import torch
from sklearn.cluster import AgglomerativeClustering
from torch.nn.functional import interpolate

import suffice
from suffice.attribution import attribute
from suffice.attribution.channels import distances, stretched, token_masks
from suffice.attribution.methods.rise import RandomMasks
from suffice.errors import AnatomyError, OptionError
from suffice.vision import Classifier
from suffice.vision.identity import image_seed
from suffice.vision.noise import normal_noise
from tests.attribution.nets import MEAN, STD, assert_close, pictures, small_cnn
from tests.attribution.token_nets import awake, distilled, lively, plain
from tests.attribution.trained import scenes, trained, untrained

IMAGES = pictures(8)
TARGETS = [1, 4, 2, 0, 3, 1, 2, 4]


def enlarged(channel, size):
    large = interpolate(channel[None, None], size, mode="bilinear", align_corners=False)[0, 0]
    return (large - large.min()) / (large.max() - large.min())


def literal_masks(net, x, layer, masks, threshold, linkage, representative):
    """Pairs of a mask [H, W] and its first channel."""
    kept = {}
    part = net.module.get_submodule(layer.removesuffix(":input"))
    handle = part.register_forward_hook(lambda m, i, o: kept.update(seen=i[0] if ":" in layer else o))
    net.module(x)
    handle.remove()
    channels = kept["seen"][0]
    if channels.dim() == 2:
        channels = channels[net.module.num_prefix_tokens :].T.unflatten(1, net.module.patch_embed.grid_size)
    every = [enlarged(channel, net.size) for channel in channels]
    if masks == "all":
        return [(mask, number) for number, mask in enumerate(every)]
    flat = torch.stack(every).flatten(1)
    flat = flat / flat.norm(dim=1, keepdim=True)
    apart = (1 - flat @ flat.T).clamp(min=0).numpy()
    grouping = AgglomerativeClustering(None, metric="precomputed", linkage=linkage, distance_threshold=threshold)
    found = []
    for cluster in range(grouping.fit(apart).n_clusters_):
        own = np.flatnonzero(grouping.labels_ == cluster)
        total = sum(every[i] for i in own)
        if representative == "mean":
            found.append((total / len(own), own[0]))
        else:
            found.append(((total - total.min()) / (total.max() - total.min()), own[0]))
    return found


@torch.no_grad()
def literal_vit_cx(
    net,
    image,
    target,
    layer,
    masks="clustered",
    impact="debiased",
    coverage="corrected",
    threshold=0.1,
    linkage="complete",
    representative=None,
    sigma=0.1,
    seed=0,
    reading="code",
):
    """The map of one image, as pixels [1, 3, H, W] or as it was opened, and how many masks it is made of."""
    x = net.normalize(net.prepare(image))
    imagenet_std, own_std = (torch.tensor(s).double().view(3, 1, 1) for s in ((0.229, 0.224, 0.225), net.std))
    seeds = torch.tensor([image_seed(seed, own) for own in suffice.open_images(image).ids])

    def say(inputs):
        return net.module(inputs).softmax(dim=1)[0, target]

    total, share = torch.zeros(net.size).double(), torch.zeros(net.size).double()
    representative = representative or ("mean" if reading == "paper" else "stretched")
    made = literal_masks(net, x, layer, masks, threshold, linkage, representative)
    for mask, first in made:
        chance = normal_noise(seeds, torch.tensor([int(first)]), (3, *net.size)).double()
        noise = sigma * imagenet_std / own_std * chance * (1 - mask)
        if impact == "debiased":
            weight = say(x * mask + noise) + (say(x) - say(x + noise))
        else:
            weight = say(x * mask)
        total += weight * mask
        share += mask / len(made)
    if coverage == "corrected":
        total = torch.where(share == 0, 0, total / share)
    return total.float(), len(made)


@pytest.mark.parametrize(
    ("make", "layer", "options"),
    [
        (plain, "blocks.2.attn", {"reading": "paper", "threshold": 0.2}),
        (distilled, "blocks.1.attn", {"reading": "paper", "threshold": 0.2, "seed": 4}),
        (plain, "blocks.2.norm1", {"threshold": 0.25}),
        (plain, "blocks.2.norm2:input", {"layer": "attention-residual", "threshold": 0.2}),
        (distilled, "blocks.1", {"layer": "block-output", "representative": "mean", "threshold": 0.2}),
        (plain, "blocks.1.norm2", {"layer": "blocks.1.norm2", "threshold": 0.2}),
        (distilled, "blocks.0", {"layer": "blocks.0", "linkage": "average", "threshold": 0.15, "sigma": 0.4}),
        (plain, "blocks.2.attn", {"layer": "attention-output", "masks": "all", "coverage": "summed"}),
        (plain, "blocks.2.attn", {"layer": "attention-output", "impact": "plain", "threshold": 0.2}),
        (small_cnn, "second", {"threshold": 0.15}),
        ("deit", "blocks.3.attn", {"reading": "paper"}),
        ("deit-distilled", "blocks.3.norm1", {"seed": 4}),
    ],
)
def test_equals_a_literal_twin(make, layer, options):
    # All in float64, as which channels are merged hangs on the last bits.
    known = isinstance(make, str)
    net = trained(make, torch.float64) if known else make(torch.float64)
    images, targets = (given[3:6] for given in scenes()) if known else (IMAGES, TARGETS)
    ours = attribute(net, images, "vit-cx", targets, batch_size=64, **options).maps
    alone = attribute(net, images[:1], "vit-cx", targets[0], **options).maps
    torch.testing.assert_close(alone, ours[:1], rtol=1e-5, atol=1e-7)
    numbers = set()
    for number in (0, 2) if known else (0, 3, 6, 7):
        twin, count = literal_vit_cx(net, images[number : number + 1], targets[number], **{**options, "layer": layer})
        torch.testing.assert_close(ours[number], twin, rtol=1e-4, atol=1e-5)
        if known:
            assert_close(ours[number][None], [twin.double()])
        numbers.add(count)
    if options.get("masks") != "all":
        channels = 64 if known else 12 if make is small_cnn else 24
        assert min(numbers) > 1
        assert max(numbers) < channels


def test_random_masks_by_hand():
    net, count = plain(torch.float64), 30
    made = RandomMasks(count, 7, 0.5, seed=2).make(torch.arange(count), (32, 32)).double()
    x = net.normalize(IMAGES[:2])
    options = {"masks": "random", "random_masks": count, "impact": "plain"}
    ours = attribute(net, IMAGES[:2], "vit-cx", TARGETS[:2], **options, seed=2).maps
    for number in range(2):
        with torch.no_grad():
            said = net.module(x[number : number + 1] * made[:, None]).softmax(dim=1)[:, TARGETS[number]]
        twin = (said[:, None, None] * made).sum(dim=0) / made.mean(dim=0)
        torch.testing.assert_close(ours[number], twin.float(), rtol=1e-4, atol=1e-5)
    debiased = attribute(net, IMAGES[:2], "vit-cx", TARGETS[:2], masks="random", random_masks=count, seed=2).maps
    assert (debiased - ours).abs().max() > 1e-3


@pytest.mark.parametrize(("grid", "size"), [((4, 5), (32, 30)), ((7, 7), (7, 7)), ((3, 3), (10, 11)), ((1, 2), (5, 6))])
def test_extremes_and_distances_of_enlarged_maps_without_enlarging(grid, size):
    maps = torch.rand(2, 6, *grid, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    small, varies = stretched(maps, size)
    large = interpolate(small, size, mode="bilinear", align_corners=False).flatten(2)
    assert varies.all()
    torch.testing.assert_close(large.amin(dim=2), torch.zeros(2, 6, dtype=torch.float64), atol=1e-12, rtol=0)
    torch.testing.assert_close(large.amax(dim=2), torch.ones(2, 6, dtype=torch.float64), atol=1e-12, rtol=0)
    cosine = torch.nn.functional.cosine_similarity(large[:, :, None], large[:, None], dim=3)
    torch.testing.assert_close(distances(small, size), 1 - cosine, atol=1e-12, rtol=0)


def test_constant_channels_make_no_masks():
    features = torch.rand(2, 5, 4, 4)
    features[0, 1] = 3.0
    features[1] = -1.0
    for threshold, representative in ((None, "mean"), (0.0, "mean"), (0.0, "stretched")):
        masks, image, first = token_masks(features, (8, 8), threshold, "complete", representative)
        assert image.tolist() == [0, 0, 0, 0]
        assert first.tolist() == [0, 2, 3, 4]
        assert masks.isfinite().all()
    net = small_cnn()
    with torch.no_grad():
        net.module.second[0].weight[:] = 0
    assert not attribute(net, IMAGES[:2], "vit-cx").maps.any()


def test_one_mask_gives_its_weight_wherever_it_shows_anything():
    net = plain()
    maps = attribute(net, IMAGES[:3], "vit-cx", threshold=1.0, layer="attention-output").maps
    for own in maps:
        values = own[own != 0]
        assert (own == 0).any()  # where the mask is 0, by definition
        torch.testing.assert_close(values, values[:1].expand_as(values), rtol=1e-4, atol=0)


def test_what_is_said_outweighs_the_reading():
    net = plain()

    def made(**options):
        return attribute(net, IMAGES[:2], "vit-cx", threshold=0.2, **options).maps

    code, paper = made(), made(reading="paper")
    assert torch.equal(code, made(reading="code", layer="blocks.2.norm1", representative="stretched"))
    assert torch.equal(paper, made(layer="attention-output", representative="mean"))
    layer_alone = made(layer="attention-output")
    assert all((layer_alone - other).abs().max() > 1e-3 for other in (code, paper))


@pytest.mark.parametrize("name", ["swin", "nest", "pit", "pit-distilled", "levit", "resnet"])
def test_models_without_a_class_token_or_with_stages(name):
    net = awake(untrained(name))
    maps = attribute(net, pictures(2, 56), "vit-cx", threshold=0.2).maps
    assert maps.shape == (2, 56, 56)
    assert maps.flatten(1).std(dim=1).min() > 0


def test_swin_reads_the_stage_before_the_last_with_its_own_threshold():
    module = timm.models.SwinTransformer(
        img_size=32, patch_size=2, embed_dim=16, depths=(1, 2, 1), num_heads=(1, 2, 2), window_size=4, num_classes=5
    )
    net = Classifier(lively(module), size=32, mean=MEAN, std=STD, name="small-swin")
    block = module.layers[1].blocks[1]  # its windows are shifted
    kept = {}
    handle = block.register_forward_hook(lambda m, i, o: kept.update(into=i[0], out=o))
    with torch.no_grad():
        module(net.normalize(IMAGES[:1]))
        handle.remove()
        attention = block._attn(block.norm1(kept["into"]))
    masks, _, _ = token_masks(attention.permute(0, 3, 1, 2), (32, 32), 0.05, "complete", "mean")
    assert 1 < len(masks) <= 32
    by_hand = interpolate(masks[None], (32, 32), mode="bilinear")[0]
    said = net.module(net.normalize(IMAGES[:1]) * by_hand[:, None].float()).softmax(dim=1)[:, 1].detach()
    expected = torch.einsum("k,khw->hw", said.double(), by_hand) / by_hand.mean(dim=0)
    ours = attribute(net, IMAGES[:1], "vit-cx", 1, reading="paper", impact="plain").maps[0]
    torch.testing.assert_close(ours, expected.float(), rtol=1e-3, atol=1e-4)


def test_all_transformers_of_transformers_work():
    transformers = pytest.importorskip("transformers")
    config = transformers.SwinConfig(
        image_size=32, patch_size=2, embed_dim=16, depths=[1, 1], num_heads=[1, 2], window_size=4, num_labels=5
    )
    net = Classifier(lively(transformers.SwinForImageClassification(config)), size=32, mean=MEAN, std=STD)
    assert attribute(net, IMAGES[:2], "vit-cx", threshold=0.3).maps.flatten(1).std(dim=1).min() > 0


def test_mistakes():
    net = plain()
    for name, value in (
        ("reading", "both"),
        ("masks", "some"),
        ("impact", "big"),
        ("coverage", "no"),
        ("representative", "sum"),
    ):
        with pytest.raises(OptionError, match=f"{name}='{value}'"):
            attribute(net, IMAGES[:1], "vit-cx", **{name: value})
    with pytest.raises(OptionError, match="linkage='ward'"):
        attribute(net, IMAGES[:1], "vit-cx", linkage="ward")
    with pytest.raises(OptionError, match="sigma=-1"):
        attribute(net, IMAGES[:1], "vit-cx", sigma=-1)
    with pytest.raises(OptionError, match=r"threshold=-0\.1"):
        attribute(net, IMAGES[:1], "vit-cx", threshold=-0.1)
    with pytest.raises(OptionError, match="small-cnn, which has no transformer blocks"):
        attribute(small_cnn(), IMAGES[:1], "vit-cx", layer="attention-input")
    with pytest.raises(OptionError, match=r"cannot read 'blocks\.2\.attn\.q_norm' of .* as maps of \(4, 4\)"):
        attribute(net, IMAGES[:1], "vit-cx", layer="blocks.2.attn.q_norm")
    with pytest.raises(AnatomyError, match=r"blocks\.3"):
        attribute(net, IMAGES[:1], "vit-cx", layer="blocks.3")
