"""Starting the explorer on this machine."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from collections.abc import Callable
from typing import Any

from suffice.errors import MissingExtra, OptionError
from suffice.explorer.explorer import Explorer
from suffice.explorer.guard import LOOPBACK

PORT = 8765
ANY = ("0.0.0.0", "::", "")


def serve(
    explorer: Explorer,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    i_know: bool = False,
    open_browser: bool = False,
    on_start: Callable[[str], None] = print,
) -> None:
    """Serve an explorer until Ctrl-C.

    Args:
        explorer: What answers.
        host: Address to listen on. Others than loopback let the network in, and need ``i_know``.
        port: Default: 8765, or a free one where that is taken.
        i_know: That everybody in the network who gets hold of the link can use the models and see the images.
        open_browser: Open the page.
        on_start: Called with the link, which has the token.
    """
    check_host(host, i_know)
    try:
        import uvicorn

        from suffice.explorer.app import MOST_MESSAGE, make_app
    except ImportError as error:
        raise MissingExtra("The explorer needs uvicorn: pip install 'suffice[serve]'.") from error
    listening = _listen(host, port)
    number = listening.getsockname()[1]
    token = secrets.token_urlsafe(24)
    app = make_app(explorer, token, names_of(host), number)
    shown = socket.gethostname() if host in ANY else f"[{host}]" if ":" in host else host
    link = f"http://{shown}:{number}/?token={token}"
    on_start(link)
    if open_browser:
        webbrowser.open(link)
    settings: dict[str, Any] = {"log_level": "warning", "ws_max_size": 2 * MOST_MESSAGE, "timeout_graceful_shutdown": 2}
    try:
        uvicorn.Server(uvicorn.Config(app, **settings)).run(sockets=[listening])
    finally:
        explorer.close()
        listening.close()


def check_host(host: str, i_know: bool) -> None:
    """Raise an error where an address lets others in and nobody said that they know."""
    if host not in LOOPBACK and not i_know:
        raise OptionError(
            f"--host {host} lets the network in: whoever gets hold of the link can use the models and see the images. "
            "Write --i-know if that is meant, or leave --host away."
        )


def names_of(host: str) -> tuple[str, ...]:
    """Names by which a server that listens on an address is known."""
    if host in LOOPBACK:
        return LOOPBACK
    return (*LOOPBACK, socket.gethostname().lower(), *(("*",) if host in ANY else (host.lower(),)))


def _listen(host: str, port: int | None) -> socket.socket:
    """A socket that listens; where no port was asked for and the usual one is taken, on any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in (PORT, 0) if port is None else (port,):
        opened = socket.socket(family, socket.SOCK_STREAM)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind((host, number))
            opened.listen()  # from now on, so that who opens the link at once waits, and is not refused
        except OSError as error:
            opened.close()
            reason = error.strerror or str(error)
        else:
            return opened
    raise OptionError(f"Cannot listen on {host}, port {port or PORT}: {reason}.")
