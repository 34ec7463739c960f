"""Clusters of feature maps as masks, each weighted by what seeing only it does to the model's decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

from suffice.attribution.channels import Linkage, Representative, TokenMasks, token_masks
from suffice.attribution.method import method
from suffice.attribution.methods.rise import RandomMasks
from suffice.attribution.tokens.block_layers import BLOCK_LAYERS, BlockLayer, block_layer
from suffice.errors import OptionError
from suffice.options import Amount, Count
from suffice.perturb import Masks
from suffice.perturb.batch import Batch
from suffice.perturb.runner import Runner
from suffice.vision.anatomy import Anatomy
from suffice.vision.noise import normal_noise
from suffice.vision.units import imagenet_unit

Reading = Literal["code", "paper"]
Source = Literal["clustered", "all", "random"]
Impact = Literal["debiased", "plain"]
Coverage = Literal["corrected", "summed"]

LAYER: Mapping[Reading, BlockLayer] = {"code": "attention-input", "paper": "attention-output"}
REPRESENTATIVE: Mapping[Reading, Representative] = {"code": "stretched", "paper": "mean"}
# As published, for plain transformers and for those whose stages differ in their grid (Swin).
THRESHOLD, THRESHOLD_OF_STAGES = 0.1, 0.05
# Less than rounding leaves of a mask that is 0 at a pixel.
_UNSEEN = 1e-6


@method(
    "vit-cx",
    aliases=("vitcx",),
    reference="Xie et al., ViT-CX, IJCAI 2023",
    needs=("feature maps",),
    cost=8,  # the channels of a layer, and what clustering them takes
)
def vit_cx(
    batch: Batch,
    *,
    reading: Reading = "code",
    masks: Source = "clustered",
    impact: Impact = "debiased",
    coverage: Coverage = "corrected",
    layer: str | None = None,
    threshold: Amount | None = None,
    linkage: Linkage = "complete",
    representative: Representative | None = None,
    sigma: Amount = 0.1,
    random_masks: Count = 5000,
) -> Tensor:
    """Masks of clustered feature maps, weighted by their causal impact on the score.

    Channels of one layer, enlarged bilinearly to the image and stretched to [0, 1], are masks; similar ones become
    one. Constant channels count for nothing.

    Paper and code are two methods. The paper names two layers, neither of them the one that its authors' code reads,
    and takes the mean of a cluster where the code stretches its sum to [0, 1], which makes masks stronger. The default
    is the code, up to a positive factor an image: it is what others compared with, and truer to the networks tried.

    Args:
        batch: The images.
        reading: Default of ``layer`` and ``representative``. ``"code"``: ``"attention-input"`` and ``"stretched"``.
            ``"paper"``: ``"attention-output"`` (its section 3.2; 3.1 has ``"block-output"``) and ``"mean"``. In models
            without attention, the layer is the usual target layer, see :class:`suffice.vision.Anatomy`.
        masks: ``"clustered"`` channels, ``"all"`` channels, or ``"random"`` ones, those of RISE.
        impact: Weight of a mask M of image X with noise Z. ``"debiased"``: what the model says of X·M + (1-M)·Z, plus
            what (1-M)·Z alone takes away when added to X. ``"plain"``: what it says of X·M.
        coverage: ``"corrected"`` divides the weighted sum of masks by their mean, pixel by pixel; pixels that no mask
            shows get 0. ``"summed"`` does not.
        layer: Of the last block: ``"attention-input"``, the normalization before its attention;
            ``"attention-output"``, what that attention puts out; ``"attention-residual"``, that added to the block's
            input; ``"block-output"``. In transformers whose grid shrinks from stage to stage, of the last block before
            the last grid, as the paper does for Swin. Or the name of any layer that the anatomy can read;
            ``"NAME:input"`` is what that layer is given.
        threshold: Merge clusters up to this distance, 1 - cosine of masks; default: 0.1, and 0.05 for transformers
            whose grid shrinks.
        linkage: ``"complete"`` as in the code (the paper does not say), ``"average"`` or ``"single"``.
        representative: A cluster's mask is the ``"mean"`` of its members, or their sum ``"stretched"`` to [0, 1].
        sigma: Standard deviation of the noise, in ImageNet's units for every model: 0.1 is about 0.023 of the range of
            pixels (see :mod:`suffice.vision.units`). The authors' example, a model with std 0.5, has 0.05 of the range,
            ``sigma=0.22``. Every mask of every image has its own noise.
        random_masks: How many, where ``masks="random"``.

    Returns:
        [B, H, W], as coverage is a matter of pixels.
    """
    made: TokenMasks | RandomMasks
    if masks == "random":
        made = RandomMasks(random_masks, 7, 0.5, batch.seed, len(batch))
        image = torch.arange(len(batch), device=batch.pixels.device).repeat(random_masks)
        draw = torch.arange(random_masks, device=batch.pixels.device).repeat_interleave(len(batch))
    else:
        features = feature_maps(batch, layer, reading)
        limit = usual_threshold(batch.net.anatomy) if threshold is None else threshold
        tokens, image, draw = token_masks(
            features,
            batch.net.size,
            limit if masks == "clustered" else None,
            linkage,
            representative or REPRESENTATIVE[reading],
        )
        made = TokenMasks(tokens.to(batch.inputs.dtype))
    weights = impacts(batch, made, image, draw, impact, sigma)
    total, shown = made.sums(weights, image, len(batch), batch.net.size)
    if coverage == "summed":
        return total
    share = shown / torch.bincount(image, minlength=len(batch)).clamp(min=1)[:, None, None]
    return torch.where(share > _UNSEEN, total / share.clamp(min=_UNSEEN), 0)


def impacts(
    batch: Batch, masks: Masks, image: Tensor, draw: Tensor, impact: Impact = "debiased", sigma: float = 0.1
) -> Tensor:
    """Weights [K] of masks, each of the image [K] that it is of, with noise of its draw [K]; see :func:`vit_cx`."""
    # Zero after normalization shows where a mask is low, and on it the noise, if there is some.
    probe = batch.probe("mean")
    if impact == "plain":
        return probe.ask(image, masks)
    own = sigma * torch.tensor(imagenet_unit(batch.net.std), device=batch.pixels.device)[:, None, None]
    over_noise = OverNoise(masks, batch.runner, batch.seeds[image], draw, own)
    seen, disturbed = probe.ask(image.repeat_interleave(2), over_noise).view(-1, 2).unbind(dim=1)
    return seen + probe.whole[image] - disturbed


def feature_maps(batch: Batch, layer: str | None = None, reading: Reading = "code") -> Tensor:
    """Feature maps [B, C, h, w] of a layer; see :func:`vit_cx`."""
    net = batch.net
    if layer is None:
        layer = LAYER[reading] if net.anatomy.blocks else net.anatomy.target_layer
    name = block_layer(net, layer) if layer in BLOCK_LAYERS else layer
    layout = net.anatomy.layout(name)
    found = batch.activations([name])[name]
    if not layout.fits(tuple(found.shape)):
        raise OptionError(
            f"vit-cx cannot read {name!r} of {net.name} as maps of {layout.grid}: its shape is {tuple(found.shape)}; "
            f"write the name of another layer, such as layer={net.anatomy.target_layer!r}."
        )
    return layout.maps(found)


def usual_threshold(anatomy: Anatomy) -> float:
    """The distance up to which clusters are merged by default."""
    grids = {anatomy.grid(block) for block in anatomy.blocks}
    return THRESHOLD_OF_STAGES if len(grids) > 1 else THRESHOLD


class OverNoise:
    """Each mask [K] twice: the image seen through it over noise, and the whole image with that noise where it hides.

    The noise of a mask depends on the seed of its image [K] and on which draw it has [K]; ``sigma`` [C, 1, 1] is its
    deviation in the model's inputs. It is compiled where the runner compiles the model.
    """

    def __init__(self, masks: Masks, runner: Runner, seeds: Tensor, draws: Tensor, sigma: Tensor) -> None:
        self.masks, self.runner, self.seeds, self.draws, self.sigma = masks, runner, seeds, draws, sigma
        self._make = runner.fused(_noise_where_hidden)

    def __len__(self) -> int:
        return 2 * len(self.masks)

    def rows(self, rows: slice, size: tuple[int, int], device: torch.device) -> Tensor:
        """Each mask, then one that shows everything; see :class:`suffice.perturb.Masks`."""
        masks, first = self._masks(rows, size, device)
        both = torch.stack([masks, torch.ones_like(masks)], dim=1).flatten(0, 1)
        return both[first : first + rows.stop - rows.start]

    def noise(self, rows: slice, size: tuple[int, int], device: torch.device) -> Tensor:
        """The noise where each mask hides, for both of its versions; see :class:`suffice.perturb.masks.NoisyMasks`."""
        masks, first = self._masks(rows, size, device)
        some = slice(rows.start // 2, rows.start // 2 + len(masks))
        most = self.runner.batch_size // 2 + 1
        padded = (self.runner.padded(values, most) for values in (masks, self.seeds[some], self.draws[some]))
        made = self._make(*padded, self.sigma)[: len(masks)]
        return made.repeat_interleave(2, dim=0)[first : first + rows.stop - rows.start]

    def _masks(self, rows: slice, size: tuple[int, int], device: torch.device) -> tuple[Tensor, int]:
        """The masks that some of the questions are about, and where these begin among the versions of both."""
        some = slice(rows.start // 2, -(-rows.stop // 2))
        return self.masks.rows(some, size, device), rows.start % 2


def _noise_where_hidden(masks: Tensor, seeds: Tensor, draws: Tensor, sigma: Tensor) -> Tensor:
    """Noise [K, 3, H, W], the less the more a mask [K, H, W] shows; one pass where it is compiled."""
    return normal_noise(seeds, draws, (3, *masks.shape[1:])) * sigma * (1 - masks[:, None])
