"""A small explorer, and an application around it, for all tests of the room."""

import queue
import threading
from contextlib import contextmanager

import pytest
import torch
from starlette.testclient import TestClient

import suffice
from suffice.explorer import Explorer, open_explorer, serve
from suffice.explorer.app import make_app
from suffice.testing import AnyOf

TOKEN = "token-of-the-tests"


@pytest.fixture(scope="session")
def oracle() -> AnyOf:
    """Decides by cells 17 and 24, or by cell 30, of a 7×7 grid."""
    return AnyOf([(17, 24), (30,)], grid=7)


@pytest.fixture(scope="session")
def explorer(oracle):
    """Two small networks and an oracle, before three scenes and the oracle's own image."""
    nets = [suffice.load("zoo/resnet"), suffice.load("zoo/deit"), oracle.classifier(56).replace(name="oracle")]
    images = [suffice.open_images("scenes:test[:3]"), oracle.image(56)]
    made = Explorer(nets, suffice.open_images(images))
    yield made
    made.close()
    assert not made.failures, made.failures[-1]


@pytest.fixture(scope="session")
def client(explorer):
    """Asks as a script does."""
    with TestClient(make_app(explorer, TOKEN, ("testserver",)), headers={"Authorization": f"Bearer {TOKEN}"}) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _quiet_threads():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def small_study(tmp_path_factory):
    """A study of two networks and six scenes, run."""
    measure = {
        "said": {"kind": "predictions"},
        "evidence": {"kind": "evidence", "grid": 4, "max_size": 4, "max_mses": 2, "deletion_orders": 1},
    }
    study = suffice.Study("small", "scenes:test[:6]", ["zoo/resnet", "zoo/deit"], measure)
    return study.run(tmp_path_factory.mktemp("study"), device="cpu")


@pytest.fixture(scope="session")
def study_explorer(small_study):
    """The explorer of that study."""
    made = open_explorer(small_study.store.place, device="cpu")
    yield made
    made.close()
    assert not made.failures, made.failures[-1]


@pytest.fixture(scope="session")
def crossed_explorer(tmp_path_factory):
    """The explorer of a study of three networks with a cross-test."""
    measure = {
        "evidence": {"kind": "evidence", "grid": 2, "max_mses": 2},
        "maps": {"kind": "attribution", "method": "grad-cam"},
        "crossed": {"kind": "cross-test", "maps": "maps", "metrics": ["insertion"], "steps": 2},
    }
    models = ["zoo/vgg", "zoo/resnet", "zoo/convnext"]
    study = suffice.Study("crossed", "scenes:test[:3]", models, measure)
    done = study.run(tmp_path_factory.mktemp("crossed"), device="cpu")
    made = open_explorer(done.store.place, device="cpu")
    yield made
    made.close()
    assert not made.failures, made.failures[-1]


@contextmanager
def listening(explorer):
    """A server on this machine; yields its link."""
    links = queue.Queue()
    server = threading.Thread(target=serve, args=(explorer,), kwargs={"port": 0, "on_start": links.put}, daemon=True)
    server.start()
    yield links.get(timeout=60)
