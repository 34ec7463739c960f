"""Zero-shot classifiers from open_clip, which has the weights of LAION, DataComp, SigLIP and many others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import nn

from suffice.errors import MissingExtra, OptionError, UnknownModel
from suffice.vision.checkpoints import load_checkpoint
from suffice.vision.classifier import Classifier
from suffice.vision.families import default_family
from suffice.vision.fetching import fetching
from suffice.vision.geometry import Geometry, split_preprocessing
from suffice.vision.models import ModelEntry, Source, assemble, split_options, unknown_model
from suffice.vision.zero_shot import ZeroShot, class_texts, text_features

MISSING = "open_clip/… needs open_clip: pip install 'suffice[open-clip]'."


def _open_clip(name: str, *, pretrained: bool, checkpoint: str | Path | None, **options: Any) -> Classifier:
    """A classifier from an architecture with a tag, a model id of the hub after ``hf-hub:``, or a local folder."""
    try:
        import open_clip
    except ImportError as error:
        raise MissingExtra(MISSING) from error

    texts = class_texts(options.get("labels"), options.pop("prompt", None), f"open_clip/{name}")
    own, others = split_options(options)
    fetch = pretrained and checkpoint is None
    if Path(name).is_dir() or name.startswith("hf-hub:"):
        called, tag = name if name.startswith("hf-hub:") else f"local-dir:{name}", None
    else:
        called, tag = _known(name, fetch)
    with fetching(f"open_clip/{name}", from_hub=not Path(name).is_dir()):
        # What a tower was before it became part of this model need not be fetched.
        model = open_clip.create_model(called, tag, load_weights=fetch, pretrained_hf=False, **others)
        tokenizer = open_clip.get_tokenizer(called)
    if checkpoint is not None:
        load_checkpoint(model, checkpoint)
    model.eval()
    features = text_features(texts, lambda some: model.encode_text(tokenizer(some)))
    bias = 0.0 if getattr(model, "logit_bias", None) is None else float(model.logit_bias.item())
    module = ZeroShot(model.visual, nn.Identity(), features, float(model.logit_scale.exp().item()), bias)
    family = default_family(name) or "other"  # not by the whole name, in which "clip" says nothing
    described = {"name": f"open_clip/{name}", "family": family, **_description(model.visual.preprocess_cfg)}
    return assemble(module, None, described, own)


def _known(name: str, fetch: bool) -> tuple[str, str | None]:
    """Architecture and tag of the weights, None for random ones."""
    import open_clip

    architecture, _, tag = name.partition(".")
    if architecture not in open_clip.list_models():
        raise unknown_model(f"open_clip has no model {name!r}.", name, open_clip.list_models(), "open_clip")
    tags = open_clip.list_pretrained_tags_by_model(architecture)
    if tag and tag not in tags:
        raise UnknownModel(f"open_clip has no weights {tag!r} of {architecture}; it has {', '.join(tags) or 'none'}.")
    if fetch and not tag:
        choose = f"write one of {', '.join(f'{architecture}.{t}' for t in tags)}" if tags else "it has none"
        raise OptionError(f"open_clip has no default weights of {architecture}; {choose}; or pretrained=False.")
    return architecture, tag if fetch else None


def _description(config: dict[str, Any]) -> dict[str, Any]:
    """The geometry and normalization in open_clip's preprocessing, as arguments of a classifier."""
    from open_clip.transform import PreprocessCfg, image_transform_v2

    size = config["size"]
    height, width = pair = (size, size) if isinstance(size, int) else tuple(size)
    described = {"mean": config["mean"], "std": config["std"]}
    rules = {"shortest": "crop", "squash": "squash"}
    if height == width and config["resize_mode"] in rules and config["interpolation"] in ("bicubic", "bilinear"):
        rule: Any = rules[config["resize_mode"]]
        return {"geometry": Geometry(pair, rule, pair, config["interpolation"]), **described}
    geometry, _, _ = split_preprocessing(image_transform_v2(PreprocessCfg(**config), is_train=False), pair)
    return {"geometry": geometry, **described}


def _entries() -> Iterator[ModelEntry]:
    """All architectures that open_clip can make, where it is installed."""
    try:
        import open_clip
    except ImportError:
        return
    weighted = {architecture for architecture, _ in open_clip.list_pretrained()}
    for name in open_clip.list_models():
        yield ModelEntry(name, default_family(name) or "other", name in weighted)


OPEN_CLIP = Source(_open_clip, _entries, "zero-shot models of open_clip, where installed; a tag after a dot is needed")
