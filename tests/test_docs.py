"""What the documentation shows runs."""

import importlib
import os
import re
import traceback
from pathlib import Path

import pytest

import suffice
from tests.fewer import of_fewer_scenes
from tests.forks import CONTEXT

ROOT = Path(__file__).parents[1]
# Pages whose examples need published weights or the reader's own files.
READERS_OWN = {"vision.md"}
# Examples that take their images apart, and need as many as they say.
TAKE_APART = {"metrics.md"}
# The examples of this page are run with the numbers that stand beside them.
FIRST_WALK = "start.md"
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if page.name not in {*READERS_OWN, FIRST_WALK} and "```python" in page.read_text("utf-8")
]


def run(script: str, folder: Path) -> None:
    """In a process of its own, as some examples register things."""
    failed = folder / "traceback"
    process = CONTEXT.Process(target=_run, args=(script, folder, failed))
    process.start()
    process.join()
    assert process.exitcode == 0, failed.read_text("utf-8") if failed.exists() else process.exitcode


def _run(script: str, folder: Path, failed: Path) -> None:
    os.chdir(folder)
    os.environ["BROWSER"] = "true"  # no window opens
    import torch

    torch.set_num_threads(1)
    try:
        exec(compile(script, "example", "exec"), {"__name__": "__main__"})
    except BaseException:
        failed.write_text(traceback.format_exc(), "utf-8")
        os._exit(1)


def code_of(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), flags=re.M | re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_examples_run(page, tmp_path):
    script = "\n".join(code_of(page))
    run(script if page.name in TAKE_APART else of_fewer_scenes(script), tmp_path)


def test_numbers_in_the_first_walk_are_what_comes_out(tmp_path):
    """Comments in docs/start.md that are plain tuples, lists and dictionaries of whole numbers and text are true."""
    checked, lines = 0, []
    for line in "\n".join(code_of(ROOT / "docs" / FIRST_WALK)).splitlines():
        shown = re.fullmatch(r"(\S.*?)  # ([\[({].*?[\])}])(?::.*)?", line)
        if shown and "=" not in shown[1].split("(")[0] and "tensor" not in shown[2] and "torch" not in shown[2]:
            checked += 1
            lines.append(f"assert ({shown[1]}) == ({shown[2]}), ({shown[1]})")
        else:
            lines.append(line)
    assert checked >= 5
    run("\n".join(lines), tmp_path)


@pytest.mark.parametrize(("kind", "known"), [("method", suffice.list_methods), ("metric", suffice.list_metrics)])
def test_every_method_and_metric_is_held_against_an_original(kind, known):
    page = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    table = page.split(f"## How closely each {kind} agrees with its original")[1].split("\n## ")[0]
    first = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    named = re.findall(r"`([^`]+)`", " ".join(first))
    assert sorted(named) == known()


def test_methods_missing_in_the_tables_of_advice_are_in_the_table_it_names():
    advice = " ".join((ROOT / "docs" / "which-method.md").read_text("utf-8").split())
    others = re.search(r"((?:`[\w-]+`, )+and `[\w-]+`) are not among [^.]*\(methods\.md#all-methods\)", advice)
    methods = re.findall(r"`([\w-]+)`", others[1])
    assert len(methods) >= 6
    assert not set(methods) & rows_of(ROOT / "docs" / "tables" / "real-500-vit-cx.md").keys()
    assert not set(methods) - rows_of(ROOT / "docs" / "tables" / "real-all.md").keys()


def test_every_method_and_metric_can_be_cited():
    """Notes in CITATION.cff name what each paper is cited for; controls are nobody's."""
    said = re.findall(r'^ +(?:notes: "|# )(.*)', (ROOT / "CITATION.cff").read_text("utf-8"), flags=re.M)
    named = set(re.findall(r"[\w+-]+", " ".join(said).lower()))
    assert not {*suffice.list_methods(), *suffice.list_metrics()} - {"random", "center"} - named


def test_the_reference_has_every_public_name():
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    rooms = re.findall(r"^## (suffice\.[\w.]+)$", page, flags=re.M)
    public = {name for room in rooms for name in getattr(importlib.import_module(room), "__all__", ())}
    assert len(public) > 100
    assert not public - set(re.findall(r"^\.\. auto\w+:: (?:[\w.]+\.)?(\w+)$", page, flags=re.M))


def texts() -> list[Path]:
    """Everything that is written by hand and read by others, but for this file."""
    folders, kinds = ("suffice", "docs", "benchmarks", "studies", "tests"), ("*.py", "*.md", "*.toml")
    found = [path for folder in folders for kind in kinds for path in (ROOT / folder).rglob(kind)]
    found += [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    return [path for path in found if path != Path(__file__) and not {"_build", "_generated"} & set(path.parts)]


def test_an_author_has_one_name():
    """Family name Li, however each paper prints it."""
    wrong = [path for path in texts() if re.search(r"Fuxin(?! Li)", path.read_text("utf-8"))]
    assert not wrong
    for line in (ROOT / "CITATION.cff").read_text("utf-8").splitlines():
        assert "Fuxin" not in line or "{family-names: Li, given-names: Fuxin}" in line


def rows_of(page: Path, model: str = "") -> dict[str, list[str]]:
    """Rows of tables, of one model or all, by their method, in the second column; no emphasis or standard errors."""
    rows = [line.replace("*", "").strip("| ").split(" | ") for line in page.read_text("utf-8").splitlines()]
    wanted = {"model", model} if model else {row[0] for row in rows}
    return {row[1]: [cell.split(" ± ")[0] for cell in row] for row in rows if len(row) > 2 and row[0] in wanted}


def test_advice_has_the_numbers_of_the_tables():
    measurements = ROOT / "docs" / "tables" / "real-500-vit-cx.md"
    cnn, vit = (rows_of(measurements, model) for model in ("resnet50-v1", "vit-tiny"))
    page = (ROOT / "docs" / "which-method.md").read_text("utf-8")
    table = page.split("| | ResNet-50, insertion |")[1].split("\n\n")[0]
    rows = [re.sub(r"[*`]", "", line).strip("| ").split(" | ") for line in table.splitlines()[2:]]
    assert len(rows) >= 8
    for a, *of_a, b, insertion, deletion in rows:
        for method, said, measured in ((a, of_a, cnn), (b, [insertion, deletion], vit)):
            row = dict(zip(measured["method"], measured[method], strict=True))
            assert said == [row["insertion ↑"], row["deletion ↓"]], method


def test_fp16_is_what_examples_advise():
    """Commands beside a table are those that made it; all others are advice."""
    measured, folders = {"findings.md", "performance.md"}, {"benchmarks", "studies", "notebook"}
    pages = [path for path in texts() if path.parts[-2] not in folders and path.name not in measured]
    assert not [path for path in pages if "--precision bf16" in path.read_text("utf-8")]


def test_all_say_the_same_of_how_long_the_demo_takes():
    said = {
        "Makefile": r"(?m)^demo: .*",
        "README.md": r"`suffice demo` [^.]*\.",
        "docs/cli.md": r"(?s)\n## suffice demo\n.*?\n## ",
        "suffice/cli/demo.py": r'(?s)"""Run the built-in.*?"""',
    }
    parts = {file: re.search(pattern, (ROOT / file).read_text("utf-8")) for file, pattern in said.items()}
    times = {file: re.findall(r"(?:about )?(?:\w+ to )?\w+ minutes", part[0]) for file, part in parts.items()}
    assert {tuple(found) for found in times.values()} == {("about three minutes",)}, times
