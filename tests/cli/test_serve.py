"""``suffice serve`` as a user meets it."""

import pytest

from tests.cli.command import run

pytest.importorskip("starlette", reason="needs the server: pip install 'suffice[serve]'")


def test_listening_on_the_network_has_to_be_meant():
    assert "--i-know" in run("serve", "--host", "0.0.0.0", code=2).stderr


def test_what_cannot_be_served_is_said_before_anything_listens(tmp_path):
    assert "There is no study" in run("serve", tmp_path, code=2).stderr
    assert "zoo/resnet" in run("serve", "--model", "zoo/resnett", code=2).stderr
    uneven = run("serve", "--model", "zoo/resnet", "--model", "zoo/deit", "--checkpoint", "a.safetensors", code=2)
    assert "2 models and 1 checkpoints" in uneven.stderr
    assert "a.safetensors" in run("serve", "--model", "zoo/resnet", "--checkpoint", "a.safetensors", code=2).stderr
    assert "nowhere.png" in run("serve", "--model", "zoo/resnet", "--image", "nowhere.png", code=2).stderr


def test_the_link_with_its_token_is_printed(monkeypatch):
    uvicorn = pytest.importorskip("uvicorn")
    heard = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: heard.append(sockets[0].getsockname()))
    done = run("serve", "--model", "zoo/resnet", "--image", "scenes:test[:1]", "--port", "0", "--device", "cpu")
    assert heard[0][0] == "127.0.0.1"
    assert f"http://127.0.0.1:{heard[0][1]}/?token=" in done.stderr
