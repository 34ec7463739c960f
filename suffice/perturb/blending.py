"""Images that show through a mask over their baselines, in one function to compile."""

from __future__ import annotations

import torch
from torch import Tensor

from suffice.perturb.masks import Enlargement, enlarge, fill_cells


def blended(
    shown: Tensor,
    hidden: Tensor,
    images: Tensor,
    mask: Tensor,
    channels_last: bool,
    enlargement: Enlargement | None = None,
) -> Tensor:
    """Show images where the mask is 1 and their baselines where it is 0; inputs [B, 3, H, W].

    Normalization is affine, so blending normalized images is blending pixels and normalizing then. Images and
    baselines are normalized, [N, 3, H, W] or, where ``channels_last``, [N, H, W, 3]; ``images`` [B] says which one each
    row is about; the mask is bool or float [B, H, W], or smaller and bool: it is enlarged by a rule, or, where there is
    none, [B, side, side] for the cells of a grid.
    """
    size = shown.shape[1:3] if channels_last else shown.shape[2:4]
    if enlargement is not None and mask.shape[1:] != size:
        mask = enlarge(mask.float(), (size[0], size[1]), enlargement)
    cells = mask.dtype == torch.bool and mask.shape[1:] != size
    if mask.device.type == "cpu":  # where choosing takes seven times as long as mixing; by 0 and 1, both are exact
        mask = mask.to(shown.dtype)
    if cells:
        mask = fill_cells(mask, (size[0], size[1]))
    mask = mask.unsqueeze(-1 if channels_last else 1)
    shown, hidden = shown.index_select(0, images), hidden.index_select(0, images)
    if mask.dtype == torch.bool:
        inputs = torch.where(mask, shown, hidden)
    else:
        inputs = hidden.lerp_(shown, mask.to(shown.dtype))  # into a copy: on CPUs, new memory takes longer than mixing
    return inputs.permute(0, 3, 1, 2) if channels_last else inputs
