"""The gallery is chosen by its rules."""

import numpy as np

from suffice.report.page.choosing import Seen, choose

MODELS = ["a", "b", "c"]


def seen(images=8, cells=9):
    """Nothing remarkable: all say the same, with one explanation of two cells."""
    shape = (len(MODELS), images)
    covered = np.zeros((*shape, cells), dtype=bool)
    covered[:, :, :2] = True
    return Seen(np.zeros(shape, dtype=int), np.ones(shape), np.full(shape, 2.0), np.zeros(shape, dtype=bool), covered)


def by_rule(found):
    return {one.rule: one for one in found}


def test_each_rule_finds_what_it_is_about():
    given = seen()
    given.answers[:, 3] = [1, 2, 3]
    given.covered[0, 5], given.covered[1, 5], given.covered[2, 5] = False, False, False
    given.covered[0, 5, 0] = given.covered[1, 5, 4] = given.covered[2, 5, 8] = True
    given.mses[1, 6] = 17
    given.largest[2, 1] = 7
    given.mses[0, 2], given.nothing[0, 2], given.mses[2, 2] = 0, True, 0
    found = by_rule(choose(given, MODELS, each=1))
    assert {rule: one.index for rule, one in found.items()} == {
        "Models disagree the most about the class": 3,
        "Evidence of the models overlaps the least": 5,
        "Most ways to decide": 6,
        "Largest minimal sufficient explanation": 1,
        "Sure though nothing is visible, or no evidence": 2,
    }
    assert found["Models disagree the most about the class"].why == "3 models give 3 different answers."
    assert found["Most ways to decide"].why.startswith("b has 17 ")
    assert found["Largest minimal sufficient explanation"].why.startswith("c has one of 7 cells")
    assert found["Evidence of the models overlaps the least"].why.endswith("both rely on 0 %, on average.")
    assert (
        found["Sure though nothing is visible, or no evidence"].why
        == "a: the hidden image alone is enough. c: no evidence."
    )


def test_one_is_said_as_one():
    given = seen(images=2)
    given.largest[:] = 1
    given.mses[:] = 1
    found = by_rule(choose(given, MODELS, each=1))
    assert found["Most ways to decide"].why == "a has 1 minimal sufficient explanation (MSE) of it."
    assert found["Largest minimal sufficient explanation"].why == "a has one of 1 cell, which cannot go."


def test_no_image_is_chosen_twice():
    given = seen()
    given.mses[0, 4], given.largest[0, 4] = 9, 8
    given.answers[:, 4] = [1, 2, 3]
    found = choose(given, MODELS, each=2)
    assert len({one.index for one in found}) == len(found)


def test_where_models_disagree_overlap_is_no_wonder():
    given = seen()
    given.answers[:, 3] = [1, 2, 3]
    given.covered[0, 3] = ~given.covered[0, 3]
    rule = "Evidence of the models overlaps the least"
    assert 3 not in [one.index for one in choose(given, MODELS, each=8) if one.rule == rule]


def test_rules_that_nothing_fits_choose_nothing():
    shape = (3, 4)
    empty = Seen(
        np.zeros(shape, dtype=int), np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape, dtype=bool),
        np.zeros((*shape, 1), dtype=bool),
    )  # fmt: skip
    assert choose(empty, MODELS) == []


def test_more_answers_come_first_and_ties_go_to_fewer_of_the_commonest():
    given = seen()
    given.answers[:, 2], given.answers[:, 5], given.answers[:, 7] = [0, 0, 1], [0, 1, 2], [0, -1, 1]
    rule = "Models disagree the most about the class"
    order = [one.index for one in choose(given, MODELS, each=3) if one.rule == rule]
    assert order == [5, 7, 2]
