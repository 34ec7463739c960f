"""One check for all options."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from suffice.errors import OptionError
from suffice.options import Count, Range, Share, allows, check_fields, check_options, in_words


@pytest.mark.parametrize(
    ("hint", "good", "bad"),
    [
        (Literal["a", 2], ["a", 2], ["b", 2.0, True, None, ["a"]]),
        (Count, [1, 7, np.int64(3)], [0, -1, 1.5, True, "1", None]),
        (Share, [0, 1, 0.5, np.float32(0.5)], [-0.1, 1.1, float("nan"), "x", True]),
        (Annotated[float, Range(0, above=True)], [1e-9, 3], [0, float("inf")]),
        (Annotated[float, Range(0, 1, below=True)], [0, 0.99], [1]),
        (int | None, [3, None], ["3", 3.5]),
        (bool, [True], [1, "yes"]),
        (float | Sequence[float], [1, (1, 2.5), [3]], ["12", [1, "x"], {}]),
        (Any, [object(), None], []),
        (tuple[float, ...], [(), (1, 2), [0.5]], [("x",)]),
        (tuple[Count, Count], [(1, 2), [3, 4]], [(1,), (1, 2, 3), (0, 1), 5]),
        (str, ["x"], [3]),
    ],
)
def test_values_are_held_against_the_annotation(hint, good, bad):
    for value in good:
        assert allows(hint, value), value
    for value in bad:
        assert not allows(hint, value), value


def test_words_come_from_the_annotation_too():
    assert in_words(Literal["a"] | Count | None) == "'a', a whole number from 1 on or None"
    assert in_words(Share) == "a number from 0 to 1"
    assert in_words(Annotated[float, Range(0, above=True)]) == "a number above 0"
    assert in_words(bool) == "True or False"
    assert in_words(float | Sequence[float]) == "a number or a list, each of them a number"
    assert in_words(tuple[int, int]) == "a list of 2, each of them a whole number"


def test_fields_of_a_dataclass_are_checked():
    @dataclass(frozen=True)
    class Choices:
        steps: Count = 5
        rule: Literal["left", "right"] = "left"

        def __post_init__(self):
            check_fields(self)

    Choices(steps=3, rule="right")
    with pytest.raises(OptionError, match="steps=0; it can be a whole number from 1 on"):
        Choices(steps=0)
    with pytest.raises(OptionError, match="rule='up'; it can be 'left' or 'right'"):
        Choices(rule="up")


def test_what_there_is_not_is_named_with_what_there_is():
    def method(images, *, steps: Count = 5, side: int = 7): ...

    with pytest.raises(OptionError, match="igos has no option 'stepz'; its options are steps, side"):
        check_options({"stepz": 3}, method, "igos")
