"""The literal search, one question at a time; tests of the search hold the fast one against it."""

import torch

from suffice.bench.one_at_a_time import OneAtATime, search_one_at_a_time
from suffice.evidence import Settings
from suffice.testing import AnyOf

ORACLE = AnyOf([(0, 1), (8,)], grid=3)
SETTINGS = Settings(grid=3, baseline="black")


def test_it_finds_what_the_oracle_decides_by():
    ratio = OneAtATime(ORACLE.classifier(12), ORACLE.image(12)[0], SETTINGS)
    assert set(search_one_at_a_time(ratio, SETTINGS)) == {frozenset({8}), frozenset({0, 1})}


def test_every_question_is_a_forward_of_its_own():
    ratio = OneAtATime(ORACLE.classifier(12), ORACLE.image(12)[0], SETTINGS)
    asked = ratio.forwards
    for _ in range(2):
        torch.testing.assert_close(ratio(frozenset({8})), 1.0, atol=1e-5, rtol=0)
    assert ratio.forwards == asked + 2
