"""JSON that somebody else wrote: a line of a manifest, a message to the page's server."""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import Any

#: Nobody who means well nests deeper. The parser itself gives up near Python's limit of calls, and whatever the garbage
#: collector happens to clear up down there then fails, too.
DEEPEST = 100

_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}


def parse_json(text: str, **options: Any) -> Any:
    """What a JSON text says, if it is not nested absurdly deep.

    Args:
        text: The JSON.
        **options: As `json.loads` takes them.

    Raises:
        ValueError: The text is no JSON, or nested deeper than 100 lists and objects.

    Example:
        >>> parse_json('{"boxes": [[0, 0, 1, 1]]}')
        {'boxes': [[0, 0, 1, 1]]}
        >>> parse_json("[" * 101)
        Traceback (most recent call last):
        ...
        ValueError: nested deeper than 100 lists and objects
    """
    if text.count("[") + text.count("{") > DEEPEST and _depth(text) > DEEPEST:
        raise ValueError(f"nested deeper than {DEEPEST} lists and objects")
    return json.loads(text, **options)


def _depth(text: str) -> int:
    steps = (_STEPS.get(token[0], 0) for token in _TOKENS.findall(text))  # strings count nothing, whatever is in them
    return max(accumulate(steps), default=0)
