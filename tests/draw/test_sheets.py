"""Sheets of pictures: where tiles and their words are."""

from xml.etree import ElementTree

import pytest
from PIL import Image

from suffice.draw import document
from suffice.draw.sheets import Tile, color_bar, tile_rows
from suffice.draw.words import text_width

SVG = "{http://www.w3.org/2000/svg}"
PICTURE = Image.new("RGB", (40, 30), "gray")


def drawn(tiles, **options):
    parts, height = tile_rows(tiles, 10, 20, side=100, high=75, **options)
    return ElementTree.fromstring(document(900, 900, *parts, title="sheet")), height


def test_rows_wrap_and_words_are_outside_of_the_pictures():
    tree, height = drawn([Tile(PICTURE, f"method {i}", [f"class {i}", "0 to 1"]) for i in range(7)], columns=3)
    boxes = [[float(image.get(k)) for k in ("x", "y", "width", "height")] for image in tree.iter(f"{SVG}image")]
    assert len({x for x, *_ in boxes}) == 3
    assert len({y for _, y, *_ in boxes}) == 3
    assert max(y + high for _, y, _, high in boxes) < 20 + height
    words = [t for t in tree.iter(f"{SVG}text") if "".join(t.itertext())]
    assert len(words) == 3 * 7
    for word in words:
        x, y, size = (float(word.get(k)) for k in ("x", "y", "font-size"))
        assert all(not (left <= x < left + w and top < y < top + h + size * 0.7) for left, top, w, h in boxes)


def test_words_are_shortened_to_their_picture():
    tree, _ = drawn([Tile(PICTURE, "a" * 80, ["b" * 80])], columns=1)
    for word in tree.iter(f"{SVG}text"):
        assert text_width("".join(word.itertext()), float(word.get("font-size"))) <= 100


def test_a_note_stands_where_there_is_no_picture():
    tree, _ = drawn([Tile(None, "rollout", note="the same map as above")], columns=1)
    assert not list(tree.iter(f"{SVG}image"))
    said = " ".join("".join(t.itertext()) for t in tree.iter(f"{SVG}text"))
    assert "the same map as above" in said


def test_the_bar_of_colors_says_what_its_ends_are():
    for signed, ends in ((False, ("low", "high")), (True, ("against", "for"))):
        tree = ElementTree.fromstring(document(500, 50, *color_bar(10, 20, signed=signed, about="why"), title="bar"))
        places = {"".join(t.itertext()): float(t.get("x")) for t in tree.iter(f"{SVG}text")}
        bar = tree.find(f".//{SVG}image")
        left, width = float(bar.get("x")), float(bar.get("width"))
        assert places[ends[0]] + text_width(ends[0], 11) <= left + 1
        assert left + width < places[ends[1]] < places["why"]


def test_nothing_is_a_sheet_too():
    assert tile_rows([], 0, 0, side=10, high=10, columns=3) == ([], pytest.approx(0))
