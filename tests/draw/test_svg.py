"""SVG as text, and showing it."""

import subprocess
import sys
import webbrowser
from types import SimpleNamespace
from xml.etree import ElementTree

from suffice.draw import document, show, tag, text

SVG = "{http://www.w3.org/2000/svg}"


def test_documents_stand_alone_and_hold_any_text():
    nasty = 'a<b>&"c"\' ]]> \x00'
    root = ElementTree.fromstring(
        document(20, 10.5, text(1, 2, nasty, 9), title=nasty, description="d", definitions=tag("defs"))
    )
    assert [child.tag.removeprefix(SVG) for child in root] == ["title", "desc", "defs", "rect", "text"]
    assert root.get("viewBox") == "0 0 20 10.5"
    assert root.findtext(f"{SVG}text") == root.findtext(f"{SVG}title") == nasty.replace("\x00", "\ufffd")


def test_attributes():
    assert tag("use", href="#a", opacity=None, class_="x") == '<use href="#a" class="x"/>'
    assert tag("g", "", id="a") == '<g id="a"></g>'


def test_outside_a_notebook_the_browser_shows_it(monkeypatch, capsys):
    monkeypatch.setattr(webbrowser, "open", lambda uri: False)
    path = show("<svg/>")
    assert path.read_text() == "<svg/>"
    assert str(path) in capsys.readouterr().out
    path.unlink()


def test_a_notebook_shows_it_below_the_cell(monkeypatch):
    shown = []
    display = SimpleNamespace(display=shown.append, SVG=lambda s: ("svg", s), HTML=lambda s: ("html", s))
    monkeypatch.setitem(sys.modules, "ipykernel", display)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    assert show("<svg/>") is None
    assert show("<p/>", "html") is None
    assert shown == [("svg", "<svg/>"), ("html", "<p/>")]


def test_the_room_is_light():
    heavy = ("matplotlib", "pyarrow", "scipy", "timm", "suffice.attribution", "suffice.evidence", "suffice.metrics")
    code = f"import sys, suffice.draw; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
