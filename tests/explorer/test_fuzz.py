"""Whatever is sent, the answer is an answer: never an error of the server, never a file, never silence."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

KINDS = [
    "hello",
    "ask",
    "images",
    "image",
    "views",
    "methods",
    "card",
    "rows",
    "figures",
    "find",
    "map",
    "cancel",
    "no",
]
FIELDS = [
    "image", "grid", "cells", "baseline", "target", "model", "models", "method", "offset", "count", "format", "rows",
    "table", "filters", "sort", "descending", "bins", "id", "kind",
]  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        ["", "0", "1", "-1", "99999999999", "zoo/resnet", "oracle", "blur", "black", "/etc/passwd", "../../etc/passwd",
         "<script>alert(1)</script>", "'; DROP TABLE x; --", "\x00", "AAACAwAAAA", "grad-cam", "u" + "0" * 20, "NaN"]
    ),
)  # fmt: skip
VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-5, 60), st.integers(), st.just(10**400), st.floats(), TEXTS,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3)),
    max_leaves=6,
)  # fmt: skip
DATA = st.one_of(st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6), VALUES)


def written(value) -> bytes:
    return json.dumps(value).encode()  # NaN and infinity too, which no JSON has


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(kind=st.sampled_from(KINDS), data=DATA)
def test_messages_of_any_shape(client, kind, data):
    answer = client.post(f"/api/{kind}", content=written(data))
    assert answer.status_code < 500 or answer.json()["error"]["kind"] == "Busy"
    assert "root:" not in answer.text
    said = answer.json()
    assert "error" not in said or said["error"]["kind"] != "Failure", said


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(messages=st.lists(st.one_of(st.text(max_size=60), DATA.map(json.dumps)), min_size=1, max_size=4))
def test_sockets_take_anything(client, messages):
    with client.websocket_connect("/api/live") as socket:
        for text in messages:
            socket.send_text(text)
        socket.send_json({"id": "last", "kind": "images", "data": {"count": 1}})
        while True:
            got = socket.receive_json()
            assert got.get("error", {}).get("kind") != "Failure", got
            if got.get("id") == "last":
                break


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(path=st.text(max_size=40), body=st.binary(max_size=200))
def test_paths_and_bodies_of_any_kind(client, path, body):
    from urllib.parse import quote

    assert client.get("/" + quote(path)).status_code < 500
    assert client.post("/api/" + quote(path, safe=""), content=body).status_code < 500
    assert client.post("/api/upload", content=body).status_code == 400
