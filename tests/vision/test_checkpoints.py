"""Checkpoints: all the usual wrappings are understood, everything else is a named error, and no code ever runs."""

import argparse
import os
import pickle
import zipfile
from collections import OrderedDict

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from suffice.errors import CheckpointError
from suffice.vision.checkpoints import load_checkpoint, read_state_dict


def model():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.LazyLinear(2))


@pytest.fixture
def trained():
    torch.manual_seed(5)
    made = model()
    made(torch.rand(1, 3, 8, 8))
    return made


@pytest.fixture
def fresh():
    torch.manual_seed(6)
    made = model()
    made(torch.rand(1, 3, 8, 8))
    return made


def same(a, b):
    return all(torch.equal(a.state_dict()[k], v) for k, v in b.state_dict().items() if "tracked" not in k)


def prefixed(state, prefix):
    return {prefix + k: v for k, v in state.items()}


WRAPPINGS = {
    "plain": lambda s: s,
    "ordered": lambda s: OrderedDict(s),
    "state_dict": lambda s: {"state_dict": s, "epoch": 3},
    "model": lambda s: {"model": s, "optimizer": {"lr": 0.1}},
    "model_state_dict": lambda s: {"model_state_dict": s},
    "nested": lambda s: {"model": {"state_dict": s}},
    "parallel": lambda s: {"state_dict": prefixed(s, "module.")},
    "compiled": lambda s: prefixed(s, "_orig_mod."),
    "lightning": lambda s: {"state_dict": prefixed(s, "model.")},
    "compiled parallel": lambda s: prefixed(s, "module._orig_mod."),
    "arguments": lambda s: {"state_dict": s, "args": argparse.Namespace(lr=0.1, model="resnet")},
    "half": lambda s: {k: v.half() if v.is_floating_point() else v for k, v in s.items()},
    "without counters": lambda s: {k: v for k, v in s.items() if "num_batches_tracked" not in k},
}


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_usual_wrappings(wrapping, trained, fresh, tmp_path):
    if wrapping == "half":
        trained = trained.half().float()
    torch.save(WRAPPINGS[wrapping](trained.state_dict()), tmp_path / "weights.pth")
    load_checkpoint(fresh, tmp_path / "weights.pth")
    assert same(fresh, trained)


@pytest.mark.parametrize("prefix", ["", "module.", "model."])
def test_safetensors(prefix, trained, fresh, tmp_path):
    save_file(prefixed(trained.state_dict(), prefix), tmp_path / "weights.safetensors")
    load_checkpoint(fresh, tmp_path / "weights.safetensors")
    assert same(fresh, trained)


class Bomb:
    def __reduce__(self):
        return (os.system, ("touch exploded",))


def write_zip(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def broken_files(folder, state):
    """Kinds of broken checkpoints: name → (file, what the error must say)."""
    kinds = {}

    def kind(name, file, said, write):
        path = folder / file
        write(path)
        kinds[name] = (path, said)

    kind("empty", "empty.pth", "not readable", lambda p: p.write_bytes(b""))
    kind(
        "garbage",
        "garbage.pth",
        "cannot be read as plain weights|not readable",
        lambda p: p.write_bytes(b"\x00\xffhello" * 99),
    )
    kind(
        "text",
        "text.pth",
        "cannot be read as plain weights|not readable",
        lambda p: p.write_text("weights go here"),
    )
    kind("folder", "folder.pth", "is a folder", lambda p: p.mkdir())
    kind("missing", "missing.pth", "does not exist", lambda p: None)
    kind("code", "code.pth", "can run code", lambda p: torch.save({"state_dict": state, "x": Bomb()}, p))
    kind("code in plain pickle", "bomb.pkl", "can run code", lambda p: p.write_bytes(pickle.dumps(Bomb())))
    kind("whole model", "model.pth", "can run code", lambda p: torch.save(nn.Linear(2, 2), p))
    kind("zip without weights", "zip.pth", "not readable", lambda p: write_zip(p, {"a.txt": "hello"}))
    kind("number", "number.pth", "No weights found", lambda p: torch.save(3, p))
    kind("tensor", "tensor.pth", "No weights found", lambda p: torch.save(torch.rand(3), p))
    kind("list", "list.pth", "No weights found", lambda p: torch.save([torch.rand(3)], p))
    kind("no tensors", "none.pth", "No weights found.*epoch", lambda p: torch.save({"epoch": 3}, p))
    kind("no keys", "nokeys.pth", "No weights found", lambda p: torch.save({}, p))
    kind(
        "bad safetensors",
        "bad.safetensors",
        "not a readable safetensors",
        lambda p: p.write_bytes(b"\x10" * 64),
    )
    kind("empty safetensors", "empty.safetensors", "not a readable safetensors", lambda p: p.write_bytes(b""))
    kind(
        "huge header",
        "huge.safetensors",
        "not a readable safetensors",
        lambda p: p.write_bytes(b"\xff" * 8 + b"{}"),
    )
    kind(
        "pickle as safetensors",
        "pickle.safetensors",
        "not a readable safetensors",
        lambda p: torch.save(state, p),
    )
    kind("no safetensors", "none.safetensors", "No weights found", lambda p: save_file({}, p))

    def cut(p):
        torch.save(state, p)
        p.write_bytes(p.read_bytes()[:400])

    def cut_safetensors(p):
        save_file(state, p)
        p.write_bytes(p.read_bytes()[:-20])

    kind("truncated", "cut.pth", "not readable|cannot be read", cut)
    kind("truncated safetensors", "cut.safetensors", "not a readable safetensors", cut_safetensors)
    kind(
        "missing key",
        "less.pth",
        r"Missing in the checkpoint: 0\.weight",
        lambda p: torch.save(without(state, "0.weight"), p),
    )
    kind(
        "extra key",
        "more.pth",
        "Unexpected in the checkpoint: extra",
        lambda p: torch.save({**state, "extra": state["0.bias"]}, p),
    )
    kind(
        "other model",
        "other.pth",
        "Missing.*\n.*Unexpected",
        lambda p: torch.save(nn.LSTM(2, 2).state_dict(), p),
    )
    kind(
        "other classes",
        "classes.pth",
        "num_classes=",
        lambda p: torch.save({**state, "3.bias": torch.rand(5)}, p),
    )
    return kinds


def without(state, key):
    return {k: v for k, v in state.items() if k != key}


KINDS = [
    "empty",
    "garbage",
    "text",
    "folder",
    "missing",
    "code",
    "code in plain pickle",
    "whole model",
    "zip without weights",
    "number",
    "tensor",
    "list",
    "no tensors",
    "no keys",
    "bad safetensors",
    "empty safetensors",
    "huge header",
    "pickle as safetensors",
    "no safetensors",
    "truncated",
    "truncated safetensors",
    "missing key",
    "extra key",
    "other model",
    "other classes",
]


@pytest.mark.parametrize("kind", KINDS)
def test_broken_checkpoints(kind, trained, fresh, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = {k: v.clone() for k, v in fresh.state_dict().items()}
    path, said = broken_files(tmp_path, trained.state_dict())[kind]
    with pytest.raises(CheckpointError, match=f"(?s){said}"):
        load_checkpoint(fresh, path)
    assert not (tmp_path / "exploded").exists()
    assert all(torch.equal(v, before[k]) for k, v in fresh.state_dict().items())


def test_reading_alone(trained, tmp_path):
    torch.save({"state_dict": trained.state_dict()}, tmp_path / "weights.pth")
    assert set(read_state_dict(tmp_path / "weights.pth")) == set(trained.state_dict())
