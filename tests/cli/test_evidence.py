"""``suffice evidence`` as a user meets it."""

import json
import re
import shutil

import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

from suffice import load
from suffice.evidence import Settings
from suffice.study import Study
from tests.cli.command import run

MODEL = ("--model", "zoo/resnet", "--device", "cpu")
QUICK = (*MODEL, "--grid", 3, "--max-size", 2)


def test_files_and_json_say_the_same(photos):
    out = photos / "out"
    done = run("evidence", photos / "two.png", photos / "one.png", *QUICK, "--out", out, "--subexplanations", "--json")
    said = json.loads(done.stdout)
    assert [i["index"] for i in said["images"]] == [0, 1]
    assert [i["image"] for i in said["images"]] == [str(photos / "two.png"), str(photos / "one.png")]
    table = pq.read_table(out / "tables/measurement=evidence/model=zoo%2Fresnet/00000.parquet", partitioning=None)
    rows = table.to_pylist()
    for row, told in zip(rows, said["images"], strict=True):
        assert row["mse_cells"] == [mse["cells"] for mse in told["mses"]]
        assert row["mse_ratios"] == [mse["ratio"] for mse in told["mses"]]
        assert row["mse_certified"] == [mse["certified"] for mse in told["mses"]]
        shared = set(told) & set(row) - {"mses", "spent", "refined", "contrastive"}
        assert {"image_id", "coverage", "within_500", "why", "stopped", "tree_50"} <= shared
        assert {name: told[name] for name in shared} == {name: row[name] for name in shared}
    stored = json.loads(table.schema.metadata[b"suffice"])
    assert {name: said[name] for name in ("weights", "settings", "preprocessing", "versions")} == {
        name: stored[name] for name in ("weights", "settings", "preprocessing", "versions")
    }
    loaded = Study.open(out).evidence()
    assert [len(e.mses) for e in loaded] == [len(i["mses"]) for i in said["images"]]
    assert pq.read_table(out / "subexplanations.parquet").equals(loaded.subexplanations())
    for e in loaded:
        own = out / "figures" / f"{e.name.rpartition('/')[2].removesuffix('.png')}-{e.image_id[:8]}"
        assert (own / "graph.svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")
        assert {f.suffix for f in own.glob("graph.*")} == {".svg", ".json", ".dot"}
        assert len(list(own.glob("mse-*.png"))) == len(e.mses)
    study = {"plan.json", "study.json", "images.parquet", "log.jsonl", "locks", "tables"}
    assert {entry.name for entry in out.iterdir()} == study | {"subexplanations.parquet", "figures"}


@pytest.mark.parametrize("chosen", ["--layout column", "--layout slide", "--hide fade", "--no-numbers"])
def test_the_form_of_graphs_can_be_chosen(photos, chosen):
    usual, other = photos / "usual", photos / "other"
    run("evidence", photos / "one.png", *QUICK, "--out", usual)
    run("evidence", photos / "one.png", *QUICK, "--out", other, *chosen.split())
    (found,) = Study.open(other).evidence()
    (before,), (after,) = (list(out.rglob("graph.svg")) for out in (usual, other))
    sizes = [re.search(r'width="([\d.]+)"', file.read_text(encoding="utf-8"))[1] for file in (before, after)]
    assert (sizes[0] != sizes[1]) == ("--layout" in chosen)
    assert before.read_text(encoding="utf-8") != after.read_text(encoding="utf-8")
    assert found.mses


def test_choices_of_graphs_need_a_folder(photos):
    failed = run("evidence", photos / "one.png", *QUICK, "--layout", "column", code=2)
    assert "--layout, --hide, and --numbers are about graphs, which need --out." in " ".join(failed.stderr.split())
    out = photos / "out"
    failed = run("evidence", photos / "one.png", *QUICK, "--hide", "fade", "--no-figures", "--out", out, code=2)
    assert "about graphs, which need --figures." in " ".join(failed.stderr.split())
    assert not out.exists()


def test_names_of_files_are_safe_and_none_takes_anothers_place(photos):
    (photos / "a").mkdir()
    (photos / "b").mkdir()
    shutil.copy(photos / "one.png", photos / "a" / "x[1]:?.png")
    shutil.copy(photos / "two.png", photos / "b" / "x[1]:?.png")
    out = photos / "out"
    run("evidence", photos / "a", photos / "b", *QUICK, "--out", out, "--no-regions")
    folders = sorted(folder.name for folder in (out / "figures").iterdir())
    assert len(folders) == 2
    assert all(re.fullmatch(r"x-1-[0-9a-f]{8}", name) for name in folders)
    assert "region_words" not in Study.open(out).table("evidence").column_names


def test_tables_of_few_images_and_a_summary(photos):
    done = run("evidence", photos, *MODEL, "--grid", 3, "--max-size", 1, "--exhaustive", 1)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    heads = [line for line in lines if line[0] == "image" and line[1] == "MSE"]
    assert len(heads) == 2
    assert heads[0][2:] == ["cells", "ratio", "margin", "minimal", *heads[0][6:]]
    names = [line[0] for line in lines]
    wanted = {"quantity", "mses", "coverage", "exhaustive_mses", "baseline_ratio", "questions", "ended by"}
    assert wanted <= set(names)
    assert "within_4000" not in names  # no search of so few questions can say
    assert done.stderr.count("of up to 1 cell: these are all there are.") == 2
    assert done.stderr.count("baseline alone: ") == 2
    ended = {line[0]: int(line[1]) for line in lines[names.index("ended by") + 1 :]}
    assert sum(ended.values()) == 2


def test_a_summary_says_which_counts_are_lower_bounds():
    done = run("evidence", "scenes:test[:2]", "--model", "zoo/convnext-3-bn", "--device", "cpu", "--max-mses", 0)
    assert "2 images stopped at the limit of 0 MSEs: their counts are lower bounds." in done.stderr


@pytest.fixture
def seen(monkeypatch):
    """Settings that searches were started with."""
    import suffice.evidence

    settings = []
    original = suffice.evidence.EvidenceStream

    def watched(net, images, targets, chosen, *args, **options):
        settings.append(chosen)
        return original(net, images[:0], targets, chosen, *args, **options)

    monkeypatch.setattr(suffice.evidence, "EvidenceStream", watched)
    return settings


@pytest.mark.parametrize(("given", "candidates"), [((), 15), (("--preset", "cvpr2024"), 10)])
def test_presets_are_a_start(photos, seen, given, candidates):
    run("evidence", photos / "one.png", *MODEL, *given, "--grid", 2, "--max-size", 1)
    assert (seen[0].candidates, seen[0].grid, seen[0].max_size) == (candidates, 2, 1)


def test_every_choice_has_an_option(photos, seen):
    choices = (
        "--threshold 0.8 --keeps both --above-baseline --min-confidence 0.2 --exhaustive 1 --deletion-orders 0 "
        "--certify none --confirm all --second-baseline gray --stability --contrastive --necessary --refine 14,28 "
        "--max-questions 900 --max-mses none --max-size none --prefer-disjoint --minimal single "
        "--subset-budget 300"
    )
    run("evidence", photos / "one.png", *MODEL, *choices.split())
    assert seen[0] == Settings(
        threshold=0.8, keeps="both", above_baseline=True, min_confidence=0.2, exhaustive=1, deletion_orders=0,
        certify=None, confirm="all", second_baseline="gray", stability=True, contrastive=True, necessary=True,
        refine=(14, 28), max_questions=900, max_mses=None, max_size=None, prefer_disjoint=True, minimal="single",
        subset_budget=300,
    )  # fmt: skip


def test_what_is_broken_is_named_and_skipped(photos):
    (photos / "three.png").write_bytes(b"oops")
    done = run("evidence", photos, *MODEL, "--grid", 2, "--max-size", 1, "--json", code=1)
    said = json.loads(done.stdout)
    assert len(said["images"]) == 2
    assert said["skipped"][0]["name"].endswith("three.png")
    assert "three.png" in done.stderr


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--max-size", "0"), "--max-size 0; it can be a whole number from 1 on"),
        (("--max-mses", "-4"), "--max-mses -4; it can be a whole number from 0 on or none."),
        (("--max-mses", "many"), "--max-mses 'many'; expected a whole number, or none"),
        (("--threshold", "2"), "--threshold 2.0; it can be a number above 0 to 1"),
        (("--refine", "14,x"), "--refine 'x'; expected a whole number"),
        (("--target", "nothing"), "has no class 'nothing'"),
        (("--grid", "99"), "does not fit"),
        (("--subexplanations",), "--subexplanations needs --out"),
    ],
)
def test_mistakes_are_one_line(photos, given, said):
    done = run("evidence", photos / "one.png", *MODEL, *given, code=2)
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_mistake_leaves_nothing_that_would_be_in_the_way(photos):
    out = photos / "out"
    run("evidence", photos / "one.png", *QUICK, "--target", "nothing", "--out", out, code=2)
    assert not out.exists()
    run("evidence", photos / "one.png", *QUICK, "--out", out, "--no-figures")
    assert len(Study.open(out).evidence()) == 1


def test_no_evidence_says_why(photos):
    """A class that the model does not see at all, and a model that returns no numbers."""
    plain = run("evidence", photos / "one.png", *QUICK, "--min-confidence", 1)
    assert plain.stdout == ""  # no tables of nothing
    assert "No evidence: the model's confidence" in plain.stderr
    assert "of it)" not in plain.stderr  # nor is the baseline's confidence told as a share of next to nothing
    done = run("evidence", photos / "one.png", *QUICK, "--min-confidence", 1, "--json")
    found = json.loads(done.stdout)["images"][0]
    assert (found["mses"], found["stopped"]) == ([], "no confidence")
    assert found["why"].startswith("No evidence: the model's confidence")
    assert found["baseline_ratio"] is None

    state = load("zoo/resnet", device="cpu").module.state_dict()
    name = next(name for name, value in state.items() if value.is_floating_point())
    save_file(state | {name: torch.full_like(state[name], torch.nan)}, photos / "nan.safetensors")
    nan = ("--checkpoint", photos / "nan.safetensors")
    done = run("evidence", photos / "one.png", *QUICK, *nan, "--json")
    found = json.loads(done.stdout)["images"][0]
    assert (found["mses"], found["stopped"], found["confidence"]) == ([], "not a number", None)
    assert "NaN" in run("evidence", photos / "one.png", *QUICK, *nan).stderr


@pytest.mark.parametrize("kept", [True, False])
def test_a_precision_that_is_chosen_is_named(photos, monkeypatch, kept):
    monkeypatch.setattr("suffice.perturb.runner.fast_precision", lambda net: "bf16")
    more = ("--out", photos / "out") if kept else ()
    done = run("evidence", photos / "one.png", *QUICK, "--precision", "auto", "--json", *more)
    assert json.loads(done.stdout)["precision"] == "bf16"
    assert "Precision: bf16." in done.stderr
