"""``suffice study export --tables``."""

import json

import pytest

from tests.cli.command import run
from tests.cli.test_study import FILE
from tests.study.small import write_pictures

SEVERAL = FILE.replace('method = "occlusion"\nwindow = 8\nstride = 8', 'methods = ["center", "random"]')


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    write_pictures(folder / "pictures", 6)
    (folder / "study.toml").write_text(SEVERAL)
    run("study", "run", "study.toml", "--out", "done", "--device", "cpu", cwd=folder)
    return folder


def test_tables_of_methods_and_metrics(folder):
    done = run("study", "export", "done", "--tables", "tables", "--order", "insertion", cwd=folder)
    assert "Written to tables: tiny-a-b-scores.md" in done.stderr
    page = (folder / "tables/tiny-a-b-scores.md").read_text(encoding="utf-8")
    assert page.count("| sum | ") == 2
    assert (folder / "tables/tiny-a-b-scores/scores.tex").exists()
    done = run("study", "export", "done", "--tables", "tables", "--json", cwd=folder)
    assert len(json.loads(done.stdout)["files"]) == 6


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--order", "insertion"], "--order is for --tables"),
        (["--tables", "t", "--out", "o"], "--tables has a folder and formats of its own"),
    ],
)
def test_options_that_do_not_go_together(folder, arguments, said):
    assert said in " ".join(run("study", "export", "done", *arguments, cwd=folder, code=2).stderr.split())
