"""``suffice demo`` as a user meets it."""

from tests.cli.command import run


def test_demo(tmp_path):
    out = tmp_path / "out"
    done = run("demo", "--out", out, "--images", 2, "--networks", "convnext-3,convnext-3-bn")
    assert "the search found just these" in done.stderr
    assert "Batch instead of layer normalization in ConvNeXt" in done.stderr
    assert {"zoo/resnet\trise", "zoo/deit\ttis"} <= {"\t".join(r.split("\t")[:2]) for r in done.stdout.splitlines()}
    drawn = ("oracle-graph", "convnext-3-scene-0", "convnext-3-bn-scene-1", "maps-resnet", "maps-deit")
    assert all("</svg>" in (out / f"{name}.svg").read_text(encoding="utf-8") for name in drawn)
    assert len((out / "table.csv").read_text(encoding="utf-8").splitlines()) == 3
