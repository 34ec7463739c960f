from __future__ import annotations

import pytest
import timm
import torch

from suffice.errors import AnatomyError
from suffice.vision.anatomy import Anatomy, Layout, describe


def numbered(h: int, w: int, channels: int = 2, n: int = 2) -> torch.Tensor:
    """Maps [N, C, h, w] in which every value is different."""
    return torch.arange(n * channels * h * w, dtype=torch.float32).view(n, channels, h, w)


def test_tokens_are_read_row_by_row_after_the_prefix():
    maps = numbered(2, 3)
    sequence = torch.stack([maps[:, :, i, j] for i in range(2) for j in range(3)], dim=1)
    sequence = torch.cat([torch.full((2, 4, 2), -1.0), sequence], dim=1)
    layout = Layout("tokens", (2, 3), prefix=4)
    assert torch.equal(layout.maps(sequence), maps)
    assert torch.equal(layout.tokens(sequence), sequence[:, 4:])


def test_channels_last_maps_are_read_when_all_axes_are_equal():
    maps = numbered(3, 3, channels=3)
    last = torch.empty(2, 3, 3, 3)
    for c in range(3):
        last[:, :, :, c] = maps[:, c]
    layout = Layout("nhwc", (3, 3))
    assert torch.equal(layout.maps(last), maps)
    assert torch.equal(layout.tokens(last)[:, 5], maps[:, :, 1, 2])


def test_blocked_layout_is_what_nest_puts_together():
    from timm.models.nest import blockify

    maps = numbered(4, 8)
    blocked = blockify(maps.permute(0, 2, 3, 1), 2)
    assert blocked.shape == (2, 8, 4, 2)
    layout = Layout("blocked", (4, 8), side=2)
    assert torch.equal(layout.maps(blocked), maps)
    assert torch.equal(layout.tokens(blocked)[:, 8 + 3], maps[:, :, 1, 3])


@pytest.mark.parametrize(
    ("layout", "fitting", "misfit"),
    [
        (Layout("nchw", (2, 3)), (1, 9, 2, 3), (1, 2, 3, 9)),
        (Layout("nhwc", (2, 3)), (1, 2, 3, 9), (1, 9, 2, 3)),
        (Layout("tokens", (2, 3), prefix=1), (1, 7, 9), (1, 6, 9)),
        (Layout("blocked", (2, 4), side=2), (1, 2, 4, 9), (1, 4, 2, 9)),
    ],
)
def test_shapes_are_checked_before_reading(layout, fitting, misfit):
    anatomy = Anatomy("cnn", (32, 32), target_layer="a", feature_layers=("a",), layouts={"a": layout})
    assert anatomy.maps("a", torch.zeros(fitting)).shape == (1, 9, *layout.grid)
    assert anatomy.tokens("a", torch.zeros(fitting)).shape == (1, layout.grid[0] * layout.grid[1], 9)
    with pytest.raises(AnatomyError, match=r"describe\(module, size\) again"):
        anatomy.maps("a", torch.zeros(misfit))


def test_a_layer_without_layout_is_refused_with_a_suggestion():
    anatomy = Anatomy("cnn", (8, 8), "layer4.1", ("layer4.1",), {"layer4.1": Layout("nchw", (2, 2))})
    with pytest.raises(AnatomyError, match=r"'layer4.1'"):
        anatomy.maps("layer4", torch.zeros(1, 1, 2, 2))


def test_parts_of_blocks_and_inputs_are_laid_out_as_the_block_or_layer():
    module = timm.models.VisionTransformer(img_size=16, patch_size=8, embed_dim=8, depth=2, num_heads=2, num_classes=3)
    anatomy = describe(module, 16)
    for layer in ("blocks.1.norm2", "blocks.1.norm2:input", "blocks.1:input", "norm:input"):
        assert anatomy.layout(layer) == anatomy.layout("blocks.1")
        assert anatomy.maps(layer, torch.zeros(1, 5, 7)).shape == (1, 7, 2, 2)
    with pytest.raises(AnatomyError, match=r"'blocks\.2\.norm2'"):
        anatomy.layout("blocks.2.norm2")


def test_an_anatomy_must_say_how_to_read_what_it_names():
    with pytest.raises(AnatomyError, match="no Layout"):
        Anatomy("cnn", (8, 8), "a", ("b",), {"a": Layout("nchw", (2, 2))})
    with pytest.raises(AnatomyError, match="one entry a block"):
        Anatomy("transformer", (8, 8), "a", ("a",), {"a": Layout("nchw", (2, 2))}, blocks=("a",))
