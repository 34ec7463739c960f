"""``suffice demo`` as a user meets it."""

from suffice.report import demo
from suffice.study import Study
from tests.cli.command import run


def test_demo(tmp_path, monkeypatch):
    # Processes that share the work are tested with it.
    monkeypatch.setattr(demo, "run_on_all_cores", lambda study, out, **_: study.run(out / "run", device="cpu"))
    done = run("demo", "--out", tmp_path, "--images", 2, "--networks", "convnext-3,convnext-3-bn")
    page = tmp_path / "report.html"
    assert done.stdout.strip() == str(page)
    assert "</html>" in page.read_text(encoding="utf-8")
    assert "not to settle a question" in done.stderr
    study = Study.open(tmp_path / "run")
    assert study.status().finished
    assert study.table("evidence").num_rows == 4
    assert study.table("evidence")["error"].null_count == 4


def test_a_network_that_is_not_there(tmp_path):
    done = run("demo", "--out", tmp_path / "out", "--networks", "resnet,restnet", code=2)
    assert "There is no network 'zoo/restnet'" in done.stderr
    assert not (tmp_path / "out").exists()
