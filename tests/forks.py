"""Processes that start at once: what most of them import was imported before they are forked.

There is one server of forks in a process, and what it has imported is said before its first fork: hence in one place.
"""

import multiprocessing

_KINDS = [f"suffice.study.kinds.{kind}" for kind in ("predictions", "evidence", "attribution", "metrics")]
_LATER = ["fsspec.implementations.local", "pandas", "pyarrow.dataset", "pyarrow.parquet", "torch._dynamo"]

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    ["tests.study.processes", "tests.study.small", "suffice.cli", "timm", "torchvision", *_KINDS, *_LATER]
)
