"""The memory against a dict."""

import random

import pytest
import torch

from suffice.perturb import memory as module
from suffice.perturb.memory import Memory, distinct


def ask(memory, questions, answer):
    """Answer questions through the memory as the probe does; returns answers and how many were not known."""
    images = torch.tensor([q[0] for q in questions])
    words = torch.tensor([q[1:] for q in questions])
    keys, number = distinct(images, words)
    known, values = memory.look_up(keys)
    unknown = (~known).nonzero().flatten()
    new = keys.take(unknown)
    values[unknown] = torch.tensor([answer(tuple(c)) for c in new.columns.tolist()]).view(-1, 1)
    memory.store(new, values[unknown])
    return values[number, 0].tolist(), len(unknown)


def value_of(question):
    return float(hash(question) % 1000)


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("weak_hash", [False, True])
def test_agrees_with_a_dict(words, weak_hash, monkeypatch):
    if weak_hash:  # many different keys with the same hash: slower, never wrong
        monkeypatch.setattr(module, "_hash", lambda columns: columns.sum(dim=1) % 7)
    chance = random.Random(0)
    memory, seen = Memory(), set()
    for _ in range(40):
        questions = [
            (chance.randrange(3), *(chance.randrange(-20, 20) for _ in range(words)))
            for _ in range(chance.randrange(1, 60))
        ]
        answers, asked = ask(memory, questions, value_of)
        assert answers == [value_of(q) for q in questions]
        if not weak_hash:
            assert asked == len(set(questions) - seen)
        seen |= set(questions)
    if not weak_hash:
        assert len(memory) == len(seen)


def test_few_runs_for_many_answers():
    memory = Memory()
    for start in range(0, 6400, 10):
        ask(memory, [(0, i) for i in range(start, start + 10)], value_of)
    assert len(memory) == 6400
    assert len(memory._runs) <= 10


def test_the_limit_holds_and_answers_stay_right():
    memory = Memory(limit=100)
    for start in range(0, 2000, 30):
        questions = [(1, i) for i in range(start, start + 30)]
        assert ask(memory, questions, value_of)[0] == [value_of(q) for q in questions]
        assert len(memory) <= 100


def test_forgetting_an_image_keeps_the_others():
    memory = Memory()
    questions = [(image, word) for image in range(4) for word in range(10)]
    ask(memory, questions, value_of)
    memory.forget(torch.tensor([1, 3]))
    assert len(memory) == 20
    _, asked = ask(memory, questions, value_of)
    assert asked == 20


def test_hash_spreads_neighboring_regions():
    words = (1 << torch.arange(49))[:, None] | (1 << torch.arange(49))[None, :]
    images = torch.arange(200).repeat_interleave(words.numel())
    columns = torch.stack([images, words.flatten().repeat(200)], dim=1)
    hashes = module._hash(columns.unique(dim=0))
    assert len(hashes.unique()) == len(hashes)
