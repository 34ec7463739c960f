"""A search that ended early goes on where it ended; one that was another is refused."""

import os
import signal
import subprocess
import sys
import time

import pyarrow.parquet as pq
import pytest

from suffice.evidence import EvidenceSet
from tests.cli.command import run

SEARCH = (
    "evidence",
    "scenes:test[:4]",
    "--model",
    "zoo/convnext-3-bn",
    "--device",
    "cpu",
    "--grid",
    "3",
    "--no-figures",
)
# The command itself, but the search never comes to its third image, and what is finished is written at once.
HANGING = """
import itertools, signal, sys, time
import suffice.evidence.files.run, suffice.evidence.files.writer
from suffice.cli.app import main

class Hanging(suffice.evidence.files.run.EvidenceStream):
    def __iter__(self):
        yield from itertools.islice(super().__iter__(), 2)
        time.sleep(600)

signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells switch off for what runs in the background
suffice.evidence.files.writer.SECONDS = 0.0
suffice.evidence.files.run.EvidenceStream = Hanging
main()
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "out"
    run(*SEARCH, "--out", out)
    return EvidenceSet.load(out)


def written(out):
    """Number of images in parts."""
    return sum(pq.read_metadata(part).num_rows for part in (out / "evidence.parts").glob("*.parquet"))


def broken_off(out, how):
    """Start the command in a process of its own, and end it after two images."""
    work = subprocess.Popen(
        [sys.executable, "-c", HANGING, *SEARCH, "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        while written(out) < 2:
            assert work.poll() is None, work.communicate()
            time.sleep(0.05)
        os.kill(work.pid, how)
        work.communicate(timeout=60)
    finally:
        work.kill()
    return work.returncode


@pytest.mark.parametrize(("how", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)])
def test_what_is_finished_survives_and_the_rest_follows(how, code, whole, tmp_path):
    out = tmp_path / "out"
    assert broken_off(out, how) == code
    assert [entry.name for entry in out.iterdir()] == [
        "evidence.parts" if how == signal.SIGKILL else "evidence.parquet"
    ]
    kept = EvidenceSet.load(out)
    assert len(kept) == 2
    assert kept.about["weights"] == whole.about["weights"]

    done = run(*SEARCH, "--out", out)
    assert "2 of 4 were there already." in done.stderr
    again = EvidenceSet.load(out)
    assert [e.name for e in again] == [e.name for e in whole]
    # Ratios may differ in their last bits, as another batch sums in another order.
    assert [[m.cells for m in e.mses] for e in again] == [[m.cells for m in e.mses] for e in whole]
    assert [entry.name for entry in out.iterdir()] == ["evidence.parquet"]
    assert done.stdout.count("\tMSE\t") == 4  # those that were there are told, too
    assert "quantity" in done.stdout


def test_the_same_again_searches_nothing_and_another_search_is_refused(tmp_path):
    out = tmp_path / "out"
    few = (*SEARCH[:1], "scenes:test[:2]", *SEARCH[2:], "--out", out)
    first = run(*few, "--json")
    again = run(*few, "--json", "--figures")
    assert "2 of 2 were there already." in again.stderr
    assert again.stdout.partition('"images"')[2] == first.stdout.partition('"images"')[2]
    assert len(list((out / "figures").glob("*/graph.svg"))) == 2
    refused = run(*few, "--threshold", "0.8", code=2).stderr
    assert "threshold is 0.8, was 0.9" in refused
    assert "overwrite" in refused
    assert "weights is" in run(*few, "--random-weights", code=2).stderr
    assert "precision is bf16, was fp32" in run(*few, "--precision", "bf16", code=2).stderr
    assert "target is 1, was predicted" in run(*few, "--target", "1", code=2).stderr
    assert "other image" in run("evidence", "scenes:test[:1]", *few[2:], code=2).stderr
    run(*few, "--threshold", "0.8", "--overwrite")
    assert EvidenceSet.load(out)[0].settings.threshold == pytest.approx(0.8)
