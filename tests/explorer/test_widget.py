"""The explorer in a notebook: the same messages over another channel, the same modules as one."""

import base64
import io
import json
import queue
import re

import pytest
from PIL import Image

import suffice
from suffice.errors import OptionError
from suffice.explorer.bundle import PAGE, bundled, stylesheet
from suffice.explorer.reading import pack
from suffice.explorer.widget import answer
from tests.browser import Watched, chromium


class Heard:
    def __init__(self):
        self.messages = queue.Queue()

    def send(self, message):
        self.messages.put(message)

    def last(self):
        while "part" in (got := self.messages.get(timeout=60)):
            pass
        return got


def test_messages_of_a_widget_are_answered_as_on_the_page(explorer):
    heard = Heard()
    asked = {"image": "3", "grid": 7, "cells": pack((30,), 7), "baseline": "black", "target": "1", "models": ["oracle"]}
    answer(explorer, heard, {"id": 1, "kind": "ask", "data": asked})
    assert heard.last()["data"]["oracle"]["enough"]
    answer(explorer, heard, {"id": 2, "kind": "charts"})
    assert "vegaEmbed" in heard.last()["data"]["script"]


def test_files_come_over_the_channel(explorer):
    heard, data = Heard(), io.BytesIO()
    Image.new("RGB", (20, 20), "red").save(data, "PNG")
    content = base64.b64encode(data.getvalue()).decode()
    answer(explorer, heard, {"id": 1, "kind": "upload", "data": {"name": "red.png", "content": content}})
    assert heard.last()["data"]["name"] == "red.png"
    for wrong in (None, {}, {"name": "a", "content": "!"}, {"name": 1, "content": content}):
        answer(explorer, heard, {"id": 2, "kind": "upload", "data": wrong})
        assert heard.last()["error"]["kind"] in ("OptionError", "UnreadableImage")


def test_modules_become_one():
    whole = bundled()
    assert not re.search(r"^import ", whole, flags=re.MULTILINE)
    assert re.findall(r"^export .*", whole, flags=re.MULTILINE) == ["export default { render };"]
    declared = re.findall(r"^(?:async )?(?:function|class|const|let) ([\w$]+)", whole, flags=re.MULTILINE)
    assert len(declared) == len(set(declared))
    names = set(re.findall(r"^// ([\w-]+\.js)$", whole, flags=re.MULTILINE))
    assert names == {path.name for path in PAGE.glob("*.js")} - {"main.js"}


def test_the_widget_shows_itself(explorer):
    """In a browser, with a stand-in for the notebook that hands messages to and fro."""
    page_of = (
        "<div id='here'></div><script type='module'>{module}\nconst heard = [];"
        "const model = {{ send: message => window.ask(JSON.stringify(message)), "
        "on: (name, f) => heard.push(f), off() {{}},"
        " get: () => ({{ grid: 14, baseline: 'black' }}) }};"
        "window.tell = text => heard.forEach(f => f(JSON.parse(text)));"
        "render({{ model, el: document.getElementById('here') }});</script>"
    )
    with chromium() as browser:
        watched = Watched(browser, viewport={"width": 900, "height": 900})
        heard = Heard()
        watched.page.expose_function("ask", lambda text: answer(explorer, heard, json.loads(text)))
        module = bundled().replace("export default { render };", "")
        watched.page.set_content(f"<style>{stylesheet()}</style>" + page_of.format(module=module))
        for _ in range(400):
            try:
                message = heard.messages.get(timeout=0.05)
            except queue.Empty:
                watched.page.wait_for_timeout(20)
            else:
                watched.page.evaluate("text => window.tell(text)", json.dumps(message))
            if watched.page.query_selector("[data-answered]"):
                break
        assert watched.page.inner_text(".count") == "196 of 196 cells shown"
        assert watched.page.locator(".model").count() == 3
        assert [one for one in watched.said if one.startswith("error")] == []
        assert watched.asked == []


def test_explore_makes_a_widget():
    pytest.importorskip("anywidget")
    widget = suffice.explore(suffice.load("zoo/resnet"), "scenes:test[:2]", grid=5)
    try:
        assert widget.given == {"baseline": "blur", "grid": 5}
        assert list(widget.explorer.seats) == ["zoo/resnet"]
        assert len(widget.explorer.pictures) == 2
    finally:
        widget.close()
    study = suffice.Study("later", "scenes:test[:2]", ["zoo/resnet"], {"said": {"kind": "predictions"}})
    with pytest.raises(OptionError, match="not run yet"):
        suffice.explore(study)
