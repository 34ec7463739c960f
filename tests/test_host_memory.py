"""Memory that is freed stays with the process, where it is told to."""

import platform
import subprocess
import sys

import pytest

from suffice.host_memory import keep_freed_memory

# Pages that the system had to clear while the same 80 MB are needed again and again.
SCRIPT = """
import resource, sys, torch
from suffice.host_memory import keep_freed_memory
kept = sys.argv[1] == "kept" and keep_freed_memory()
def work():
    torch.zeros(10 << 20).add_(1).mul(2)
work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    work()
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def cleared(how):
    done = subprocess.run([sys.executable, "-c", SCRIPT, how], capture_output=True, text=True, check=True)
    kept, pages = done.stdout.split()
    return kept == "True", int(pages)


def test_freed_memory_is_used_again():
    name, version = platform.libc_ver()
    if name != "glibc" or [int(part) for part in version.split(".")[:2]] < [2, 35]:
        pytest.skip("needs a recent GNU C library; older ones keep smaller pieces only")
    kept, pages = cleared("kept")
    assert kept
    _, usual = cleared("usual")
    assert pages < usual / 5


def test_elsewhere_nothing_is_done(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert keep_freed_memory() is False
