"""The script that measures in a limited time what needs a GPU: order, limits, and going on."""

import json
from pathlib import Path

import pytest

from benchmarks import gpu_figures
from benchmarks.gpu_figures import JOBS, ROOT, Job, command, main, write_study

SLEEPS = "-c __import__('time').sleep(600)"


@pytest.fixture
def jobs(monkeypatch):
    def use(**made):
        monkeypatch.setattr(gpu_figures, "JOBS", made)

    monkeypatch.setattr(gpu_figures, "PATIENCE", 1.0)
    return use


def rows(out):
    return [json.loads(line) for line in (out / "jobs.jsonl").read_text().splitlines()]


def test_jobs_run_in_order_and_what_is_done_is_not_done_again(jobs, tmp_path, capsys):
    jobs(first=Job("-c", "print('one')", "print('tiny')", 60, "a"), second=Job("-c", "exit(3)", "", 60, "b"))
    assert main(["--jobs", "first,second", "--out", str(tmp_path)]) == 1  # one of them failed
    assert [(row["job"], row["exit"], row["interrupted"]) for row in rows(tmp_path)] == [
        ("first", 0, False),
        ("second", 3, False),
    ]
    log = (tmp_path / "figures.log").read_text()
    assert log.index("== first") < log.index("one\n") < log.index("== second")
    jobs(first=Job("-c", "print('one')", "", 60, "a"), second=Job("-c", "print('two')", "", 60, "b"))
    assert main(["--jobs", "first,second", "--out", str(tmp_path)]) == 0
    assert "first: done before" in capsys.readouterr().out
    assert [row["job"] for row in rows(tmp_path)] == ["first", "second", "second"]


def test_a_job_that_takes_too_long_is_ended_and_one_that_does_not_fit_is_not_begun(jobs, tmp_path, capsys):
    jobs(slow=Job(SLEEPS, "", "", 1, "a"), large=Job("-c", "print('large')", "", 3600, "b"))
    assert main(["--jobs", "slow,large", "--minutes", "2", "--out", str(tmp_path)]) == 1
    assert [(row["job"], row["interrupted"]) for row in rows(tmp_path)] == [("slow", True)]
    assert "large: skipped" in capsys.readouterr().out


def test_unknown_jobs_are_named(capsys):
    with pytest.raises(SystemExit):
        main(["--jobs", "nothing"])
    assert "there is no job 'nothing'; there are thirteen" in capsys.readouterr().err


def test_all_jobs_are_commands_of_this_repository(tmp_path):
    for job in JOBS.values():
        for tiny in (False, True):
            words = command(job, tiny, tmp_path)
            assert words[1] == "-m" or Path(words[1]).exists()
            assert not any("{" in word for word in words)


def test_the_study_of_thirteen_networks_takes_the_photographs_that_are_there(tmp_path):
    write_study(tmp_path / "thirteen.toml")
    text, original = (tmp_path / "thirteen.toml").read_text(), (ROOT / "studies" / "jiang-table-1.toml").read_text()
    assert "imagenet_val_1000" in text
    assert text.count("timm/") == original.count("timm/") == 13
