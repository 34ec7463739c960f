"""Classifiers from timm, torchvision and transformers, each with the preprocessing and label names of its weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from suffice.errors import MissingExtra, OptionError, SufficeError, UnknownModel
from suffice.vision.checkpoints import load_checkpoint
from suffice.vision.classifier import Classifier
from suffice.vision.families import default_family
from suffice.vision.fetching import fetching
from suffice.vision.geometry import Geometry, Interpolation, Rule, resize_for, split_preprocessing
from suffice.vision.models import ModelEntry, Source, assemble, refuse_prompt, split_options, unknown_model
from suffice.vision.zero_shot import ZeroShot, class_texts, text_features

# The hub cannot be listed offline; these are well-known examples of the families that anatomy knows.
HF_EXAMPLES = (
    "google/vit-base-patch16-224",
    "facebook/deit-small-patch16-224",
    "facebook/deit-small-distilled-patch16-224",
    "microsoft/swin-tiny-patch4-window7-224",
    "facebook/convnext-tiny-224",
    "microsoft/resnet-50",
    "openai/clip-vit-base-patch32",
    "google/siglip-base-patch16-224",
)
TWO_TOWERS = ("clip", "siglip")
RESAMPLING: dict[int, Interpolation] = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}


def _timm(name: str, *, pretrained: bool, checkpoint: str | Path | None, **options: Any) -> Classifier:
    import timm

    architecture, _, tag = name.partition(".")
    if not timm.is_model(architecture):
        raise unknown_model(f"timm has no model {name!r}.", name, timm.list_models(), "timm")
    tagged = timm.list_pretrained(f"{architecture}.*")
    if tag and name not in tagged:
        raise unknown_model(f"timm has no weights {tag!r} of {architecture}.", name, tagged, "timm")
    fetch = pretrained and checkpoint is None
    if fetch and not timm.is_model_pretrained(architecture):
        raise UnknownModel(
            f"timm has no weights of {architecture}; write pretrained=False for random ones, or checkpoint=."
        )
    own, others = split_options(options)
    with fetching(f"timm/{name}", from_hub=fetch):
        module = timm.create_model(name, pretrained=fetch, **others)
    # Which weights they are decides the family; a checkpoint of the user's may come from any recipe.
    recipe = f".{module.pretrained_cfg.get('tag', '')}" if fetch and not tag else ""
    described = {"name": f"timm/{name}", "family": default_family(name + recipe), **_timm_description(module)}
    return assemble(module, checkpoint, described, own)


def _timm_description(module: nn.Module) -> dict[str, Any]:
    """The preprocessing, from its ``pretrained_cfg``, and labels of a timm module, as arguments of a classifier."""
    from timm.data import ImageNetInfo, infer_imagenet_subset, resolve_data_config

    config = resolve_data_config({}, model=module)
    size = tuple(config["input_size"][-2:])
    rules = {"center": "crop", "squash": "squash"}
    if config["crop_mode"] not in rules:
        raise OptionError(
            f"The weights want timm's crop mode {config['crop_mode']!r}; supported are 'center' and 'squash'. Give "
            "preprocess= with timm.data.create_transform(...) instead."
        )
    interpolation = config["interpolation"] if config["interpolation"] != "random" else "bicubic"
    geometry = Geometry(size, rules[config["crop_mode"]], resize_for(size, config["crop_pct"]), interpolation)  # type: ignore[arg-type]
    described: dict[str, Any] = {"geometry": geometry, "mean": config["mean"], "std": config["std"]}
    if subset := infer_imagenet_subset(module):
        info = ImageNetInfo(subset)
        # The first name of a synset is the one people know: "tench, Tinca tinca".
        described["labels"] = [d.split(",")[0] for d in info.label_descriptions()]
        described["synsets"] = list(info.label_names())
    return described


def timm_knowledge(module: nn.Module) -> dict[str, Any]:
    """What a module made by timm brings along, as arguments of a classifier; nothing where it is none."""
    config = getattr(module, "pretrained_cfg", None)
    if not config or "architecture" not in config:
        return {}
    name = config["architecture"]
    return {"name": f"timm/{name}", "family": default_family(name), **_timm_description(module)}


def _timm_entries() -> Iterator[ModelEntry]:
    """All architectures that timm can make."""
    import timm

    weighted = {n.partition(".")[0] for n in timm.list_pretrained()}
    for name in timm.list_models():
        yield ModelEntry(name, default_family(name), name in weighted)


def _torchvision(name: str, *, pretrained: bool, checkpoint: str | Path | None, **options: Any) -> Classifier:
    from torchvision import models

    architecture, _, tag = name.partition(".")
    known = models.list_models(module=models)
    if architecture not in known:
        raise unknown_model(f"torchvision has no model {name!r}.", architecture, known, "torchvision")
    choices = models.get_model_weights(architecture)
    if tag and tag.upper() not in choices.__members__:
        tags = ", ".join(choices.__members__)
        raise UnknownModel(f"torchvision has no weights {tag!r} of {architecture}; it has {tags}.")
    # DEFAULT is an alias of the newest weights; its preprocessing also serves random weights and checkpoints.
    weights = choices[tag.upper()] if tag else choices["DEFAULT"]
    fetch = pretrained and checkpoint is None
    own, others = split_options(options)
    with fetching(f"torchvision/{name}"):
        module = models.get_model(architecture, weights=weights if fetch else None, **others)
    family = default_family(architecture + (f".{weights.name}" if fetch or tag else ""))
    geometry, mean, std = split_preprocessing(weights.transforms())
    described = {"name": f"torchvision/{name}", "family": family, "geometry": geometry, "mean": mean, "std": std}
    categories = weights.meta.get("categories")
    if categories and others.get("num_classes", len(categories)) == len(categories):
        described["labels"] = categories
        if len(categories) == 1000:
            from timm.data import ImageNetInfo

            described["synsets"] = list(ImageNetInfo().label_names())
    return assemble(module, checkpoint, described, own)


def _torchvision_entries() -> Iterator[ModelEntry]:
    """All classification models of torchvision."""
    from torchvision import models

    for name in models.list_models(module=models):
        default = models.get_model_weights(name).__members__.get("DEFAULT")
        yield ModelEntry(name, default_family(f"{name}.{default.name}" if default else name), default is not None)


def _hf(name: str, *, pretrained: bool, checkpoint: str | Path | None, **options: Any) -> Classifier:
    """A classifier from a model id of the hub or a local folder."""
    try:
        from transformers import AutoConfig, AutoImageProcessor, AutoModel, AutoModelForImageClassification
    except ImportError as error:
        raise MissingExtra("hf/… needs transformers: pip install 'suffice[hf]'.") from error

    prompt = options.pop("prompt", None)
    own, others = split_options(options)
    instead = 'Give a local folder that save_pretrained wrote: suffice.load("hf/path/to/folder").'
    try:
        with fetching(f"hf/{name}", from_hub=not Path(name).is_dir(), instead=instead):
            config = AutoConfig.from_pretrained(name, **others)
            texts = None
            if _has_two_towers(config):
                texts = class_texts(own.get("labels"), prompt, f"hf/{name}")
                tokenizer = _hf_tokenizer(name)
            else:
                refuse_prompt(prompt)
            processor = AutoImageProcessor.from_pretrained(name)
            kind: Any = AutoModel if texts else AutoModelForImageClassification
            fetch = pretrained and checkpoint is None
            module = kind.from_pretrained(name, **others) if fetch else kind.from_config(config)
    except SufficeError:
        raise
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UnknownModel(f"transformers cannot load {name!r} as an image classifier: {reason}") from error
    described = {"name": f"hf/{name}", "family": default_family(name), **_processor_description(processor)}
    if texts:
        if checkpoint is not None:
            load_checkpoint(module, checkpoint)
        return assemble(_hf_zero_shot(module, tokenizer, texts), None, described, own)
    names = [module.config.id2label[i] for i in range(module.config.num_labels)]
    if any(n != f"LABEL_{i}" for i, n in enumerate(names)):  # what transformers writes where it knows no names
        described["labels"] = names
    return assemble(module, checkpoint, described, own)


def _has_two_towers(config: Any) -> bool:
    """Whether a model of transformers compares images with texts; not so a classifier made of its image tower."""
    from transformers import AutoModelForZeroShotImageClassification as ZeroShotModels

    made = [name for name in config.architectures or [] if name.endswith("ForImageClassification")]
    if made or type(config) not in ZeroShotModels._model_mapping:
        return False
    if config.model_type not in TWO_TOWERS:
        raise UnknownModel(
            f"transformers' {config.model_type} models compare images with texts in a way that is not known here; "
            f"those of type {' and '.join(TWO_TOWERS)} can be loaded."
        )
    return True


def _hf_tokenizer(name: str) -> Any:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(name)
    except ImportError as error:  # some need sentencepiece or protobuf
        raise MissingExtra(f"The tokenizer of {name} cannot be loaded: {str(error).strip().splitlines()[0]}") from error


def _hf_zero_shot(model: Any, tokenizer: Any, texts: list[list[str]]) -> ZeroShot:
    """The classifier of a CLIP or SigLIP of transformers for some texts; its text tower is not kept."""
    longest = model.config.text_config.max_position_embeddings
    # SigLIP learned from texts of one length, the padding not masked.
    siglip = model.config.model_type == "siglip"
    padding = {"padding": "max_length", "max_length": longest} if siglip else {"padding": True}
    takes = ("input_ids",) if siglip else ("input_ids", "attention_mask")

    def encode(some: list[str]) -> Tensor:
        tokens = tokenizer(some)
        if long := [text for text, own in zip(some, tokens["input_ids"], strict=True) if len(own) > longest]:
            raise OptionError(
                f"The text tower reads at most {longest} tokens, and {long[0]!r} has more; make it shorter."
            )
        padded = tokenizer.pad(tokens, return_tensors="pt", **padding)
        features = model.get_text_features(**{name: padded[name] for name in takes})
        return getattr(features, "pooler_output", features)  # a tensor before version 5

    model.eval()
    projection = getattr(model, "visual_projection", None) or nn.Identity()
    bias = float(model.logit_bias.item()) if siglip else 0.0
    features = text_features(texts, encode)
    return ZeroShot(model.vision_model, projection, features, float(model.logit_scale.exp().item()), bias)


def _processor_description(processor: Any) -> dict[str, Any]:
    """The geometry and normalization of an image processor, as arguments of a classifier."""
    rescale = getattr(processor, "rescale_factor", 1 / 255) if getattr(processor, "do_rescale", True) else None
    if rescale is None or abs(rescale - 1 / 255) > 1e-6:
        raise OptionError(f"The image processor rescales by {rescale}; only 1/255, pixels in [0, 1], is supported.")
    mean, std = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    if getattr(processor, "do_normalize", True):
        mean, std = processor.image_mean, processor.image_std
    return {"geometry": _processor_geometry(processor), "mean": mean, "std": std}


def _processor_geometry(processor: Any) -> Geometry:
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
                return Geometry(resize, "squash", None, interpolation)
            longer = int(edge / crop_pct)
            return Geometry(resize, "crop", (longer, longer), interpolation, "down")
    else:
        raise OptionError(f"The image processor's size is {size}; expected height and width, or shortest_edge.")
    if getattr(processor, "do_center_crop", False):
        crop = dict(processor.crop_size)
        return Geometry((crop["height"], crop["width"]), rule, resize, interpolation, "down")
    if rule == "crop":
        raise OptionError("The image processor resizes the short side without a crop, so its inputs have no one size.")
    return Geometry(resize, rule, None, interpolation)


def _hf_entries() -> Iterator[ModelEntry]:
    """Examples: any image classification model of the hub, or a local folder, can be loaded."""
    for name in HF_EXAMPLES:
        yield ModelEntry(name, default_family(name))


TIMM = Source(_timm, _timm_entries, "PyTorch image models; a tag after a dot chooses the weights")
TORCHVISION = Source(
    _torchvision, _torchvision_entries, "torchvision's classification models; a tag after a dot chooses the weights"
)
HF = Source(_hf, _hf_entries, "any image classifier, CLIP or SigLIP on the Hugging Face hub, or a local folder of one")
