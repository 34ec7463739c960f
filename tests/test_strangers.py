import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.strangers import DEEPEST, parse_json

LEAVES = st.none() | st.booleans() | st.integers() | st.text('[]{}"\\ab')
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text('[{"\\'), inner), max_leaves=40)


@given(JSON)
def test_what_is_not_deep_is_read_as_by_json(value):
    assert parse_json(json.dumps(value)) == value


@pytest.mark.parametrize("wrap", ["[{}]", '{{"a": {}}}', '[1, "]]]]", {}]', '["\\"]]]", {}]'])
def test_depth_is_that_of_lists_and_objects(wrap):
    head, tail = wrap.replace("{{", "{").replace("}}", "}").rsplit("{}", 1)

    def nested(times):
        return head * times + "0" + tail * times

    assert json.dumps(parse_json(nested(DEEPEST))).count("0") == 1
    with pytest.raises(ValueError, match="nested deeper than 100"):
        parse_json(nested(DEEPEST + 1))


def test_many_boxes_in_a_row_are_not_deep():
    boxes = [[0, 0, 1, 1]] * 1000
    assert parse_json(json.dumps({"boxes": boxes})) == {"boxes": boxes}
    assert parse_json(json.dumps("[" * 1000)) == "[" * 1000


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' * 100_000, "[" * 200 + '"', '"' + "[" * 200])
def test_broken_and_deep(text):
    with pytest.raises(ValueError, match=r"nested deeper|Unterminated"):
        parse_json(text)
