import copy
import hashlib

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from suffice.vision import identity
from suffice.vision.identity import content_hash, image_seed, weights_hash

parts = st.lists(st.binary(max_size=6), max_size=4)


def test_hash_is_blake2b_of_length_prefixed_parts():
    expected = hashlib.blake2b(digest_size=16)
    for part in (b"ab", "ü".encode()):
        expected.update(len(part).to_bytes(8, "little") + part)
    assert content_hash(b"ab", "ü") == expected.hexdigest()
    assert len(content_hash()) == 32


@given(parts, parts)
def test_hash_differs_exactly_when_the_parts_do(first, second):
    assert (content_hash(*first) == content_hash(*second)) == (first == second)


def test_hash_takes_names_that_are_not_valid_unicode():
    assert content_hash("a\udcff") != content_hash("a")


@given(st.integers(), st.text())
@settings(max_examples=30)
def test_seed_is_63_bits_and_repeatable(seed, image_id):
    value = image_seed(seed, image_id)
    assert 0 <= value < 2**63
    assert value == image_seed(seed, image_id)


def test_seeds_spread_over_the_range_and_depend_on_both():
    values = {image_seed(seed, f"image {i}") for seed in range(20) for i in range(50)}
    assert len(values) == 1000
    assert max(values) > 0.99 * 2**63
    assert min(values) < 0.01 * 2**63


def test_seed_never_changes_between_versions():
    # Stored results depend on these numbers.
    assert image_seed(0, "cat") == int(content_hash("0", "cat")[:16], 16) >> 1
    assert content_hash("0", "cat") == "ca06bb2cc561ce3f097364a231df42cc"


def test_weights_are_the_same_only_if_names_types_shapes_and_numbers_are():
    def layer(dtype=torch.float32, shape=(2, 2), value=0.0, name="a"):
        module = nn.Module()
        module.register_buffer(name, torch.full(shape, value, dtype=dtype))
        return module

    first = weights_hash(layer())
    assert weights_hash(layer()) == first
    others = [
        *(layer(dtype) for dtype in (torch.bfloat16, torch.int32)),
        *(layer(shape=shape) for shape in ((4,), ())),
        layer(value=-0.0),
        layer(name="b"),
    ]
    assert len({first, *map(weights_hash, others)}) == 7


def test_weights_do_not_depend_on_how_they_lie_in_memory():
    module = nn.Conv2d(3, 4, 3)
    before = weights_hash(module)
    assert weights_hash(module.to(memory_format=torch.channels_last)) == before
    with torch.no_grad():
        module.weight[0, 0, 0, 0] += 1
    assert weights_hash(module) != before


def test_changed_weights_are_seen_however_they_were_changed():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)).to(memory_format=torch.channels_last)
    seen = [weights_hash(module)]
    module[0].weight.data.mul_(0.5)  # which no version counts
    seen.append(weights_hash(module))
    module[1].running_mean.data = torch.ones(8)
    seen.append(weights_hash(module))
    module.load_state_dict(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)).state_dict())
    seen.append(weights_hash(module))
    assert len(set(seen)) == 4
    assert weights_hash(copy.deepcopy(module)) == seen[-1]


def test_weights_are_hashed_once_as_long_as_they_stay(monkeypatch):
    module = nn.Linear(4, 2)
    first = weights_hash(module)
    monkeypatch.setattr(identity, "_tensor_hash", lambda *_: pytest.fail("hashed again"))
    assert weights_hash(module) == first
