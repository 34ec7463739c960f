"""Who may ask, and who may not."""

import socket

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from suffice.errors import OptionError
from suffice.explorer.app import make_app
from suffice.explorer.server import _listen, check_host, names_of

TOKEN = "token-of-the-guard"
ORIGIN = {"Origin": "http://testserver"}


@pytest.fixture
def visitor(explorer):
    """A browser that has not seen the link yet."""
    with TestClient(make_app(explorer, TOKEN, ("testserver",), 80), follow_redirects=False) as opened:
        yield opened


@pytest.fixture
def guest(visitor):
    """A browser that has."""
    assert visitor.get(f"/?token={TOKEN}").status_code == 303
    return visitor


def test_nothing_is_answered_without_the_token(visitor):
    for path in ("/", "/main.js", "/vega.js"):
        refused = visitor.get(path)
        assert refused.status_code == 403
        assert "link that suffice serve printed" in refused.text
    for kind in ("hello", "ask", "upload"):
        assert visitor.post(f"/api/{kind}", headers=ORIGIN, json={}).status_code == 403
    assert visitor.get("/?token=wrong").status_code == 403
    assert visitor.post("/api/hello", headers={"Authorization": "Bearer wrong"}, json={}).status_code == 403
    with pytest.raises(WebSocketDisconnect), visitor.websocket_connect("/api/live", headers=ORIGIN):
        pass


def test_the_link_leaves_a_cookie_and_no_token_in_the_address(visitor):
    welcome = visitor.get(f"/?token={TOKEN}&x=1")
    assert (welcome.status_code, welcome.headers["location"]) == (303, "/?x=1")
    cookie = welcome.headers["set-cookie"]
    assert cookie.startswith("suffice-80=")
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    page = visitor.get("/")
    assert page.status_code == 200
    assert TOKEN not in page.text


def test_a_link_does_not_lead_elsewhere(visitor):
    assert visitor.get(f"//evil.example/?token={TOKEN}").headers["location"].startswith("/")
    assert not visitor.get(f"//evil.example/?token={TOKEN}").headers["location"].startswith("//")
    assert visitor.get(f"/a%0d%0ab%3Fc?token={TOKEN}").headers["location"] == "/a%0D%0Ab%3Fc"


def test_a_browser_that_has_seen_the_link_is_answered(guest):
    assert guest.post("/api/hello", headers=ORIGIN, json={}).json()["data"]["images"] == 4
    with guest.websocket_connect("/api/live", headers=ORIGIN) as socket:
        socket.send_json({"id": 1, "kind": "hello"})
        assert socket.receive_json()["data"]["images"] == 4


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://testserver.evil.example", "http://testserver:81"]
)
def test_other_pages_are_refused_even_with_the_cookie(guest, origin):
    assert guest.post("/api/hello", headers={"Origin": origin}, json={}).status_code == 403
    with pytest.raises(WebSocketDisconnect), guest.websocket_connect("/api/live", headers={"Origin": origin}):
        pass


def test_a_cookie_alone_is_not_enough_to_post(guest):
    assert guest.post("/api/hello", json={}).status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "testserver.evil.example", "127.0.0.1.evil.example", ""])
def test_other_names_of_the_server_are_refused(guest, host):
    assert guest.get("/", headers={"Host": host}).status_code == 421
    assert guest.get(f"/?token={TOKEN}", headers={"Host": host}).status_code == 421


def test_pages_may_load_nothing_from_elsewhere(guest):
    headers = guest.get("/").headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path", ["/../app.py", "/%2e%2e/app.py", "/..%2fapp.py", "/app.py", "/style.css%00.js", "/page/main.js", "/.env"]
)
def test_only_files_of_the_page_are_given(guest, path):
    answer = guest.get(path)
    assert answer.status_code in (404, 405)
    assert "import" not in answer.text


def test_listening_on_the_network_has_to_be_meant():
    check_host("127.0.0.1", False)
    check_host("0.0.0.0", True)
    for host in ("0.0.0.0", "192.168.1.5", "::"):
        with pytest.raises(OptionError, match="--i-know"):
            check_host(host, False)
    assert "evil.example" not in names_of("192.168.1.5")
    assert "192.168.1.5" in names_of("192.168.1.5")
    assert "*" not in names_of("127.0.0.1")


def test_the_link_works_as_soon_as_it_is_printed():
    """Browsers that --open starts may be faster than the server."""
    with _listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname(), timeout=5):
        pass


def test_any_address_that_is_a_number_is_known_where_all_are_listened_on(explorer):
    with TestClient(make_app(explorer, TOKEN, names_of("0.0.0.0"), 80)) as opened:
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        assert opened.get("/", headers={**bearer, "Host": "10.1.2.3:80"}).status_code == 200
        assert opened.get("/", headers={**bearer, "Host": "evil.example"}).status_code == 421
