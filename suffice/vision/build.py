"""What the sources share: which options are whose, what a failed download means, and the last step."""

from __future__ import annotations

import contextlib
import inspect
import re
import socket
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import nn

from suffice.errors import DownloadError, SufficeError
from suffice.vision.checkpoints import load_checkpoint
from suffice.vision.classifier import Classifier

CLASSIFIER_OPTIONS = frozenset(inspect.signature(Classifier).parameters) - {"module", "device"}
# Names of errors about reaching a host: each library has its own HTTP client with its own classes.
NETWORK_ERROR = re.compile(
    "Connect(ion)?Error|ConnectTimeout|URLError|MaxRetryError|LocalEntryNotFoundError|OfflineModeIsEnabled|ProxyError|"
    "SSLError|TimeoutException|NetworkError"
)


def split_options(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Separate the options of the classifier from those of the library that makes the module.

    Example:
        >>> split_options({"score": "logit", "num_classes": 10})
        ({'score': 'logit'}, {'num_classes': 10})
    """
    own = {k: v for k, v in options.items() if k in CLASSIFIER_OPTIONS}
    return own, {k: v for k, v in options.items() if k not in own}


def assemble(
    module: nn.Module, checkpoint: str | Path | None, described: dict[str, Any], own: dict[str, Any]
) -> Classifier:
    """A classifier with the weights of a checkpoint, where one is given; the user's own options come last."""
    if checkpoint is not None:
        load_checkpoint(module, checkpoint)
    return Classifier(module, **{**described, **own})


@contextlib.contextmanager
def fetching(name: str, *, from_hub: bool = False, instead: str | None = None) -> Iterator[None]:
    """Turn whatever a library raises when it cannot fetch weights into one error with a way out.

    Args:
        name: Of the model.
        from_hub: The weights come from the Hugging Face hub. If it cannot be reached, only its local cache is used:
            otherwise each file is tried again and again for half a minute.
        instead: What the user can do, where a checkpoint is not enough.
    """
    offline = from_hub and not _hub_is_known()
    try:
        with _hub_offline() if offline else contextlib.nullcontext():
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


def _hub_is_known() -> bool:
    """Whether the hub's name can be looked up, or a proxy stands between that will do so."""
    from huggingface_hub import constants

    if urllib.request.getproxies():
        return True
    try:
        socket.getaddrinfo(urllib.parse.urlsplit(constants.ENDPOINT).hostname, 443)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _hub_offline() -> Iterator[None]:
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def _is_network(error: BaseException | None) -> bool:
    """Whether an error, or one that it came from, is about reaching a host."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if any(NETWORK_ERROR.fullmatch(c.__name__) for c in type(error).__mro__):
            return True
        error = error.__cause__ or error.__context__
    return False
