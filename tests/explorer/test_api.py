"""Messages over HTTP and over the web socket: the same answers as the functions give that they stand for."""

import pytest
import torch

import suffice
from suffice.errors import OptionError
from suffice.explorer import open_explorer
from suffice.explorer.card import bench_card
from suffice.explorer.pictures import Pictures
from suffice.explorer.reading import Question, pack
from suffice.explorer.seats import Desk


def asked(client, kind, status=200, **data):
    response = client.post(f"/api/{kind}", json=data)
    assert response.status_code == status, response.text
    return response.json()["data" if status == 200 else "error"]


def test_hello_says_what_there_is(client):
    said = asked(client, "hello")
    assert [model["name"] for model in said["models"]] == ["zoo/resnet", "zoo/deit", "oracle"]
    assert said["images"] == 4
    assert "blur" in said["baselines"]
    assert said["study"] is None


@pytest.mark.parametrize(("grid", "baseline"), [(7, "blur"), (14, "black"), (56, "noise")])
def test_answers_are_those_of_the_probe(client, grid, baseline):
    cells = sorted(torch.randperm(grid**2)[: grid**2 // 2].tolist())
    answers = asked(client, "ask", image="1", grid=grid, cells=pack(cells, grid), baseline=baseline)
    for name in ("zoo/resnet", "zoo/deit"):
        net, image = suffice.load(name), suffice.open_images("scenes:test[1:2]")
        probe = suffice.Probe(net, image, baseline=baseline, grid=grid)
        expected = probe.respond(0, probe.grid.from_cells([cells]))
        answer = answers[name]
        assert answer["confidence"] == pytest.approx(float(expected.score), abs=1e-5)
        assert answer["whole"] == pytest.approx(float(probe.whole), abs=1e-5)
        assert answer["ratio"] == pytest.approx(float(expected.score / probe.whole), abs=1e-4)
        assert answer["target"] == int(probe.targets)
        assert answer["wins"] == bool(expected.correct)
        assert (answer["says"] is None) == answer["wins"]


def test_the_same_region_is_not_asked_about_twice(client, explorer):
    here = {"image": "1", "grid": 7, "cells": pack((1, 2, 3), 7), "models": ["zoo/resnet"]}
    first = asked(client, "ask", **here)
    counters = explorer.seats["zoo/resnet"].quick.runner.counters
    before = counters.forwards
    assert asked(client, "ask", **here) == first
    assert counters.forwards == before


def test_a_class_can_be_chosen_by_name(client):
    net = suffice.load("zoo/resnet")
    answer = asked(client, "ask", image="0", grid=7, cells="", target=net.labels[3])["zoo/resnet"]
    assert answer["target"] == 3
    wrong = asked(client, "ask", image="0", grid=7, cells="", target="no such class")
    assert "no class 'no such class'" in wrong["zoo/deit"]["error"]["message"]


def test_classes_of_one_name_are_asked_about_by_their_index(oracle):
    net = oracle.classifier(56).replace(labels=["crane", "crane"])
    desk = Desk(net, Pictures(suffice.open_images(oracle.image(56))))
    top = desk.top("0")
    assert [net.class_index(one["asked"]) for one in top] == [one["target"] for one in top] == [1, 0]
    named = Desk(net.replace(labels=["crane", "heron"]), desk.pictures)
    assert [one["asked"] for one in named.top("0")] == ["heron", "crane"]


def test_what_wins_instead_is_said(client):
    says = asked(client, "ask", image="3", grid=7, cells="", baseline="black", target="1", models=["oracle"])["oracle"]
    assert not says["wins"]
    assert says["says"]["target"] == 0
    assert not says["enough"]
    assert says["says"]["confidence"] + says["confidence"] == pytest.approx(1, abs=1e-5)


def test_the_smallest_set_from_here_is_minimal(client, oracle):
    from_nothing = asked(client, "find", image="3", model="oracle", target="1", grid=7, cells="", baseline="black")
    assert from_nothing["cells"] == [30]
    from_all = asked(
        client, "find", image="3", model="oracle", target="1", grid=7, cells=pack(range(49), 7), baseline="black"
    )
    assert tuple(from_all["cells"]) in {(30,), (17, 24)}
    around = asked(
        client, "find", image="3", model="oracle", target="1", grid=7, cells=pack((17, 3), 7), baseline="black"
    )
    assert tuple(around["cells"]) in {(30,), (17, 24)}
    assert around["ratio"] >= 0.9


def test_what_is_not_needed_goes(client):
    here = {"image": "3", "model": "oracle", "target": "1", "grid": 7, "baseline": "black"}
    assert asked(client, "reduce", **here, cells=pack((1, 2, 17, 24, 48), 7))["cells"] == [17, 24]
    assert "not enough" in asked(client, "reduce", 400, **here, cells=pack((1, 2), 7))["message"]


def test_mses_come_one_after_the_other(client):
    here = {"image": "3", "model": "oracle", "target": "1", "grid": 7, "baseline": "black"}
    first = asked(client, "next", **here, cells="")
    second = asked(client, "next", **here, cells=pack(first["cells"], 7))
    again = asked(client, "next", **here, cells=pack(second["cells"], 7))
    assert [first["cells"], second["cells"], again["cells"]] == [[30], [17, 24], [30]]
    assert (first["number"], first["count"]) == (1, 2)


def test_evidence_has_a_graph_with_the_cells_of_its_nodes(client):
    found = asked(client, "evidence", image="3", model="oracle", target="1", grid=7, baseline="black")
    assert [mse["cells"] for mse in found["mses"]] == [[30], [17, 24]]
    assert [17, 24] in found["nodes"]
    assert found["svg"].startswith("<svg")
    assert "P17 ∧ P24: ratio" in found["svg"]


def test_maps_and_curves(client):
    import base64

    import numpy as np

    here = {"image": "0", "model": "zoo/resnet", "grid": 7, "method": "grad-cam"}
    found = asked(client, "map", **here)
    values = np.frombuffer(base64.b64decode(found["values"]), "<f4").reshape(found["height"], found["width"])
    own = suffice.attribute(suffice.load("zoo/resnet"), suffice.open_images("scenes:test[:1]"), "grad-cam")
    np.testing.assert_allclose(values, own.maps[0].numpy(), atol=1e-5)
    curves = asked(client, "curves", **here)
    assert curves["insertion"]["x"][0] == 0
    assert curves["insertion"]["x"][-1] == pytest.approx(1)
    scores = suffice.measure(
        suffice.load("zoo/resnet"), suffice.open_images("scenes:test[:1]"), own, ["insertion", "deletion"], steps=50
    )
    for name in ("insertion", "deletion"):
        assert curves[name]["area"] == pytest.approx(scores[name].mean, abs=1e-4)
    names = [one["name"] for one in asked(client, "methods", model="zoo/resnet")["methods"]]
    assert "grad-cam" in names
    assert "rollout" not in names
    assert "expected one of" in asked(client, "map", 400, **here | {"method": "rollout"})["message"]


def test_images_come_in_pages(client):
    page = asked(client, "images", offset=1, count=2)
    assert [one["key"] for one in page["images"]] == ["1", "2"]
    assert page["all"] == 4
    assert page["images"][0]["thumbnail"].startswith("data:image/")


def test_views_are_what_the_model_sees(client):
    seen = asked(client, "views", image="0", model="zoo/deit", baseline="black")
    assert seen["shown"].startswith("data:image/png;base64,")
    assert len(seen["top"]) == 5
    whole = suffice.load("zoo/deit").predict("scenes:test[:1]")
    assert seen["top"][0]["target"] == int(whole.targets[0])


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_the_bench_is_a_picture_to_keep(client, kind):
    rows = [{"model": "<b>", "label": "a & b", "ratio": 0.93, "confidence": 0.8}]
    card = asked(client, "card", image="0", model="zoo/resnet", grid=7, cells=pack((3,), 7), rows=rows, format=kind)
    assert card[kind].startswith("<svg" if kind == "svg" else "data:image/png")
    if kind == "svg":
        assert "&lt;b&gt;" in card["svg"]
        assert "<b>" not in card["svg"]


def test_answers_come_one_by_one_over_the_socket(client):
    with client.websocket_connect("/api/live") as socket:
        socket.send_json({"id": 1, "kind": "ask", "data": {"image": "0", "grid": 7, "cells": pack((3, 4), 7)}})
        got = [socket.receive_json() for _ in range(4)]
        assert {one["part"]["model"] for one in got[:3]} == {"zoo/resnet", "zoo/deit", "oracle"}
        assert set(got[3]["data"]) == {"zoo/resnet", "zoo/deit", "oracle"}
        socket.send_text("no JSON")
        assert "no JSON" in socket.receive_json()["error"]["message"]
        socket.send_json({"id": 2, "kind": "nonsense"})
        assert socket.receive_json() == {
            "id": 2,
            "error": {"kind": "Unknown", "message": "There is no question of the kind 'nonsense'."},
        }


def test_the_newest_question_wins_and_older_ones_are_dropped(client):
    with client.websocket_connect("/api/live") as socket:
        for number in range(30):
            cells = pack((number, number + 1), 7)
            socket.send_json({"id": number, "kind": "ask", "data": {"image": "2", "grid": 7, "cells": cells}})
        ended = {}
        while len(ended) < 30:
            got = socket.receive_json()
            if "part" not in got:
                ended[got["id"]] = got
        assert "data" in ended[29]
        assert sum("dropped" in one for one in ended.values()) > 0


def test_long_work_is_called_off_and_the_page_answers_meanwhile(client):
    here = {"image": "1", "model": "zoo/deit", "grid": 14}
    with client.websocket_connect("/api/live") as socket:
        socket.send_json({"id": "long", "kind": "evidence", "data": here})
        socket.send_json({"id": "short", "kind": "ask", "data": {"image": "1", "grid": 14, "cells": pack((5,), 14)}})
        ended = {}
        while "short" not in ended:
            got = socket.receive_json()
            ended |= {got["id"]: got} if "part" not in got else {}
        assert "long" not in ended
        socket.send_json({"id": 3, "kind": "cancel", "data": {"id": "long"}})
        while "long" not in ended:
            got = socket.receive_json()
            ended |= {got["id"]: got} if "part" not in got else {}
        assert ended["long"] == {"id": "long", "cancelled": True}


def test_calling_off_what_nobody_asked_for_is_nothing(client):
    with client.websocket_connect("/api/live") as socket:
        for number, data in enumerate(({}, {"id": [1]}, {"id": "other"})):
            socket.send_json({"id": number, "kind": "cancel", "data": data})
            assert socket.receive_json() == {"id": number, "data": {"cancelled": False}}
        socket.send_json({"id": "bare", "kind": "cancel"})
        assert socket.receive_json() == {"id": "bare", "data": {"cancelled": False}}


def test_no_more_than_a_few_searches_wait(client):
    here = {"image": "1", "model": "zoo/deit", "grid": 14}
    with client.websocket_connect("/api/live") as socket:
        for number in range(6):
            socket.send_json({"id": number, "kind": "evidence", "data": here})
        refused = []
        while len(refused) < 2:
            got = socket.receive_json()
            if "error" in got:
                refused.append(got["error"]["kind"])
        assert refused == ["Busy", "Busy"]


def test_models_come_with_checkpoints(tmp_path):
    from safetensors.torch import save_file

    weights = suffice.load("zoo/resnet", device="cpu").module.state_dict()
    save_file({name: value.contiguous() * 0.5 for name, value in weights.items()}, tmp_path / "halved.safetensors")
    files = [tmp_path / "halved.safetensors", "-"]
    opened = open_explorer(models=["zoo/resnet"] * 2, images=["scenes:test[:1]"], checkpoints=files, device="cpu")
    assert list(opened.seats) == ["zoo/resnet (halved)", "zoo/resnet"]
    halved, plain = (seat.net.predict("scenes:test[:1]").confidences for seat in opened.seats.values())
    assert float(halved[0]) != pytest.approx(float(plain[0]), abs=1e-3)
    opened.close()
    with pytest.raises(OptionError, match="2 models and 1 checkpoints"):
        open_explorer(models=["zoo/resnet"] * 2, checkpoints=files[:1])


def test_a_card_shows_what_the_model_saw(client, explorer):
    """Some baselines depend on the model, and some on chance."""
    here = Question("0", 7, (1, 2), "noise")
    said = asked(client, "card", image="0", model="zoo/resnet", baseline="noise", cells=pack(here.cells, 7))
    net = suffice.load("zoo/resnet")
    pixels = net.prepare(suffice.open_images("scenes:test[:1]"))
    hidden = suffice.perturb.make_baseline("noise", pixels, mean=net.mean)
    assert said["svg"] == bench_card(pixels[0], hidden[0], here, [], explorer.pictures["0"].name)
