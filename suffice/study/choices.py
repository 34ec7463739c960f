"""What the file of a study chooses: images, models, how they are run, and what is compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from suffice.errors import StudyError
from suffice.options import Count, check_fields


@dataclass(frozen=True)
class ImageChoice:
    """Which images.

    Attributes:
        source: What :func:`suffice.open_images` takes and a file can hold: a path or ``"name:rest"``, or several.
        take: So many of the first.
        every: Of each so many the first, before ``take``.
        classes: Only images with these labels.
        root: Folder of the paths in a manifest.
        max_pixels: Images with more cannot be read; default: the limit of Pillow.
        boxes: Manifest with boxes of the objects, where the source has none.
    """

    source: str | Sequence[str]
    take: Count | None = None
    every: Count = 1
    classes: Sequence[int | str] | None = None
    root: str | None = None
    max_pixels: Count | None = None
    boxes: str | None = None

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class ModelChoice:
    """A model, or several that differ by their weights.

    Attributes:
        name: What :func:`suffice.load` takes; a pattern such as ``"zoo/*"`` stands for all that it matches.
        checkpoint: File with its weights.
        seeds: Pattern of files with weights, one model each.
        family: Instead of the one that its name implies.
        label: What tables call it; default: its name.
        pretrained: False for random weights.
        options: Further arguments of :func:`suffice.load`.
    """

    name: str
    checkpoint: str | None = None
    seeds: str | None = None
    family: str | None = None
    label: str | None = None
    pretrained: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.checkpoint and self.seeds:
            raise StudyError("checkpoint and seeds were given; seeds is a pattern of checkpoints.")


@dataclass(frozen=True)
class HowToRun:
    """What holds for all measurements.

    Attributes:
        precision: Of the models.
        compile: Compile them.
        batch: Inputs per forward.
        seed: Of everything random.
        block: Images per shard; ``"auto"`` is 512 with a GPU and 16 without.
        misfits: ``"raise"`` where a method does not fit a model, or ``"skip"`` the two.
        maps: The type in which maps are kept.
    """

    precision: Literal["fp32", "tf32", "bf16", "fp16", "ieee"] = "fp32"
    compile: bool = False
    batch: Count | Literal["auto"] = "auto"
    seed: int = 0
    block: Count | Literal["auto"] = "auto"
    misfits: Literal["raise", "skip"] = "raise"
    maps: Literal["fp32", "fp16"] = "fp32"

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class Contrast:
    """A comparison that a study was made for, named before its data were seen.

    Comparisons that are named are corrected for each other only, and not for all pairs of models.

    Attributes:
        of: Label of a model, or of several that differ by their seed.
        against: The one that it is compared with.
        question: What differs between the two, such as ``"batch instead of layer normalization"``.
    """

    of: str
    against: str
    question: str = ""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.of == self.against:
            raise StudyError(f"{self.of!r} is compared with itself.")
