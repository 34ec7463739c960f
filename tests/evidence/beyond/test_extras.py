"""What the settings ask for beyond the search is added; nothing else changes."""

import dataclasses

import pytest

from suffice.evidence import Settings
from suffice.evidence.beyond.extras import add_extras, wants_extras
from suffice.testing import AnyOf
from tests.evidence.blocks import block_of

WISHES = {"second_baseline": "gray", "stability": True, "contrastive": True, "necessary": True, "refine": (6,)}


def with_extras(**choices):
    block = block_of(AnyOf([(1, 2), (2, 3), (5,)], grid=3), [(), (5,)], size=12, **choices)
    return block, add_extras(block.runner, block.pixels, block.ids, list(block.evidence))


def test_all_at_once():
    _, (whole, part) = with_extras(**WISHES)
    assert (whole.necessary, part.necessary) == (((2, 5),), ((2,),))
    assert [m.cells for m in whole.contrastive] == [(2, 5)]
    assert {m.cells for m in part.contrastive} == {(1, 2), (2, 3)}
    assert [len(m) for m in whole.refined[6]] == [3, 6, 6]  # a cell is seen when more than half of it is
    assert all(m.second_ratio == pytest.approx(1.0) for m in (*whole.mses, *part.mses))
    assert all(set(m.under) == {"jpeg", "shift", "baseline", "precision"} for m in (*whole.mses, *part.mses))
    assert whole.stability is not None


@pytest.mark.parametrize(("wish", "value"), WISHES.items())
def test_each_alone_changes_its_own_field(wish, value):
    assert wants_extras(Settings(**{wish: value}))
    block, after = with_extras(**{wish: value})
    own = {"second_baseline": "mses", "stability": "mses", "refine": "refined"}.get(wish, wish)
    for e, more in zip(block.evidence, after, strict=True):
        different = [f.name for f in dataclasses.fields(e) if getattr(e, f.name) is not getattr(more, f.name)]
        assert different == [own]


def test_nothing_wished_nothing_asked():
    block, after = with_extras()
    assert not wants_extras(Settings())
    assert block.runner.counters.forwards == 0
    assert all(a is b for a, b in zip(after, block.evidence, strict=True))
    assert add_extras(block.runner, block.pixels, [], []) == []


def test_images_of_which_nothing_can_be_said():
    block = block_of(AnyOf([(1, 2)], grid=3), size=12, **WISHES)
    mute = dataclasses.replace(block.evidence[0], mses=(), stopped="no confidence")
    after = add_extras(block.runner, block.pixels, block.ids, [mute])[0]
    assert (after.contrastive, after.necessary, after.refined, after.stability) == ((), (), {6: ()}, None)
