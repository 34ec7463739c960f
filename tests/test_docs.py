"""What the documentation shows runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
# Pages whose examples need published weights or the reader's own files.
READERS_OWN = {"index.md", "start.md", "vision.md"}
PAGES = [p for p in sorted(DOCS.glob("*.md")) if p.name not in READERS_OWN and "```python" in p.read_text("utf-8")]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_examples_run(page, tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), flags=re.M | re.S)
    # In a process of its own: some register things.
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
