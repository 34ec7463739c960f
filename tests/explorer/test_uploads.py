"""Own images: small ones are taken in, and nothing else."""

import io

import numpy as np
import pytest
import torch
from PIL import Image

import suffice
from suffice.explorer.pictures import MOST_BYTES, Pictures
from suffice.explorer.reading import pack


def encoded(image: Image.Image, format: str = "PNG") -> bytes:
    data = io.BytesIO()
    image.save(data, format)
    return data.getvalue()


@pytest.fixture(scope="module")
def photo() -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 255, (80, 100, 3), dtype=np.uint8))


def test_an_own_image_is_asked_about_like_any_other(client, photo):
    answer = client.post("/api/upload", content=encoded(photo), headers={"X-Name": "my%20cat.png"})
    image = answer.json()["data"]
    assert image["name"] == "my cat.png"
    assert image["thumbnail"].startswith("data:image/")
    asked = {"image": image["key"], "grid": 7, "cells": pack(range(20), 7), "models": ["zoo/deit"]}
    said = client.post("/api/ask", json=asked).json()["data"]["zoo/deit"]
    probe = suffice.Probe(suffice.load("zoo/deit"), photo)
    expected = probe.ask(0, probe.grid.from_cells([range(20)]))
    assert said["confidence"] == pytest.approx(float(expected), abs=1e-5)


@pytest.mark.parametrize("content", [b"", b"no image", b"\x89PNG\r\n\x1a\nbroken", b"<svg onload=alert(1)></svg>"])
def test_what_is_no_image_is_refused(client, content):
    answer = client.post("/api/upload", content=content)
    assert answer.status_code == 400
    assert answer.json()["error"]["kind"] == "UnreadableImage"


def test_a_truncated_image_is_refused(client, photo):
    assert client.post("/api/upload", content=encoded(photo, "JPEG")[:900]).status_code == 400


def test_too_many_bytes_are_refused_before_they_are_all_read(client):
    answer = client.post("/api/upload", content=(b"x" * 2**20 for _ in range(MOST_BYTES // 2**20 + 2)))
    assert answer.status_code == 413


def test_too_many_pixels_are_refused_by_their_header(client):
    bomb = encoded(Image.new("1", (8000, 8000)))
    assert len(bomb) < 100_000
    answer = client.post("/api/upload", content=bomb)
    assert answer.status_code == 413
    assert "pixels" in answer.json()["error"]["message"]


def test_names_are_only_names(client, photo):
    sent = {"X-Name": "..%2F..%2Fetc%2F%3Cscript%3E.png"}
    image = client.post("/api/upload", content=encoded(photo), headers=sent).json()["data"]
    assert image["key"].startswith("u")
    assert image["name"] == "<script>.png"
    again = client.post("/api/upload", content=encoded(photo), headers={"X-Name": "cat.png"}).json()["data"]
    assert (again["key"], again["name"]) == (image["key"], "cat.png")


def test_only_the_last_uploads_are_kept(photo):
    pictures = Pictures(suffice.open_images(torch.zeros(1, 3, 8, 8)))
    keys = [pictures.add(encoded(Image.new("RGB", (16, 16), (i, 0, 0))), f"{i}.png") for i in range(40)]
    with pytest.raises(suffice.SufficeError, match="drop it again"):
        pictures[keys[0]]
    assert pictures[keys[-1]].name == "39.png"


def test_uploads_are_kept_as_files_which_are_far_smaller_than_their_pixels(photo):
    data = encoded(photo, "JPEG")
    pictures = Pictures(suffice.open_images(torch.zeros(1, 3, 8, 8)))
    kept = pictures[pictures.add(data, "cat.jpg")]
    assert kept.source.data == data
    assert kept.decode().size == photo.size
