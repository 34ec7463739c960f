"""``suffice report`` as a user meets it."""

import pytest

from benchmarks.report_size import made_up_study
from tests.cli.command import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    base = tmp_path_factory.mktemp("report")
    made_up_study(base / "run", models=2, images=8, block=8)
    return base


def test_the_page_lies_in_the_folder_of_the_study(folder):
    done = run("report", folder / "run")
    page = folder / "run" / "report.html"
    assert done.stdout == f"{page}\n"
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert "figures" in done.stderr


def test_page_and_figures_go_where_they_are_wanted(folder, tmp_path):
    out, figures = tmp_path / "a.html", tmp_path / "figures"
    done = run("report", folder / "run", "--out", out, "--figures", figures, "--format", "svg")
    assert out.exists()
    written = sorted(figures.iterdir())
    assert len(written) > 3
    assert {file.suffix for file in written} == {".svg"}
    assert sorted(done.stdout.split()) == sorted(map(str, [out, *written]))


def test_mistakes_are_one_message(tmp_path):
    done = run("report", tmp_path / "nothing", code=2)
    assert "nothing" in done.stderr
    assert "write --figures FOLDER" in run("report", tmp_path / "nothing", "--format", "png", code=2).stderr


def test_outputs_are_checked_before_anything_else(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("suffice.study.Study.open", lambda folder: pytest.fail("opened the study before the outputs"))
    (tmp_path / "file").touch()
    below = tmp_path / "file" / "below"
    assert f"--out {below} cannot be written to" in run("report", folder / "run", "--out", below, code=2).stderr
    done = run("report", folder / "run", "--figures", below, code=2)
    assert f"--figures {below} cannot be written to: Not a directory" in done.stderr
    done = run("report", folder / "run", "--figures", tmp_path / "figures", "--format", "gif", code=2)
    assert "'svg', 'png', 'pdf'" in done.stderr


def test_a_folder_of_a_study_that_cannot_be_written_is_said_before_the_report_is_made(folder, monkeypatch):
    monkeypatch.setattr("suffice.report.make_report", lambda study: pytest.fail("made the report before the check"))
    page = folder / "run" / "report.html"
    page.unlink(missing_ok=True)
    page.mkdir()
    try:
        assert "is a folder; expected a file" in run("report", folder / "run", code=2).stderr
    finally:
        page.rmdir()
