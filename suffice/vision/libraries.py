"""Classifiers from timm, torchvision and transformers, each with the preprocessing and label names of its weights."""

from __future__ import annotations

import re
import socket
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import nn

from suffice.errors import DownloadError, MissingExtra, OptionError, SufficeError, UnknownModel
from suffice.vision.classifier import Classifier
from suffice.vision.families import default_family
from suffice.vision.geometry import Geometry, Interpolation, Rule, resize_for, split_preprocessing
from suffice.vision.models import ModelEntry, Source, assemble, split_options, unknown_model

# The hub cannot be listed offline; these are well-known examples of the families that anatomy knows.
HF_EXAMPLES = (
    "google/vit-base-patch16-224",
    "facebook/deit-small-patch16-224",
    "facebook/deit-small-distilled-patch16-224",
    "microsoft/swin-tiny-patch4-window7-224",
    "facebook/convnext-tiny-224",
    "microsoft/resnet-50",
)
RESAMPLING: dict[int, Interpolation] = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}
# Names of errors about reaching a host: each library has its own HTTP client with its own classes.
NETWORK_ERROR = re.compile(
    "Connect(ion)?Error|ConnectTimeout|URLError|MaxRetryError|LocalEntryNotFoundError|OfflineModeIsEnabled|ProxyError|"
    "SSLError|TimeoutException|NetworkError"
)


@contextmanager
def _fetching(name: str, *, from_hub: bool = False, instead: str | None = None) -> Iterator[None]:
    """Turn whatever a library raises when it cannot fetch weights into one error with a way out."""
    from huggingface_hub import constants

    # Where the hub cannot be reached, only its local cache is used: else each file is tried again for half a minute.
    before = constants.HF_HUB_OFFLINE
    offline = from_hub and not _can_look_up(constants.ENDPOINT)
    constants.HF_HUB_OFFLINE = before or offline
    try:
        yield
    except SufficeError:
        raise
    except Exception as error:
        if not (_is_network(error) or (offline and isinstance(error, OSError))):
            raise
        checkpoint = (
            f'Give a file that you have: suffice.load("{name}", checkpoint="weights.safetensors"), or --checkpoint on '
            "the command line.\n  For random weights write pretrained=False, or --random-weights."
        )
        raise DownloadError(
            f"The weights of {name} could not be fetched ({type(error).__name__}): there seems to be no network here.\n"
            f"  {instead or checkpoint}"
        ) from error
    finally:
        constants.HF_HUB_OFFLINE = before


def _can_look_up(address: str) -> bool:
    """Whether the name of a host can be looked up, or a proxy stands between that will do so."""
    if urllib.request.getproxies():
        return True
    try:
        socket.getaddrinfo(urllib.parse.urlsplit(address).hostname, 443)
    except OSError:
        return False
    return True


def _is_network(error: BaseException | None) -> bool:
    """Whether an error, or one that it came from, is about reaching a host."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if any(NETWORK_ERROR.fullmatch(c.__name__) for c in type(error).__mro__):
            return True
        error = error.__cause__ or error.__context__
    return False


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
    with _fetching(f"timm/{name}", from_hub=fetch):
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
    with _fetching(f"torchvision/{name}"):
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
        from transformers import AutoConfig, AutoImageProcessor, AutoModelForImageClassification
    except ImportError as error:
        raise MissingExtra("hf/… needs transformers: pip install 'suffice[hf]'.") from error

    own, others = split_options(options)
    instead = 'Give a local folder that save_pretrained wrote: suffice.load("hf/path/to/folder").'
    try:
        with _fetching(f"hf/{name}", from_hub=not Path(name).is_dir(), instead=instead):
            processor = AutoImageProcessor.from_pretrained(name)
            if pretrained and checkpoint is None:
                module = AutoModelForImageClassification.from_pretrained(name, **others)
            else:
                module = AutoModelForImageClassification.from_config(AutoConfig.from_pretrained(name, **others))
    except SufficeError:
        raise
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UnknownModel(f"transformers cannot load {name!r} as an image classifier: {reason}") from error
    described = {"name": f"hf/{name}", "family": default_family(name), **_processor_description(processor)}
    names = [module.config.id2label[i] for i in range(module.config.num_labels)]
    if any(n != f"LABEL_{i}" for i, n in enumerate(names)):  # what transformers writes where it knows no names
        described["labels"] = names
    return assemble(module, checkpoint, described, own)


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
HF = Source(_hf, _hf_entries, "any image classifier on the Hugging Face hub, or a local folder of one")
