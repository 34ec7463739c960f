"""Classifiers from Hugging Face transformers: preprocessing from the image processor, labels from the config."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from suffice.errors import MissingExtra, OptionError, UnknownModel
from suffice.vision.build import fetching, split_options
from suffice.vision.checkpoints import load_checkpoint
from suffice.vision.classifier import Classifier
from suffice.vision.families import default_family
from suffice.vision.geometry import Geometry, Interpolation, Rule
from suffice.vision.models import ModelEntry, Source

# The hub cannot be listed offline; these are well-known examples of the families that anatomy knows.
EXAMPLES = (
    "google/vit-base-patch16-224",
    "facebook/deit-small-patch16-224",
    "facebook/deit-small-distilled-patch16-224",
    "microsoft/swin-tiny-patch4-window7-224",
    "facebook/convnext-tiny-224",
    "microsoft/resnet-50",
)
RESAMPLING: dict[int, Interpolation] = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}


def build(name: str, *, pretrained: bool, checkpoint: str | Path | None, **options: Any) -> Classifier:
    """Make a classifier from a model id of the hub or a local folder; see :func:`suffice.load`."""
    try:
        from transformers import AutoConfig, AutoImageProcessor, AutoModelForImageClassification
    except ImportError as error:
        raise MissingExtra("hf/… needs transformers: pip install 'suffice[hf]'.") from error

    own, others = split_options(options)
    fetch = pretrained and checkpoint is None
    try:
        instead = 'Give a local folder that save_pretrained wrote: suffice.load("hf/path/to/folder").'
        with fetching(f"hf/{name}", from_hub=not Path(name).is_dir(), instead=instead):
            processor = AutoImageProcessor.from_pretrained(name)
            if fetch:
                module = AutoModelForImageClassification.from_pretrained(name, **others)
            else:
                module = AutoModelForImageClassification.from_config(AutoConfig.from_pretrained(name, **others))
    except (OSError, ValueError) as error:
        if isinstance(error, OptionError) or type(error).__module__.startswith("suffice"):
            raise
        raise UnknownModel(
            f"transformers cannot load {name!r} as an image classifier: {str(error).splitlines()[0]}"
        ) from error
    if checkpoint is not None:
        load_checkpoint(module, checkpoint)
    described = {"name": f"hf/{name}", "family": default_family(name), **describe_processor(processor)}
    names = [module.config.id2label[i] for i in range(module.config.num_labels)]
    if any(n != f"LABEL_{i}" for i, n in enumerate(names)):  # what transformers writes where it knows no names
        described["labels"] = names
    return Classifier(module, **{**described, **own})


def describe_processor(processor: Any) -> dict[str, Any]:
    """The geometry and normalization of an image processor, as arguments of a classifier."""
    rescale = getattr(processor, "rescale_factor", 1 / 255) if getattr(processor, "do_rescale", True) else None
    if rescale is None or abs(rescale - 1 / 255) > 1e-6:
        raise OptionError(f"The image processor rescales by {rescale}; only 1/255, pixels in [0, 1], is supported.")
    if getattr(processor, "do_normalize", True):
        mean, std = processor.image_mean, processor.image_std
    else:
        mean, std = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    return {"geometry": _geometry(processor), "mean": mean, "std": std}


def _geometry(processor: Any) -> Geometry:
    size = dict(processor.size or {})
    interpolation = RESAMPLING.get(int(getattr(processor, "resample", 2) or 0), "bilinear")
    rule: Rule = "crop"
    if "height" in size:
        rule, resize = "squash", (size["height"], size["width"])
    elif "shortest_edge" in size:
        edge = size["shortest_edge"]
        resize = (edge, edge)
        crop_pct = getattr(processor, "crop_pct", None)
        if crop_pct:  # ConvNeXt's processor: below 384 resize to edge / crop_pct and crop, from 384 on squash
            if edge >= 384:
                return Geometry((edge, edge), "squash", None, interpolation)
            longer = int(edge / crop_pct)
            return Geometry((edge, edge), "crop", (longer, longer), interpolation, "down")
    else:
        raise OptionError(f"The image processor's size is {size}; expected height and width, or shortest_edge.")
    if getattr(processor, "do_center_crop", False):
        crop = dict(processor.crop_size)
        return Geometry((crop["height"], crop["width"]), rule, resize, interpolation, "down")
    if rule == "crop":
        raise OptionError(
            "The image processor resizes the short side and does not crop, so its inputs have no one size."
        )
    return Geometry(resize, rule, None, interpolation)


def entries() -> Iterator[ModelEntry]:
    """Examples: any image classification model of the hub, or a local folder, can be loaded."""
    for name in EXAMPLES:
        yield ModelEntry(name, default_family(name))


SOURCE = Source(build, entries, "any image classifier on the Hugging Face hub, or a local folder of one")
