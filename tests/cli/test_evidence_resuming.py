"""A search that ended early goes on where it ended; one that was another is refused."""

import os
import signal
import sys

import pyarrow.parquet as pq
import pytest

from suffice.cli.app import main
from suffice.study import Study, plan
from suffice.study.kinds import evidence as kind
from tests.cli.command import run
from tests.forks import CONTEXT
from tests.study.processes import ended

SEARCH = ("evidence", "scenes:test[:4]", "--model", "zoo/convnext-3-bn", "--device", "cpu", "--grid", "2")


def search_and_end(out, how, said):
    """The command itself, with blocks of two images, of which the second is begun only."""
    search = kind.find_evidence

    def deadly(net, images, *arguments, **options):
        if images[0].name == "scenes:test[2]":
            os.kill(os.getpid(), how)
        return search(net, images, *arguments, **options)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells switch off for what runs in the background
    plan.BLOCKS["cpu"] = 2
    kind.find_evidence = deadly
    sys.stdout = sys.stderr = said.open("w")
    sys.argv = ["suffice", *SEARCH, "--out", str(out)]
    main()


def cells(out):
    return [[mse.cells for mse in one.mses] for one in Study.open(out).evidence()]


def broken_off(out, how):
    """Start the command in a process of its own, which ends after two images; how, and what it said."""
    said = out.with_suffix(".txt")
    process = CONTEXT.Process(target=search_and_end, args=(out, how, said))
    process.start()
    return ended(process), said.read_text()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What is found where nothing interrupts."""
    out = tmp_path_factory.mktemp("whole") / "out"
    run(*SEARCH, "--out", out, "--no-figures")
    return cells(out)


@pytest.mark.parametrize(("how", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)])
def test_what_is_finished_survives_and_the_rest_follows(how, code, tmp_path, whole):
    out = tmp_path / "out"
    ended, said = broken_off(out, how)
    assert ended == code
    assert ("Stopped; 2 of 4 images are finished." in said) == (how == signal.SIGINT)
    assert len(Study.open(out).evidence()) == 2
    first = out / "tables/measurement=evidence/model=zoo%2Fconvnext-3-bn/00000.parquet"
    before = first.read_bytes()
    assert "evidence\tzoo/convnext-3-bn\t1/2" in run("study", "status", out).stdout

    done = run(*SEARCH, "--out", out)
    assert "2 of 4 images were already done." in done.stderr
    assert first.read_bytes() == before
    assert cells(out) == whole
    assert done.stdout.count("\tMSE\t") == 4  # those that were there are told, too
    assert "quantity" in done.stdout
    assert len(list((out / "figures").glob("*/graph.svg"))) == 4


def test_the_same_again_searches_nothing_and_another_search_is_refused(tmp_path):
    out = tmp_path / "out"
    few = (*SEARCH[:1], "scenes:test[:2]", *SEARCH[2:], "--no-figures", "--out", out)
    first = run(*few, "--json")
    log = (out / "log.jsonl").read_bytes()
    again = run(*few, "--json", "--figures")
    assert "2 of 2 images were already done." in again.stderr
    assert again.stdout == first.stdout
    assert (out / "log.jsonl").read_bytes() == log
    assert len(list((out / "figures").glob("*/graph.svg"))) == 2
    for other, said in {
        ("--threshold", "0.8"): "measure.evidence.threshold is 0.8, was 0.9",
        ("--random-weights",): "the weights of zoo/convnext-3-bn are others",
        ("--precision", "bf16"): "run.precision is bf16, was fp32",
        ("--target", "1"): "measure.evidence.target is 1, was None",
        ("--size", "112"): "zoo/convnext-3-bn: size is 112, was None",
        ("--max-pixels", "999999"): "images.max_pixels is 999999, was None",
        ("--no-regions",): "measure.evidence.regions is False, was True",
    }.items():
        refused = run(*few, *other, code=2).stderr
        assert said in refused
        assert "--overwrite" in refused
        assert len(refused.strip().splitlines()) == 1
    assert "0 added, 1 gone" in run("evidence", "scenes:test[:1]", *few[2:], code=2).stderr
    assert (out / "log.jsonl").read_bytes() == log
    (out / "thesis.txt").write_text("mine")
    assert "has something else than a study: thesis.txt" in run(*few, "--overwrite", code=2).stderr
    (out / "thesis.txt").unlink()
    run(*few, "--threshold", "0.8", "--overwrite")
    assert Study.open(out).evidence()[0].settings.threshold == pytest.approx(0.8)
    assert not (out / "figures").exists() or not list((out / "figures").glob("*/*"))


def test_the_folder_is_a_study(tmp_path):
    """Another model joins it; it is exported; and it goes on as a study, from anywhere."""
    out = tmp_path / "out"
    few = ("evidence", "scenes:test[:2]", "--device", "cpu", "--grid", "2", "--no-figures", "--out", out)
    run(*few, "--model", "zoo/convnext-3-bn")
    told = run(*few, "--model", "zoo/resnet", "--json")
    assert '"zoo/resnet"' in told.stdout
    assert "were already done" not in told.stderr
    assert "2/2" in run("study", "status", out).stdout
    run("study", "export", out)
    exported = pq.read_table(out / "export/evidence.parquet")
    assert sorted(exported["model"].to_pylist()) == ["zoo/convnext-3-bn"] * 2 + ["zoo/resnet"] * 2
    (out / "tables/measurement=evidence/model=zoo%2Fresnet/00000.parquet").unlink()
    run("study", "run", out, "--device", "cpu", cwd=tmp_path)
    assert Study.open(out).table("evidence").num_rows == 4


def test_a_folder_of_another_command_is_refused(tmp_path):
    out = tmp_path / "out"
    given = ("scenes:test[:1]", "--model", "zoo/resnet", "--device", "cpu", "--out", out)
    run("score", *given, "--method", "gradient", "--metric", "sparseness")
    said = run("evidence", *given, "--grid", "3", code=2).stderr
    assert "it has maps/gradient, scores/gradient, too. Take another folder" in said


def test_files_given_relative_to_the_folder_are_found_from_elsewhere(photos, tmp_path):
    given = ("evidence", "one.png", "two.png", "--model", "zoo/resnet", "--device", "cpu", "--grid", 2, "--max-size", 1)
    run(*given, "--out", "out", "--no-figures", cwd=photos)
    assert Study.open(photos / "out").plan.names == ("one.png", "two.png")
    next((photos / "out").glob("tables/*/*/00000.parquet")).unlink()
    (tmp_path / "elsewhere").mkdir()
    run("study", "run", photos / "out", "--device", "cpu", cwd=tmp_path / "elsewhere")
    assert len(Study.open(photos / "out").evidence()) == 2
