"""Where keys stand in TOML files."""

import pytest

from suffice.study.lines import line_of

TEXT = '''\
name = "a"            # line 1
images = { source = "x", take = 3 }
models = [
    "zoo/resnet",
]

[run]
precision = "fp16"
about = """
[measure.false]
kind = "text, not a key"
"""
[measure.maps]
kind = "attribution"
"method" = "rise"
a.b = 1
[[more]]
x = 1
[[more]]
x = 2
[more.options]
y = 3
[lists]
short = ["a", "b"]
long = [  # of three
    "a, [b]", { x = [1, 2], y = "]" },

    # "no entry"
    { x = 3 },
]
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("name",), 1),
        (("images", "take"), 2),
        (("models", 0), 4),
        (("run",), 7),
        (("run", "precision"), 8),
        (("measure", "maps"), 13),
        (("measure", "maps", "kind"), 14),
        (("measure", "maps", "method"), 15),
        (("measure", "maps", "a", "b"), 16),
        (("measure", "false"), None),
        (("measure", "false", "kind"), None),
        (("more", 0, "x"), 18),
        (("more", 1), 19),
        (("more", 1, "x"), 20),
        (("more", 1, "options", "y"), 22),
        (("lists", "short", 1), 24),
        (("lists", "long", 0), 26),
        (("lists", "long", 1, "y"), 26),
        (("lists", "long", 2), 29),
        (("lists", "long", 3), 25),
        (("lists", "short", 0), 24),
        (("nothing",), None),
        ((), None),
    ],
)
def test_a_key_is_found_where_it_stands(path, line):
    assert line_of(TEXT, path) == line
