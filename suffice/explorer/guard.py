"""Who may ask: only pages of this server, on this machine, with the token of the printed link.

Loopback alone is not enough: any page in the same browser can send requests to it. So the name in ``Host`` must be one
of the server's own, which ends DNS rebinding; ``Origin`` must be the page itself, which ends requests of other pages;
and the token, which is in the printed link and then in a cookie, ends everybody else on the machine.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Collection
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, quote, urlencode

LOOPBACK = ("127.0.0.1", "localhost", "::1")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
SORRY = (
    "This page needs the whole link that suffice serve printed, with its token. "
    "Open that link once in this browser; afterwards links without it work, too."
)


class Guard:
    """Stands before an application: refuses what is not meant for it, and adds headers that browsers heed.

    Args:
        app: An ASGI application.
        token: What a link must have once, and the cookie from then on.
        hosts: Names that the server is known by, without a port; ``"*"`` for any address that is a number.
        port: Of the server; part of the cookie's name, as cookies do not know ports.
    """

    def __init__(self, app: Any, token: str, hosts: Collection[str] = LOOPBACK, port: int = 0) -> None:
        self.app, self.token, self.hosts, self.cookie = app, token, set(hosts), f"suffice-{port}"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _refuse(scope, send, *refusal)
        elif scope["type"] == "http" and (redirect := self._welcome(scope)) is not None:
            await _respond(send, 303, b"", [(b"location", redirect), (b"set-cookie", self._set_cookie())])
        else:
            await self.app(scope, receive, _with_headers(send) if scope["type"] == "http" else send)

    def _refusal(self, scope: Any, headers: dict[str, str]) -> tuple[int, str] | None:
        """Status and reason why a request is refused; None where it is not."""
        host = headers.get("host", "")
        if not self._known(host):
            return 421, "This server is not known by that name."
        origin = headers.get("origin")
        if origin is not None and not _same(origin, host):
            return 403, "Requests of other pages are refused."
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        if bearer and _equal(bearer, self.token):
            return None
        if scope["type"] == "http" and scope["method"] == "GET" and self._given(scope):
            return None
        if not self._has_cookie(headers):
            return 403, SORRY
        changing = scope["type"] == "websocket" or scope["method"] not in ("GET", "HEAD")
        if changing and origin is None:
            return 403, "Requests must say which page they come from."
        return None

    def _known(self, host: str) -> bool:
        name = re.sub(r":\d{1,5}$", "", host.strip().lower())
        name = name[1:-1] if name.startswith("[") and name.endswith("]") else name
        if name in self.hosts:
            return True
        if "*" not in self.hosts:
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _given(self, scope: Any) -> bool:
        """Whether the link has the token."""
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
        return _equal(given, self.token)

    def _welcome(self, scope: Any) -> bytes | None:
        """Where a link with the token leads, without it."""
        if scope["method"] != "GET" or not self._given(scope):
            return None
        rest = parse_qs(scope["query_string"].decode("latin-1"))
        rest.pop("token")
        path = "/" + quote(scope["path"].lstrip("/\\"))  # never another host, nor another header
        return (path + (f"?{urlencode(rest, doseq=True)}" if rest else "")).encode("ascii")

    def _set_cookie(self) -> bytes:
        return f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Lax".encode()

    def _has_cookie(self, headers: dict[str, str]) -> bool:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return found is not None and _equal(found.value, self.token)


def _equal(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def _same(origin: str, host: str) -> bool:
    return origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")


def _with_headers(send: Any) -> Any:
    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            own = {name.lower() for name, _ in message.get("headers", ())}
            message["headers"] = [*message.get("headers", ()), *(h for h in HEADERS if h[0] not in own)]
        await send(message)

    return sending


async def _refuse(scope: Any, send: Any, status: int, reason: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 4000 + status % 1000, "reason": reason[:100]})
    else:
        await _respond(send, status, reason.encode(), [(b"content-type", b"text/plain; charset=utf-8")])


async def _respond(send: Any, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    headers = [*headers, *HEADERS, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
