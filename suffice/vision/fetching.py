"""Fetching weights: what a library raises when it cannot becomes one error with a way out."""

from __future__ import annotations

import re
import socket
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from suffice.errors import DownloadError, SufficeError

# Names of errors about reaching a host: each library has its own HTTP client with its own classes.
NETWORK_ERROR = re.compile(
    "Connect(ion)?Error|ConnectTimeout|URLError|MaxRetryError|LocalEntryNotFoundError|OfflineModeIsEnabled|ProxyError|"
    "SSLError|TimeoutException|NetworkError"
)


@contextmanager
def fetching(name: str, *, from_hub: bool = False, instead: str | None = None) -> Iterator[None]:
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
            "Give a file that you have, as in checkpoint='weights.safetensors', or write pretrained=False for random "
            "weights."
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
