"""The web application: the page, its files, and the ways in which messages come."""

from __future__ import annotations

import asyncio
import json
import mimetypes
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from suffice.errors import ImageTooLarge, MissingExtra, SufficeError
from suffice.explorer.errors import Busy, Unknown
from suffice.explorer.explorer import Explorer, Message
from suffice.explorer.guard import LOOPBACK, Guard
from suffice.explorer.pictures import MOST_BYTES
from suffice.strangers import parse_json

PAGE = Path(__file__).parent / "page"
FILES = sorted(path.name for path in PAGE.iterdir() if path.suffix in (".js", ".css", ".html", ".svg"))
MOST_MESSAGE = 256 * 1024  # bytes of a message
MOST_SOCKETS = 64
MOST_UNSENT = 2000  # messages that wait for somebody who does not read
PATIENCE = 600.0  # seconds that an answer over HTTP may take
CHARTS = "window.vegaEmbed = vegaEmbed;"


def make_app(explorer: Explorer, token: str, hosts: tuple[str, ...] = LOOPBACK, port: int = 0) -> Any:
    """Make the ASGI application of an explorer.

    Args:
        explorer: What answers.
        token: Without which nothing is answered.
        hosts: Names that the server is known by.
        port: On which it listens.
    """
    try:
        from starlette.applications import Starlette
        from starlette.routing import Route, WebSocketRoute
    except ImportError as error:
        raise MissingExtra("The explorer needs starlette: pip install 'suffice[serve]'.") from error
    server = _Server(explorer)
    routes = [
        Route("/", server.page),
        Route("/vega.js", server.vega),
        Route("/{name}", server.file),
        Route("/api/upload", server.upload, methods=["POST"]),
        Route("/api/{kind}", server.question, methods=["POST"]),
        WebSocketRoute("/api/live", server.live),
    ]
    return Guard(Starlette(routes=routes), token, hosts, port)


class _Server:
    def __init__(self, explorer: Explorer) -> None:
        self.explorer, self.sockets = explorer, 0

    async def page(self, request: Any) -> Any:
        from starlette.responses import FileResponse

        return FileResponse(PAGE / "index.html", media_type="text/html; charset=utf-8")

    async def file(self, request: Any) -> Any:
        """One of the files of the page; there is no way from the name to any other."""
        from starlette.responses import FileResponse

        name = request.path_params["name"]
        if name not in FILES:
            return _json({"error": {"kind": "Unknown", "message": "There is no such file."}}, 404)
        kind = "text/javascript" if name.endswith(".js") else mimetypes.guess_type(name)[0]
        return FileResponse(PAGE / name, media_type=f"{kind}; charset=utf-8")

    async def vega(self, request: Any) -> Any:
        """Vega for charts, from the package that draws them."""
        from starlette.responses import Response

        try:
            script = await asyncio.to_thread(vega)
        except ImportError:
            script = "throw new Error(\"Charts need vl-convert-python: pip install 'suffice[serve]'.\")"
        kept = {"cache-control": "private, max-age=86400"}
        return Response(script, media_type="text/javascript; charset=utf-8", headers=kept)

    async def upload(self, request: Any) -> Any:
        """An image file as the body of a request, its name in ``X-Name``."""
        try:
            data = await _body(request, MOST_BYTES)
            name = unquote(request.headers.get("x-name", "image"))
            return _json({"data": await asyncio.to_thread(self.explorer.add_picture, data, name)})
        except Exception as error:
            return self._error(error)

    async def question(self, request: Any) -> Any:
        """One message over HTTP; what comes meanwhile is left out, and the answer is waited for."""
        try:
            text = await _body(request, MOST_MESSAGE)
            data = _parsed(text.decode("utf-8", "replace"))
        except Exception as error:
            return self._error(error)
        channel = _Once(asyncio.get_running_loop())
        self.explorer.handle(channel, {"id": 0, "kind": request.path_params["kind"], "data": data})
        try:
            answer = await asyncio.wait_for(channel.answer, PATIENCE)
        except TimeoutError:
            return self._error(Busy("It took too long."))
        finally:
            self.explorer.leave(channel)
        if "error" in answer:
            return _json({"error": answer["error"]}, STATUS.get(answer["error"]["kind"], 400))
        return _json({key: value for key, value in answer.items() if key != "id"})

    async def live(self, socket: Any) -> None:
        """Messages over a web socket, for as long as the page is open."""
        if self.sockets >= MOST_SOCKETS:
            await socket.close(code=4503, reason="Too many pages are open.")
            return
        await socket.accept()
        self.sockets += 1
        channel = _Socket(asyncio.get_running_loop())
        sending = asyncio.create_task(_send_all(socket, channel))
        try:
            while True:
                received = await socket.receive()
                if received["type"] == "websocket.disconnect":
                    break
                text = received.get("text")
                if text is None or len(text) > MOST_MESSAGE:
                    channel.send({"id": None, "error": {"kind": "OptionError", "message": "The message is too long."}})
                    continue
                try:
                    message = _parsed(text)
                except SufficeError as error:
                    channel.send({"id": None, "error": self.explorer.words_of(error)})
                    continue
                self.explorer.handle(channel, message)
        finally:
            self.sockets -= 1
            sending.cancel()
            self.explorer.leave(channel)

    def _error(self, error: Exception) -> Any:
        words = self.explorer.words_of(error)
        return _json({"error": words}, STATUS.get(words["kind"], 400))


STATUS = {"Unknown": 404, "Busy": 503, "ImageTooLarge": 413}


class _Once:
    """The way back of a request over HTTP: the last message is the answer."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop, self.answer = loop, loop.create_future()

    def send(self, message: Message) -> None:
        if "part" not in message:
            self.loop.call_soon_threadsafe(self._set, message)

    def _set(self, message: Message) -> None:
        if not self.answer.done():
            self.answer.set_result(message)


class _Socket:
    """The way back of a web socket."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.queue: asyncio.Queue[Message] = asyncio.Queue(MOST_UNSENT)

    def send(self, message: Message) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._put, message)

    def _put(self, message: Message) -> None:
        if not self.queue.full():
            self.queue.put_nowait(message)


async def _send_all(socket: Any, channel: _Socket) -> None:
    while True:
        message = await channel.queue.get()
        await socket.send_text(_written(message))


async def _body(request: Any, most: int) -> bytes:
    """The body of a request, read no further than it may be long."""
    parts, length = [], 0
    async for part in request.stream():
        length += len(part)
        if length > most:
            raise ImageTooLarge(f"More than {most:,} bytes were sent; that is the limit.")
        parts.append(part)
    return b"".join(parts)


def _parsed(text: str) -> Any:
    try:
        return parse_json(text, parse_constant=_no_constant)
    except ValueError:
        raise Unknown("The message is no JSON.") from None


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _json(content: Any, status: int = 200) -> Any:
    from starlette.responses import Response

    return Response(_written(content), status, media_type="application/json")


def _written(content: Any) -> str:
    """JSON, with null for numbers that are not finite."""
    try:
        return json.dumps(content, allow_nan=False, default=str)
    except ValueError:
        return json.dumps(_finite(content), allow_nan=False, default=str)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not isfinite(value) else value


@lru_cache(maxsize=1)
def vega() -> str:
    """Vega with what embeds it, as a script that sets ``window.vegaEmbed``."""
    import vl_convert

    return str(vl_convert.javascript_bundle(CHARTS))
