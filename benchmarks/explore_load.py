"""The explorer under load, against a server on this machine only: latency, many pages at once, and any message.

    python benchmarks/explore_load.py latency --models 1 --models 4 --models 17
    python benchmarks/explore_load.py latency --model timm/resnet50 --random-weights --device cuda
    python benchmarks/explore_load.py pages --clients 50 --seconds 60
    python benchmarks/explore_load.py fuzz --messages 10000

Latency is from a question sent over the web socket to the answer of the last model. Each question is about other cells,
so that nothing is answered from memory. Prints JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import random
import resource
import threading
import time
from contextlib import contextmanager
from typing import Annotated
from urllib.parse import quote, urlsplit

import torch
import typer

import suffice
from suffice.explorer import Explorer, serve
from suffice.explorer.reading import pack

app = typer.Typer(add_completion=False)
FOUR = ["zoo/resnet", "zoo/convnext", "zoo/swin", "zoo/deit"]
STRANGE = [
    None, True, -1, 0, 7, 56, 10**30, 1e308, float("nan"), "", "0", "zoo/resnet", "blur", "/etc/passwd", "../../x",
    "<script>", "' OR 1=1 --", "\x00", "x" * 5000, [], {}, [[[]]], {"a": {"b": []}}, ["zoo/resnet"] * 100,
]  # fmt: skip
FIELDS = [
    "image",
    "grid",
    "cells",
    "baseline",
    "target",
    "model",
    "models",
    "method",
    "offset",
    "count",
    "rows",
    "table",
    "filters",
]
KINDS = ["hello", "ask", "images", "image", "views", "methods", "card", "rows", "figures", "cancel", "nonsense", "map"]


@contextmanager
def running(models: list[str], device: str | None = None, random_weights: bool = False):
    """A server with some models; yields the link, and the explorer behind it."""
    nets = [suffice.load(name, pretrained=not random_weights, device=device) for name in models]
    explorer = Explorer(nets, suffice.open_images("scenes:test[:16]"))
    links: queue.Queue[str] = queue.Queue()
    threading.Thread(target=lambda: serve(explorer, port=0, on_start=links.put), daemon=True, name="server").start()
    link = links.get(timeout=60)
    time.sleep(1)
    yield link, explorer


def question(number: int, draw: random.Random) -> str:
    cells = pack(draw.sample(range(49), draw.randint(5, 44)), 7)
    data = {"image": str(draw.randrange(4)), "grid": 7, "cells": cells}
    return json.dumps({"id": number, "kind": "ask", "data": data})


async def connect(link: str):
    import websockets

    parts = urlsplit(link)
    token = parts.query.removeprefix("token=")
    address = f"ws://{parts.netloc}/api/live"
    return await websockets.connect(address, additional_headers={"Authorization": f"Bearer {token}"}, max_size=None)


async def ask(socket, number: int, draw: random.Random) -> tuple[float, str]:
    """Milliseconds until the last answer, and how it ended: data, dropped or error."""
    began = time.perf_counter()
    await socket.send(question(number, draw))
    while True:
        got = json.loads(await socket.recv())
        if got.get("id") == number and "part" not in got:
            took = 1e3 * (time.perf_counter() - began)
            failed = any("error" in answer for answer in got.get("data", {}).values())
            return took, "error" if failed else next(k for k in got if k != "id")


def quantiles(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    at = {
        name: ordered[min(len(ordered) - 1, int(share * len(ordered)))] for name, share in (("p50", 0.5), ("p95", 0.95))
    }
    return {"questions": len(times)} | {name: round(value, 1) for name, value in at.items()}


def about() -> dict[str, object]:
    return {"cores": os.cpu_count(), "threads": torch.get_num_threads(), "load": round(os.getloadavg()[0], 1)}


def memory() -> int:
    """Megabytes in use."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() // 2**20


@app.command()
def latency(
    models: Annotated[list[int] | None, typer.Option(help="How many networks of the zoo; default 1, 4, 17.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="A model by name instead; each alone, then all.")] = None,
    random_weights: Annotated[bool, typer.Option("--random-weights", help="Fetch no weights.")] = False,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, …")] = None,
    questions: int = 100,
    threads: Annotated[int | None, typer.Option(help="Of torch.")] = None,
) -> None:
    """From a click to the last answer, one page, one question after the other."""
    if threads:
        torch.set_num_threads(threads)
    if model:
        benches = [[name] for name in model] + ([list(model)] if len(model) > 1 else [])
    else:
        benches = [(suffice.list_models("zoo/*") if n > 4 else FOUR)[:n] for n in models or [1, 4, 17]]
    for names in benches:
        with running(names, device, random_weights) as (link, explorer):
            before = os.getloadavg()[0]
            times = asyncio.run(_latencies(link, questions))
            said = {"models": len(names), "names": names} if model else {"models": len(names)}
            where = {"device": _device_name(next(iter(explorer.seats.values())).net.device)}
            measured = {**said, **quantiles(times), **where, **about(), "load_before": round(before, 1)}
            print(json.dumps(measured), flush=True)
            assert not explorer.failures, explorer.failures[-1]


async def _latencies(link: str, questions: int) -> list[float]:
    """Milliseconds of each question, after ten that make the probes and warm torch up."""
    draw = random.Random(0)
    async with await connect(link) as socket:
        for number in range(10):
            await ask(socket, number, draw)
        ends = [await ask(socket, 10 + number, draw) for number in range(questions)]
    assert all(end == "data" for _, end in ends), ends
    return [took for took, _ in ends]


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


@app.command()
def pages(clients: int = 50, seconds: float = 60.0, models: int = 1) -> None:
    """Many pages at once, each asking as soon as it was answered."""

    async def one(link: str, seed: int, until: float) -> list[tuple[float, str]]:
        draw, found, number = random.Random(seed), [], 0
        async with await connect(link) as socket:
            while time.perf_counter() < until:
                number += 1
                found.append(await ask(socket, number, draw))
        return found

    async def all_of_them(link: str) -> list[tuple[float, str]]:
        until = time.perf_counter() + seconds
        return [
            one for some in await asyncio.gather(*(one(link, seed, until) for seed in range(clients))) for one in some
        ]

    with running(FOUR[:models]) as (link, explorer):
        asyncio.run(_warm(link))
        before = memory()
        found = asyncio.run(all_of_them(link))
        ends = {kind: sum(end == kind for _, end in found) for kind in ("data", "dropped", "error")}
        print(json.dumps({
            "clients": clients, "seconds": seconds, "models": models, **quantiles([t for t, _ in found]), **ends,
            "failures": len(explorer.failures), "megabytes_before": before, "megabytes_after": memory(), **about(),
        }))  # fmt: skip
        assert not explorer.failures, explorer.failures[-1]


async def _warm(link: str) -> None:
    draw = random.Random(1)
    async with await connect(link) as socket:
        for number in range(10):
            await ask(socket, number, draw)


@app.command()
def fuzz(messages: int = 10_000, seed: int = 0) -> None:
    """Requests of any shape: messages, paths, files that are none. No answer may be a failure of the server."""
    import httpx

    draw = random.Random(seed)

    def value(depth: int = 0):
        if depth < 2 and draw.random() < 0.15:
            return {draw.choice(FIELDS): value(depth + 1) for _ in range(draw.randint(0, 3))}
        return draw.choice([*STRANGE, draw.randint(-9, 99), draw.random() * 10 ** draw.randint(-9, 9)])

    with running(FOUR[:1]) as (link, explorer):
        parts = urlsplit(link)
        root, token = f"http://{parts.netloc}", parts.query.removeprefix("token=")
        statuses: dict[int, int] = {}
        before = memory()
        with httpx.Client(headers={"Authorization": f"Bearer {token}"}, timeout=120) as client:
            for number in range(messages):
                way = number % 10
                if way < 7:
                    data = {draw.choice(FIELDS): value() for _ in range(draw.randint(0, 6))}
                    answer = client.post(f"{root}/api/{draw.choice(KINDS)}", content=json.dumps(data))
                elif way == 7:
                    answer = client.get(f"{root}/{quote(str(draw.choice(STRANGE)) + '/../' * draw.randint(0, 4))}")
                elif way == 8:
                    start = draw.choice(
                        [b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF\0\0\0\0WEBP", b"II*\0"]
                    )
                    answer = client.post(f"{root}/api/upload", content=start + draw.randbytes(draw.randint(0, 500)))
                else:
                    answer = client.post(f"{root}/api/ask", content=draw.randbytes(draw.randint(0, 200)))
                statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
                assert "root:x:" not in answer.text
        said = {"messages": messages, "statuses": dict(sorted(statuses.items())), "failures": len(explorer.failures)}
        print(json.dumps({**said, "megabytes_before": before, "megabytes_after": memory(), **about()}))
        assert not explorer.failures, explorer.failures[-1]
        assert 500 not in statuses


if __name__ == "__main__":
    app()
