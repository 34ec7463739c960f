"""Words and numbers, and how wide they are."""

from suffice.draw.words import counted, percent, printable, shortened, text_width, wrap


def test_lines_are_broken_within_the_width():
    words = ["explanation", "of", "a", "(P1", "∧", "P2)"] * 5
    lines = wrap(words, 12, 140)
    assert [place for line in lines for place in line] == list(range(30))
    assert all(text_width(" ".join(words[i] for i in line), 12) <= 140 + 1e-6 for line in lines)
    assert wrap(["w" * 50, "a"], 12, 30) == [[0], [1]]


def test_long_names_lose_their_middle():
    name = "ILSVRC2012_" + "x" * 100 + "_00000023.JPEG"
    short = shortened(name, 12, 150)
    assert text_width(short, 12) <= 150
    assert short.startswith("ILSV")
    assert short.endswith(".JPEG")
    assert shortened("cat.jpg", 12, 150) == "cat.jpg"


def test_numbers_as_readers_want_them():
    assert [counted(n, "cell") for n in (0, 1, 2, 1204)] == ["no cells", "1 cell", "2 cells", "1\u2009204 cells"]
    assert [percent(r) for r in (0.934, 1.2, float("nan"))] == ["93\u2009%", "120\u2009%", "–"]
    little = ["0\u2009%", "<\u20090.1\u2009%", "0.1\u2009%", "0.8\u2009%", "1\u2009%"]
    assert [percent(r) for r in (0, 0.0003, 0.0012, 0.008, 0.00999)] == little


def test_what_no_document_can_hold_is_replaced():
    assert printable("a\x00b\x1b\udcff.jpg") == "a\ufffdb\ufffd\ufffd.jpg"
    assert printable("naïve 猫.jpg") == "naïve 猫.jpg"


def test_of_endless_names_only_the_ends_are_looked_at():
    assert shortened("a" * 10**6, 12, 150) == shortened("a" * 100, 12, 150)
    assert shortened("i" * 10**6, 12, 150) == shortened("i" * 100, 12, 150)
    assert shortened("a" * 10, 12, 1) == "a…a"
