"""What a method computes for images: maps, and everything needed to know what they mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from suffice.draw import show
from suffice.draw.files import is_picture, save_picture
from suffice.errors import OptionError
from suffice.perturb import enlarge
from suffice.perturb.masks import Enlargement
from suffice.results import (
    Rows,
    load_tensors,
    save_tensors,
    selected,
    tensors_from_bytes,
    tensors_to_bytes,
    text_column,
    to_pandas,
)
from suffice.vision.provenance import as_json, with_about
from suffice.vision.stream import Skip

if TYPE_CHECKING:
    import pyarrow

# A notebook shows so many maps; .show() shows all.
_AT_A_GLANCE = 8


@dataclass(frozen=True, eq=False)
class Attribution:
    """Maps of images by one method.

    It indexes and slices like a list of maps (``a[0]``, ``a[2:5]``), each part an attribution of its own; it shows
    itself in a notebook; and it saves to a file that other tools read.

    Attributes:
        maps: How much each pixel or cell matters, [N, h, w] float32, high = important, at the method's own resolution
            and in its own units.
        targets: The class explained in each image, [N] int64.
        confidences: The model's score of that class on the whole image, [N].
        settings: Method, options, seed and model; as ``learned``, the file of an explainer and what it decided.
        names: Name of each image.
        ids: Identity of each image.
        labels: Name of each class explained.
        pictures: The images as the model saw them, small, uint8 [N, 3, h, w] on the CPU; None where not known.
        skipped: Images that could not be read.
        about: All that has to be known to make the same maps again: hash of the weights, preprocessing, settings,
            precision, versions; see :func:`suffice.vision.provenance.provenance`. Empty for maps made elsewhere.

    Example:
        >>> maps = given_maps(torch.rand(4, 7, 7), torch.tensor([3, 5, 3, 1]), method="mine")
        >>> maps[1:3]
        Attribution(2 maps 7×7, method='mine')
        >>> maps[0].resized(14).shape
        torch.Size([1, 14, 14])
    """

    maps: Tensor
    targets: Tensor
    confidences: Tensor
    settings: dict[str, Any]
    names: Sequence[str] = ()
    ids: Sequence[str] = ()
    labels: Sequence[str] = ()
    pictures: Tensor | None = field(default=None, repr=False)
    skipped: Sequence[Skip] = field(default=(), repr=False)
    about: dict[str, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.maps)

    def __getitem__(self, rows: Rows) -> Attribution:
        """Some of the maps: by position, slice, list or mask of positions."""
        index = selected(rows, len(self))
        there = index.to(self.maps.device)
        texts: dict[str, Any] = {
            name: [getattr(self, name)[i] for i in index.tolist()] for name in _TEXTS if getattr(self, name)
        }
        return replace(
            self,
            maps=self.maps[there],
            targets=self.targets[there],
            confidences=self.confidences[there],
            pictures=None if self.pictures is None else self.pictures[index],
            **texts,
        )

    def __iter__(self) -> Iterator[Attribution]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        height, width = self.maps.shape[1:]
        return f"Attribution({len(self)} maps {height}×{width}, method={self.settings.get('method')!r})"

    def _repr_svg_(self) -> str:
        return self[:_AT_A_GLANCE].to_svg()

    def resized(self, size: int | tuple[int, int] | None = None, rule: Enlargement = "bilinear") -> Tensor:
        """The maps [N, H, W] at another size; default: the input size of the model.

        The rule is ``"bilinear"``, ``"bilinear-corners"`` or ``"nearest"``; see :func:`suffice.perturb.enlarge`.
        """
        wanted = size or tuple(self.settings["size"])
        return enlarge(self.maps, (wanted, wanted) if isinstance(wanted, int) else (wanted[0], wanted[1]), rule)

    def to_svg(self, images: Any = None) -> str:
        """Draw the maps over their images, with the class explained and the scale of each, as a standalone SVG.

        The images explained can be given once more, as anything that :func:`suffice.open_images` takes, for more detail
        than the small pictures that are kept.
        """
        from suffice.attribution.figure import maps_figure

        return maps_figure(self, images)

    def show(self, images: Any = None, *, ax: Any = None) -> None:
        """Show the picture of :meth:`to_svg` in the notebook, or in the browser.

        With ``ax``, axes of matplotlib, one for each map, it is drawn there instead, with a color bar.
        """
        from suffice.attribution.figure import draw_on_axes

        if ax is None:
            show(self.to_svg(images), "svg")
        else:
            draw_on_axes(self, ax, images)

    def to_arrow(self) -> pyarrow.Table:
        """One row an image: ``image``, ``image_id``, ``index``, ``target``, ``label``, ``confidence``, and ``map``.

        The map is a list of its values row by row; its height and width are in the schema's metadata, with
        :attr:`about`.
        """
        import pyarrow as pa

        height, width = self.maps.shape[1:]
        columns = {
            "image": text_column(self.names, len(self)),
            "image_id": text_column(self.ids, len(self)),
            "index": pa.array(range(len(self)), pa.int64()),
            "target": pa.array(self.targets.tolist(), pa.int64()),
            "label": text_column(self.labels, len(self)),
            "confidence": pa.array(self.confidences.tolist(), pa.float64()),
            "map": pa.FixedSizeListArray.from_arrays(
                pa.array(self.maps.flatten().cpu().numpy(), pa.float32()), height * width
            ),
        }
        more = {"settings": as_json(self.settings), "height": str(height), "width": str(width)}
        return with_about(pa.table(columns), self.about or {"settings": self.settings}, **more)

    def to_pandas(self) -> Any:
        """The table of :meth:`to_arrow` as a data frame; needs pandas."""
        return to_pandas(self.to_arrow())

    def save(self, path: str | Path) -> Path:
        """Write everything to one safetensors file, whose suffix may be left out; returns its path.

        With the ending ``.svg``, ``.png`` or ``.pdf``, write the picture of :meth:`to_svg` instead.
        """
        if is_picture(path):
            return save_picture(self.to_svg(), path)
        return save_tensors(path, *self._parts())

    @classmethod
    def load(cls, path: str | Path) -> Attribution:
        """Read what :meth:`save` wrote."""
        return cls._of(*load_tensors(path, "maps", "settings"))

    def to_bytes(self) -> bytes:
        """The file that :meth:`save` writes, for places that are not files."""
        return tensors_to_bytes(*self._parts())

    @classmethod
    def from_bytes(cls, content: bytes) -> Attribution:
        """From the bytes of the file that :meth:`save` writes."""
        return cls._of(*tensors_from_bytes(content))

    def _parts(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors = {"maps": self.maps, "targets": self.targets, "confidences": self.confidences}
        if self.pictures is not None:
            tensors["pictures"] = self.pictures
        about: dict[str, Any] = {name: list(getattr(self, name)) for name in _TEXTS}
        about |= {"settings": self.settings, "skipped": [asdict(skip) for skip in self.skipped], "about": self.about}
        return tensors, about

    @classmethod
    def _of(cls, tensors: dict[str, Tensor], about: dict[str, Any]) -> Attribution:
        about["skipped"] = [Skip(**skip) for skip in about["skipped"]]
        fields: dict[str, Any] = {**tensors, **about}
        return cls(**fields)


_TEXTS = ("names", "ids", "labels")


def given_maps(maps: Any, targets: Any, confidences: Any = None, **settings: Any) -> Attribution:
    """Wrap maps that were made elsewhere, so that everything here can be done with them.

    Args:
        maps: [N, h, w], high = important, as tensor or array.
        targets: The class explained in each image, [N] int64, or a list.
        confidences: The model's score of it, [N], where known.
        **settings: Whatever should be kept with them, such as ``method="mine"``.

    Example:
        >>> given_maps(torch.rand(2, 7, 7), torch.tensor([3, 5]), method="mine")
        Attribution(2 maps 7×7, method='mine')
    """
    maps, targets = torch.as_tensor(maps).detach(), torch.as_tensor(targets)
    if maps.dim() != 3 or targets.shape != maps.shape[:1]:
        raise OptionError(f"Expected maps [N, h, w] and targets [N]; got {list(maps.shape)} and {list(targets.shape)}.")
    unknown = torch.full_like(targets, torch.nan, dtype=torch.float32)
    sure = unknown if confidences is None else torch.as_tensor(confidences)
    settings = {"size": list(maps.shape[1:]), **settings}
    return Attribution(maps.float(), targets, sure, settings, [f"map[{i}]" for i in range(len(maps))])
