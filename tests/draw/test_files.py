"""Drawings as files, by the real converter."""

import io
import sys

import pytest
from PIL import Image

from suffice.draw import document, save_picture, tag, text
from suffice.draw.files import check_format, is_picture
from suffice.errors import MissingExtra, OptionError

DRAWING = document(
    120, 80, tag("rect", x=10, y=10, width=40, height=30, fill="#ff0000"), text(10, 70, "äß", 12), title="t"
)


def test_the_ending_says_what_is_written(tmp_path):
    svg, png, pdf = (save_picture(DRAWING, tmp_path / "new" / f"a.{kind}") for kind in ("svg", "PNG", "pdf"))
    assert svg.read_text(encoding="utf-8") == DRAWING
    assert pdf.read_bytes().startswith(b"%PDF-")
    picture = Image.open(png).convert("RGB")
    assert picture.size == (240, 160), "twice as sharp as the drawing"
    assert picture.getpixel((60, 50)) == (255, 0, 0)
    assert picture.getpixel((200, 20)) == (255, 255, 255)


def test_other_endings_are_refused(tmp_path):
    assert [is_picture(name) for name in ("a.svg", "a.PDF", "a.png.safetensors", "a")] == [True, True, False, False]
    with pytest.raises(OptionError, match=r"saved as .svg, .png, .pdf; got 'a.gif'"):
        save_picture(DRAWING, tmp_path / "a.gif")
    with pytest.raises(OptionError, match="format='gif'"):
        check_format("gif")


def test_without_the_converter_the_error_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    save_picture(DRAWING, tmp_path / "a.svg")
    check_format("svg")
    for attempt in (lambda: save_picture(DRAWING, tmp_path / "a.png"), lambda: check_format("pdf")):
        with pytest.raises(MissingExtra, match=r"pip install 'suffice\[report\]'"):
            attempt()
    assert not (tmp_path / "a.png").exists()


def test_pictures_inside_a_drawing_are_there_in_the_png(tmp_path):
    from suffice.draw import data_uri

    inner = data_uri(Image.new("RGB", (32, 32), (0, 128, 255)))
    drawing = document(100, 100, tag("image", href=inner, x=20, y=20, width=60, height=60), title="t")
    data = save_picture(drawing, tmp_path / "a.png").read_bytes()
    red, green, blue = Image.open(io.BytesIO(data)).convert("RGB").getpixel((100, 100))
    assert (red, green, blue) == pytest.approx((0, 128, 255), abs=3)
