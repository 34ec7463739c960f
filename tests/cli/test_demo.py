"""``suffice demo`` as a user meets it."""

from suffice.study import Study
from tests.cli.command import run


def test_demo(tmp_path):
    done = run("demo", "--out", tmp_path, "--images", 3, "--networks", "resnet,resnet-aug")
    page = tmp_path / "report.html"
    assert done.stdout.strip() == str(page)
    assert "</html>" in page.read_text(encoding="utf-8")
    assert "not to settle a question" in done.stderr
    study = Study.open(tmp_path / "run")
    assert study.status().finished
    assert study.table("evidence").num_rows == 6
    assert study.table("evidence")["error"].null_count == 6


def test_a_network_that_is_not_there(tmp_path):
    done = run("demo", "--out", tmp_path / "out", "--networks", "resnet,restnet", code=2)
    assert "There is no network 'zoo/restnet'" in done.stderr
    assert not (tmp_path / "out").exists()
