"""Examples of the docs with less to do than a reader would want, for tests that see that they run."""

import re


def of_fewer_scenes(script: str) -> str:
    """That an example runs can be seen on two scenes as on six; two are the fewest that have a mean and its error."""
    return re.sub(r"scenes:test\[:(\d+)\]", lambda found: f"scenes:test[:{min(2, int(found[1]))}]", script)
