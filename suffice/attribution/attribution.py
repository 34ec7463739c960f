"""What a method says about images: maps, and everything needed to know what they mean."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from suffice.errors import OptionError
from suffice.perturb import enlarge
from suffice.perturb.masks import Enlargement
from suffice.vision.stream import Skip

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True, eq=False)
class Attribution:
    """Maps of images by one method.

    Attributes:
        maps: How much each place matters, [N, h, w] float32, high = important, at the method's own resolution and
            in its own units.
        targets: The class explained in each image, [N] int64.
        confidences: The model's score of that class on the whole image, [N].
        settings: Method, options, seed and model.
        names: Name of each image.
        labels: Name of each class explained.
        skipped: Images that could not be read.
    """

    maps: Tensor
    targets: Tensor
    confidences: Tensor
    settings: dict[str, Any]
    names: Sequence[str] = ()
    labels: Sequence[str] = ()
    skipped: Sequence[Skip] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.maps)

    def __repr__(self) -> str:
        height, width = self.maps.shape[1:]
        return f"Attribution({len(self)} maps {height}×{width}, method={self.settings.get('method')!r})"

    def enlarged(self, size: int | tuple[int, int] | None = None, rule: Enlargement = "bilinear") -> Tensor:
        """The maps at another size.

        Args:
            size: Height and width; default: the input size of the model.
            rule: ``"bilinear"``, ``"bilinear-corners"`` or ``"nearest"``; see :func:`suffice.perturb.enlarge`.

        Returns:
            [N, H, W].
        """
        wanted = size or tuple(self.settings["size"])
        return enlarge(self.maps, (wanted, wanted) if isinstance(wanted, int) else (wanted[0], wanted[1]), rule)

    def save(self, path: str | Path) -> Path:
        """Write the numbers as safetensors, and beside them what they mean as JSON.

        Args:
            path: Of the safetensors file; its suffix may be left out.

        Returns:
            The path of the safetensors file.
        """
        file = _with_suffix(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        tensors = {"maps": self.maps, "targets": self.targets, "confidences": self.confidences}
        save_file({k: v.detach().cpu().contiguous() for k, v in tensors.items()}, file)
        about = {"settings": self.settings, "names": list(self.names), "labels": list(self.labels)}
        text = json.dumps(about, indent=2, ensure_ascii=False, default=repr)
        file.with_suffix(".json").write_text(text, encoding="utf-8")
        return file

    @classmethod
    def load(cls, path: str | Path) -> Attribution:
        """Read what :meth:`save` wrote."""
        file = _with_suffix(path)
        if not file.exists():
            raise OptionError(f"There are no maps at {file}.")
        about = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
        return cls(**load_file(file), **about)

    def show(self, images: Any = None) -> Image:
        """A picture of the maps, over the images where they are given, to look at in a notebook.

        Args:
            images: Those that were explained; anything that :func:`suffice.open_images` takes.

        Returns:
            One row of pictures.
        """
        from suffice.attribution.pictures import overlay, side_by_side
        from suffice.vision import open_images

        shown = None if images is None else [p.decode() for p in open_images(images)]
        if shown is not None and len(shown) != len(self):
            raise OptionError(f"{len(shown)} images were given for {len(self)} maps.")
        maps = self.enlarged()
        return side_by_side([overlay(m, None if shown is None else shown[i]) for i, m in enumerate(maps)])


def given_maps(maps: Tensor, targets: Tensor, confidences: Tensor | None = None, **settings: Any) -> Attribution:
    """Maps that were made elsewhere, so that everything here can be done with them.

    Args:
        maps: [N, h, w], high = important.
        targets: The class explained in each image, [N] int64.
        confidences: The model's score of it, [N], where known.
        **settings: Whatever should be kept with them, such as ``method="mine"``.

    Returns:
        The attribution.

    Example:
        >>> given_maps(torch.rand(2, 7, 7), torch.tensor([3, 5]), method="mine")
        Attribution(2 maps 7×7, method='mine')
    """
    if maps.dim() != 3 or targets.shape != maps.shape[:1]:
        raise OptionError(f"Expected maps [N, h, w] and targets [N]; got {list(maps.shape)} and {list(targets.shape)}.")
    sure = torch.full_like(targets, torch.nan, dtype=torch.float32) if confidences is None else confidences
    settings = {"size": list(maps.shape[1:]), **settings}
    return Attribution(maps.float(), targets, sure, settings, [f"map[{i}]" for i in range(len(maps))])


def _with_suffix(path: str | Path) -> Path:
    file = Path(path)
    return file if file.suffix == ".safetensors" else file.with_name(file.name + ".safetensors")
