"""Maps as pictures: in the notebook, in files, on axes of matplotlib."""

import sys
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
import torch
from PIL import Image

from suffice.attribution import attribute, given_maps
from suffice.attribution import attribution as module
from suffice.errors import MissingExtra, OptionError
from suffice.testing import WeightedSum

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def found():
    oracle = WeightedSum({5: 1.0, 6: 1.0}, threshold=1.0, grid=4, link="smooth")
    net = oracle.classifier(32).replace(labels=["cat & dog", "bird"])
    return attribute(net, torch.stack([oracle.image(32)] * 6), "occlusion", window=8, stride=8)


def texts(markup):
    return ["".join(t.itertext()) for t in ElementTree.fromstring(markup).iter(f"{SVG}text")]


def test_it_names_method_model_image_class_and_scale(found):
    markup = found.to_svg()
    said = texts(markup)
    assert said[:2] == ["occlusion", f"{found.settings['model']} · 6 images"]
    for i in range(6):
        assert Path(found.names[i]).name in said
        assert f"{found.labels[i]} · {float(found.confidences[i]):.1%}" in said
    assert sum(text.startswith("colors from ") for text in said) == 6
    assert texts(found[0].to_svg())[1] == found.settings["model"]
    assert {"low", "high", "each map on its own scale"} <= set(said)
    rows = [float(image.get("y")) for image in ElementTree.fromstring(markup).iter(f"{SVG}image")][:6]
    assert [rows.count(y) for y in sorted(set(rows))] == [4, 2]


def test_the_scale_is_that_of_the_colors():
    values = torch.zeros(1, 8, 8)
    values[0, :4] = 0.5
    said = texts(given_maps(values, torch.tensor([3]), method="mine").to_svg())
    assert "colors from 0 to 0.5" in said
    assert "class 3" in said, "what is not known is not made up"
    said = texts(given_maps(values - 1, torch.tensor([3])).to_svg())
    assert "colors from −1 to 1" in said
    assert {"against", "for"} <= set(said)
    assert "1 everywhere" in texts(given_maps(torch.ones(1, 8, 8), torch.tensor([3])).to_svg())


def test_a_notebook_shows_the_first_eight(found):
    assert sum(text.startswith("colors from") for text in texts(found[[0] * 20]._repr_svg_())) == 8


def test_show_opens_it(found, monkeypatch):
    opened = []
    monkeypatch.setattr(module, "show", lambda markup, kind: opened.append((markup, kind)))
    assert found[0].show() is None
    assert opened == [(found[0].to_svg(), "svg")]


def test_images_given_again_are_drawn_instead(found):
    black = torch.zeros(6, 3, 32, 32)
    assert found.to_svg(black) != found.to_svg()
    with pytest.raises(OptionError, match="2 images were given for 6 maps"):
        found.to_svg(black[:2])


def test_the_ending_makes_it_a_picture(found, tmp_path):
    assert found.save(tmp_path / "maps.svg").read_text(encoding="utf-8") == found.to_svg()
    assert found.save(tmp_path / "maps.pdf").read_bytes().startswith(b"%PDF-")
    size = ElementTree.fromstring(found.to_svg())
    picture = Image.open(found.save(tmp_path / "maps.png"))
    assert picture.size == pytest.approx([2 * float(size.get("width")), 2 * float(size.get("height"))], abs=1)
    assert found.save(tmp_path / "maps").suffix == ".safetensors"


def test_axes_of_matplotlib_on_request(found):
    figures = pytest.importorskip("matplotlib.figure")
    figure = figures.Figure()
    axes = figure.subplots(2, 3)
    assert found.show(ax=axes) is None
    assert [place.get_title() for place in axes.flat] == [
        f"{label} · {confidence:.1%}"
        for label, confidence in zip(found.labels, found.confidences.tolist(), strict=True)
    ]
    assert len(figure.axes) == 12, "a color bar each"
    assert figure.axes[6].get_ylabel() == "occlusion"
    alone = figures.Figure()
    found[1].show(ax=alone.subplots())
    assert len(alone.axes) == 2
    with pytest.raises(OptionError, match="6 axes were given for 2 maps"):
        found[:2].show(ax=axes)


def test_without_matplotlib_the_error_says_how_to_get_it(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.cm", None)
    with pytest.raises(MissingExtra, match=r"suffice\[plots\]"):
        found[0].show(ax=SimpleNamespace())
