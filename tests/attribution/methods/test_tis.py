"""TIS against a literal twin, one image and one mask at a time in float64."""

import numpy as np
import pytest
import torch

import suffice
from suffice.attribution import attribute
from suffice.attribution.channels import first_samples
from suffice.attribution.methods.tis import working_grid
from suffice.errors import OptionError
from suffice.perturb import Runner, make_baseline
from suffice.vision.identity import image_seed
from tests.attribution.nets import assert_close, pictures, small_cnn
from tests.attribution.token_nets import awake, distilled, plain, registers
from tests.attribution.trained import scenes, trained, untrained

IMAGES = pictures(8)
TARGETS = [1, 4, 2, 0, 3, 1, 2, 4]
IDS = [picture.id for picture in suffice.open_images(IMAGES)]


def literal_masks(module, x, seed, clusters, ratios, emptied="zero"):
    """The masks of one image [1, 3, H, W], each a list of tokens that are kept."""
    outputs = []
    handles = [block.register_forward_hook(lambda m, i, o: outputs.append(o)) for block in module.blocks]
    module(x)
    for handle in handles:
        handle.remove()
    channels = torch.cat(outputs, dim=2)[0, module.num_prefix_tokens :].T  # a row for each channel of each block
    start = first_samples(torch.tensor([seed]), len(channels), clusters)[0]
    centroids = [channels[i] for i in start]
    for _ in range(100):
        members = [[] for _ in range(clusters)]
        for channel in channels:
            members[min(range(clusters), key=lambda c: float((channel - centroids[c]).square().sum()))].append(channel)
        moved = [
            torch.stack(own).mean(dim=0) if own else torch.zeros_like(old) if emptied == "zero" else old
            for own, old in zip(members, centroids, strict=True)
        ]
        change = sum(float((new - old).square().sum()) for new, old in zip(moved, centroids, strict=True))
        centroids = moved
        if change <= 1e-4:
            break
    tokens = range(channels.shape[1])
    return [
        sorted(sorted(tokens, key=lambda t: -float(centroid[t]))[: int(ratio * len(tokens))])
        for ratio in ratios
        for centroid, own in zip(centroids, members, strict=True)
        if own
    ]


def with_tokens(module, x, kept):
    prefix = module.num_prefix_tokens
    tokens = module._pos_embed(module.patch_embed(x))
    tokens = torch.cat([tokens[:, :prefix], tokens[:, [prefix + t for t in kept]]], dim=1)
    return module.forward_head(module.norm(module.blocks(tokens)))


def with_pixels(x, noise, kept, grid):
    patch = x.shape[2] // grid[0]
    shown = torch.zeros(grid, dtype=x.dtype)
    for t in kept:
        shown[t // grid[1], t % grid[1]] = 1
    shown = shown.repeat_interleave(patch, 0).repeat_interleave(patch, 1)
    return x * shown + noise * (1 - shown)


@torch.no_grad()
def literal_tis(net, image, target, clusters, ratios, mode, seed, emptied="zero"):
    """The map of one image, as pixels [1, 3, H, W] or as it was opened, and all masks."""
    (own,) = suffice.open_images(image).ids
    module, pixels, grid = net.module, net.prepare(image), net.module.patch_embed.grid_size
    x = net.normalize(pixels)
    noise = net.normalize(make_baseline("noise", pixels, ids=[own], seed=seed))
    total, times = torch.zeros(grid).flatten().double(), torch.zeros(grid).flatten().double()
    masks = literal_masks(module, x, image_seed(seed, own), clusters, ratios, emptied)
    for kept in masks:
        logits = with_tokens(module, x, kept) if mode == "tokens" else module(with_pixels(x, noise, kept, grid))
        for t in kept:
            total[t] += logits.softmax(dim=1)[0, target]
            times[t] += 1
    values = [float(a / b) if b else 0.0 for a, b in zip(total, times, strict=True)]
    return torch.tensor(values).view(grid), masks


@pytest.mark.parametrize(
    ("make", "clusters", "ratios", "mode"),
    [
        (plain, 20, (0.5,), "tokens"),
        (distilled, 12, (0.5, 0.2), "tokens"),
        (registers, 10, (0.3,), "tokens"),
        (plain, 15, (0.5,), "pixels"),
        ("deit", 8, (0.5, 0.2), "pixels"),
        ("deit-distilled", 8, (0.5, 0.2), "tokens"),
    ],
)
def test_equals_a_literal_twin(make, clusters, ratios, mode):
    # All in float64, as which channel joins which cluster, and which tokens are kept, hangs on the last bits.
    known = isinstance(make, str)
    net = trained(make, torch.float64) if known else make(torch.float64)
    images, targets = (given[3:6] for given in scenes()) if known else (IMAGES, TARGETS)
    options = {"masks": clusters, "ratio": ratios if len(ratios) > 1 else ratios[0], "mode": mode, "seed": 3}
    # An eighth as many images are clustered at once: three of the small ones, all of the scenes.
    ours = attribute(net, images, "tis", targets, batch_size=64 if known else 24, **options).maps
    alone = attribute(net, images[:1], "tis", targets[0], **options).maps
    torch.testing.assert_close(alone, ours[:1], rtol=1e-5, atol=1e-7)
    repeated = 0
    for number in (0, 2) if known else (0, 3, 6, 7):
        twin, masks = literal_tis(net, images[number : number + 1], targets[number], clusters, ratios, mode, seed=3)
        torch.testing.assert_close(ours[number], twin, rtol=1e-4, atol=1e-7)
        if known:
            assert_close(ours[number][None], [twin.double()])
        repeated += len(masks) - len(set(map(tuple, masks)))
    assert (ours.flatten(1).std(dim=1) / ours.mean(dim=(1, 2))).min() > 0.01
    assert repeated > 0 or len(ratios) == 1 or known  # equal masks count as often as they occur


def test_clusters_that_lose_all_channels_go_where_they_are_told():
    net = trained("deit", torch.float64)
    images, targets = (given[5:6] for given in scenes())
    options = {"masks": 64, "seed": 2}  # which empties one of the clusters
    found = {e: attribute(net, images, "tis", targets, emptied=e, **options).maps for e in ("zero", "left")}
    counts = {}
    for emptied, maps in found.items():
        twin, masks = literal_tis(net, images, targets[0], 64, (0.5,), "tokens", 2, emptied)
        torch.testing.assert_close(maps[0], twin, rtol=1e-4, atol=1e-7)
        counts[emptied] = len(masks)
    assert counts == {"zero": 64, "left": 63}
    assert (found["zero"] - found["left"]).abs().max() > 1e-4
    assert torch.equal(attribute(net, images, "tis", targets, **options).maps, found["zero"])


@torch.no_grad()
def test_equal_masks_are_asked_about_once_and_work_is_halved():
    net, asked = plain(), []
    net.module.blocks[0].register_forward_pre_hook(lambda block, given: asked.append(given[0].shape[:2]))
    attribute(net, IMAGES[:2], "tis", masks=72, ratio=0.13, batch_size=16)  # two of 16 tokens: many equal pairs
    dropped = [rows for rows, tokens in asked if tokens == 1 + 2]
    assert max(dropped) <= 16
    assert 2 < sum(dropped) < 2 * 72
    distinct = set()
    for number in range(2):
        x = net.normalize(IMAGES[number][None])
        masks = literal_masks(net.module, x, image_seed(0, IDS[number]), 72, (0.13,))
        distinct |= {(number, *kept) for kept in masks}
    assert sum(dropped) == len(distinct)


def test_tokens_that_no_mask_keeps_get_zero():
    maps = attribute(plain(), IMAGES, "tis", masks=1, ratio=0.5).maps
    assert ((maps == 0).sum(dim=(1, 2)) == 8).all()
    assert (maps >= 0).all()
    every = attribute(plain(), IMAGES, "tis", masks=3, ratio=np.float32(1))
    torch.testing.assert_close(every.maps, every.confidences[:, None, None].expand(-1, 4, 4), rtol=1e-4, atol=1e-6)


def test_never_more_masks_than_channels():
    many, exactly = (attribute(plain(), IMAGES[:2], "tis", masks=count).maps for count in (5000, 72))
    assert torch.equal(many, exactly)


@pytest.mark.parametrize("name", ["swin", "nest", "pit-distilled", "levit"])
def test_other_transformers_hide_pixels(name):
    net = awake(untrained(name))
    images = pictures(2, 56)
    with pytest.raises(OptionError, match=f"{net.name}.*mode='pixels'"):
        attribute(net, images, "tis")
    maps = attribute(net, images, "tis", mode="pixels", masks=6).maps
    assert tuple(maps.shape[1:]) == working_grid(net.anatomy)
    assert maps.flatten(1).std(dim=1).min() > 0


def test_mistakes():
    with pytest.raises(OptionError, match="it has no tokens"):
        attribute(small_cnn(), IMAGES, "tis")
    for options, words in (
        ({"masks": 0}, "masks=0; it can be a whole number from 1 on"),
        ({"ratio": 0.0}, "ratio=0.0; it can be a number above 0 to 1 or a list"),
        ({"ratio": (0.5, 1.5)}, "ratio="),
        ({"ratio": ()}, "ratio="),
        ({"iterations": 0}, "iterations=0"),
        ({"emptied": "far"}, "emptied='far'; it can be 'zero' or 'left'"),
    ):
        with pytest.raises(OptionError, match=words):
            attribute(plain(), IMAGES[:1], "tis", **options)
    with pytest.raises(OptionError, match="mode='both'"):
        attribute(plain(), IMAGES[:1], "tis", mode="both")


@pytest.mark.parametrize("mode", ["tokens", "pixels"])
def test_compiled_maps_agree(monkeypatch, mode):
    genuine, graphs = torch.compile, []

    def kept(graph, _):
        graphs.append(graph)
        return graph.forward

    monkeypatch.setattr(torch, "compile", lambda function, **options: genuine(function, backend=kept, **options))
    net, options = plain(), {"masks": 7, "ratio": (0.3, 0.6), "mode": mode, "batch_size": 4}
    expected = attribute(net, IMAGES, "tis", **options).maps
    runner = Runner(net, batch_size=4, compile=True)
    del options["batch_size"]
    for _ in range(2):
        found = attribute(net, IMAGES, "tis", runner=runner, **options).maps
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
    if mode == "tokens":
        assert len(graphs) == 2  # one for each number of tokens, whatever is asked and however often
