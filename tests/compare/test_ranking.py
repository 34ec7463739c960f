"""Rankings, and letters for what does not differ."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.compare.ranking import letters_of, rank_models

NAMES = list("vwxyz")


@given(st.sets(st.sampled_from([*combinations(NAMES, 2)])))
def test_two_share_a_letter_exactly_where_they_do_not_differ(different):
    letters = letters_of(NAMES, different)
    for pair in combinations(NAMES, 2):
        assert bool(set(letters[pair[0]]) & set(letters[pair[1]])) == (pair not in different)


def test_models_are_ranked_by_their_means():
    random = np.random.default_rng(0)
    base = random.normal(size=60)
    values = {"low": base - 2, "high": base + 2 + random.normal(0, 0.1, 60), "also": base + 2}
    ranked = rank_models(values)
    assert [one.model for one in ranked][-1] == "low"
    assert ranked[-1].mean == pytest.approx(base.mean() - 2)
    assert [one.letters for one in ranked] == ["a", "a", "b"]
    assert rank_models(values, higher_is_better=False)[0].model == "low"
