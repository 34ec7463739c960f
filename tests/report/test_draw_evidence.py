"""Evidence as files."""

import pytest
from PIL import Image

from suffice import find_evidence
from suffice.report import draw_evidence
from suffice.testing import AnyOf


@pytest.fixture(scope="module")
def evidence():
    oracle = AnyOf([(0, 1), (8,)], grid=3)
    return find_evidence(oracle.classifier(12), oracle.image(12), targets=1, baseline="black", grid=3)[0]


def test_graph_and_a_picture_of_every_explanation(evidence, tmp_path):
    files = draw_evidence(evidence, tmp_path / "new")
    assert sorted(file.suffix for file in files) == [".dot", ".json", ".png", ".png", ".svg"]
    assert all(file.exists() for file in files)
    assert Image.open(files[-1]).size == Image.open(files[-2]).size


def test_in_the_resolution_of_the_picture_given(evidence, tmp_path):
    sizes = []
    for side in (90, 180):
        given = Image.new("RGB", (side, side), "red")
        drawn = [file for file in draw_evidence(evidence, tmp_path / str(side), given) if file.suffix == ".png"]
        sizes.append(Image.open(drawn[0]).size)
    assert sizes[0] != sizes[1]


def test_the_graph_in_another_format(evidence, tmp_path):
    for format, begins in (("pdf", b"%PDF-"), ("png", b"\x89PNG")):
        graph = draw_evidence(evidence, tmp_path / format, format=format)[0]
        assert graph.name == f"graph.{format}"
        assert graph.read_bytes().startswith(begins)
        assert not list(graph.parent.glob("*.svg"))
