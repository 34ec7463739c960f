"""The trained networks that come with the package are what their table says."""

import pytest
import torch

import suffice
from suffice.vision.stream import stream
from suffice.zoo.architectures import ARCHITECTURES
from suffice.zoo.source import WEIGHTS, table

FIRST = 100


@pytest.fixture(scope="module")
def scenes():
    images = suffice.open_images(f"scenes:test[:{FIRST}]")
    geometry = suffice.load("zoo/resnet", device="cpu").geometry
    pixels = torch.cat([batch.pixels for batch in stream(images, geometry, batch_size=100)])
    return pixels, torch.tensor(images.labels)


def test_every_network_is_there_and_all_are_small():
    assert list(table()) == list(ARCHITECTURES)
    assert {file.stem for file in WEIGHTS.glob("*.safetensors")} >= set(ARCHITECTURES)
    assert sum(file.stat().st_size for file in WEIGHTS.iterdir()) <= 25e6


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_it_answers_as_the_table_says(name, scenes):
    row = table()[name]
    pixels, labels = scenes
    net = suffice.load(f"zoo/{name}", device="cpu")
    with torch.inference_mode():
        decisions = torch.cat([net(part).argmax(1) for part in pixels.split(50)])
    # Another machine may round another way where two classes are as likely as each other.
    assert abs(int((decisions == labels).sum()) - row["right_of_first_100"]) <= 1
    assert row["accuracy"] == pytest.approx(row["right_of_first_100"] / FIRST, abs=0.03)
    assert row["accuracy"] >= 0.9
    assert sum(p.numel() for p in net.module.parameters()) == row["parameters"]


def test_the_list_tells_accuracy_and_parameters():
    listed = {m.name: dict(m.facts) for m in suffice.vision.model_entries("zoo/*")}
    assert listed["zoo/deit"] == {key: table()["deit"][key] for key in ("accuracy", "parameters")}
    assert all(m.pretrained for m in suffice.vision.model_entries("zoo/*"))
