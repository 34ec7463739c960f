"""The studies of the repository: all can be read, and those that need nothing from elsewhere run."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import timm

from benchmarks import explainer_variations
from suffice.attribution import list_methods
from suffice.attribution.methods import vit_cx
from suffice.study import Study
from suffice.study.asked import read_file
from suffice.study.choices import ImageChoice
from suffice.vision.models import list_models
from suffice.vision.own import is_own

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parents[2] / "studies"
FILES = sorted(FOLDER.glob("*.toml"))
PAPERS = {
    "eea-metrics", "jiang-cross-testing", "jiang-table-1", "jiang-variants", "tis-supplement", "vit-cx-ablations",
    "vit-cx-table-1",
}  # fmt: skip


def test_there_is_a_study_for_every_table():
    assert PAPERS | {"zoo", "real"} <= {file.stem for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_studies_can_be_read(file):
    asked, text = read_file(file)  # which checks methods, metrics, protocols, and options of all of them
    assert asked.name == file.stem
    assert text.startswith("# ")
    assert set(re.findall(r"\$(\w+)", text)) <= {"IMAGENET", "VARIANTS", "SUFFICE_ASSETS", "WEIGHTS"}
    for model in asked.models:
        if is_own(model.name):
            module, _, name = model.name.partition(":")
            assert callable(getattr(__import__(module, fromlist=[name]), name))
        elif model.name.startswith("timm/") and model.checkpoint is None:  # by the tag of its weights
            assert timm.list_pretrained(model.name.removeprefix("timm/")) == [model.name.removeprefix("timm/")]
        else:
            assert list_models(model.name) == [model.name]


@pytest.mark.parametrize("page", sorted((FOLDER.parent / "docs/tables").glob("*.md")), ids=lambda page: page.stem)
def test_every_table_of_the_docs_names_its_study(page):
    text = page.read_text(encoding="utf-8")
    named = re.search(r"suffice study run studies/([\w-]+)\.toml.*\n\nTable `([\w-]+)`", text)
    named = named or re.search(r"Study `([\w-]+)`, table `([\w-]+)`", text)
    asked, _ = read_file(FOLDER / f"{named[1]}.toml")
    assert {asked.measurements[one].kind for one in asked.named(named[2])} == {"metrics"}
    (images,) = map(int, re.findall(r"over (\d+) images", text))
    if part := re.search(r"the first (\d+) of its (\d+) scenes", text):
        assert images == int(part[1])
        images = int(part[2])
    assert images == images_of(asked.images)


def images_of(chosen: ImageChoice) -> int:
    """How many images a study has: of scenes, of those with two creatures, or of the thousand photographs."""
    scenes = re.search(r"scenes:test\[:(\d+)\]", str(chosen.source))
    there = int(scenes[1]) if scenes else {"../two-classes/index.csv": 100}.get(str(chosen.source), 1000)
    return min(chosen.take or there, -(-there // chosen.every))


@pytest.mark.parametrize("name", sorted(PAPERS))
def test_studies_of_papers_say_what_they_need_and_take(name):
    head = (FOLDER / f"{name}.toml").read_text(encoding="utf-8").partition("\nname")[0]
    assert "# Needs: " in head
    assert "# Takes: " in head


def test_thirteen_models_of_five_families():
    for name in ("jiang-table-1", "jiang-cross-testing"):
        asked, _ = read_file(FOLDER / f"{name}.toml")
        assert len({model.label for model in asked.models}) == 13
        assert asked.images.every == 10


def test_both_readings_of_vit_cx_are_among_its_layers_and_masks():
    asked, _ = read_file(FOLDER / "zoo-vit-cx.toml")
    options = [asked.measure[name] for name in asked.named("reading-maps")]
    found = {(one["layer"], one["representative"]) for one in options}
    assert len(found) == 8
    assert {(vit_cx.LAYER[r], vit_cx.REPRESENTATIVE[r]) for r in ("code", "paper")} < found


def test_the_zoo_has_every_method():
    asked, _ = read_file(FOLDER / "zoo.toml")
    assert sorted({asked.measurements[name].method for name in asked.named("maps")}) == list_methods()


@pytest.mark.parametrize("name", ["tis-supplement", "real-tis", "zoo-tis"])
def test_rivals_of_tis_are_as_its_authors_ran_them(name):
    asked, _ = read_file(FOLDER / f"{name}.toml")
    options = {one: asked.measurements[f"rival-maps/{one}"].options for one in ("tam", "bt-h", "bt-t", "rise")}
    assert options.pop("rise") == {"masks": 4000, "side": 8, "share": 0.1, "output": "logit"}
    assert set(map(str, options.values())) == {"{'start_layer': 0}"}
    assert asked.measurements["parameters/0.5-256"].reads == ("grid/0.5-256",)


# So little work that it can be tried on a CPU.
FEW: dict[str, dict[str, Any]] = {
    "rise": {"masks": 16}, "tis": {"masks": 8, "iterations": 2}, "tam": {"steps": 2}, "vit-cx": {"random_masks": 16},
}  # fmt: skip


def small(file: str, methods: set[str], models: list[Any], **images: Any) -> Study:
    """A study of the repository with some of its models and methods, few images, and little work."""
    content = tomllib.loads((FOLDER / f"{file}.toml").read_text(encoding="utf-8"))
    source = content["images"] if isinstance(content["images"], dict) else {"source": content["images"]}
    content |= {"images": source | images, "models": models}
    asked, _ = read_file(FOLDER / f"{file}.toml")
    for name, options in content["measure"].items():
        if "methods" in options:
            made = [asked.measurements[one] for one in asked.named(name)]
            options["methods"] = [
                {"name": one.method, "label": one.label, **one.options, **FEW.get(one.method, {})}
                for one in made if one.method in methods
            ]  # fmt: skip
        if options["kind"] == "metrics" and options.get("metrics") != ["sparseness"]:
            options["steps"] = 4
        if isinstance(options.get("maps"), list):
            options["maps"] = [one for one in options["maps"] if asked.measurements[one].method in methods]
    made = {name: options for name, options in content["measure"].items() if options.get("methods", True)}
    read = [{maps.partition("/")[0] for maps in _listed(options.get("maps", []))} for options in made.values()]
    content["measure"] = {name: made[name] for name, maps in zip(made, read, strict=True) if maps <= set(made)}
    return Study(**content, base=FOLDER)


def _listed(maps: str | list[str]) -> list[str]:
    return [maps] if isinstance(maps, str) else maps


def test_the_zoo_at_tiny_size(tmp_path):
    made = small("zoo", {"grad-cam", "cgw2", "rise", "random"}, ["zoo/resnet", "zoo/deit"], take=2)
    study = made.run(tmp_path / "run", device="cpu")
    tables = study.score_tables(order="ins-del")
    assert list(tables) == ["methods", "igos-own-cells", "igos-same-cells"]
    assert {(r.model, r.method) for r in tables["methods"].rows} == {
        *(("zoo/resnet", name) for name in ("grad-cam", "rise", "random")),
        *(("zoo/deit", name) for name in ("grad-cam", "cgw2", "rise", "random")),
    }
    assert {row.model for row in tables["igos-same-cells"].rows} == {"zoo/resnet"}
    assert not study.status().failed


def test_score_cam_is_cross_tested_over_both_baselines(tmp_path):
    made = small("jiang-cross-testing", set(), ["zoo/resnet", "zoo/deit"], source="scenes:test[:2]", every=1)
    tests = ["score-cam-cross", "score-cam-cross-black"]
    study = made.run(tmp_path / "run", device="cpu", only=tests)
    assert not study.status().failed
    blurred, black = (study.table(name) for name in tests)
    assert set(blurred["method"].to_pylist()) == set(black["method"].to_pylist()) == {"score-cam"}
    assert blurred.num_rows == black.num_rows == 2 * 2 * 2
    assert blurred["whole"].equals(black["whole"])
    assert not blurred["hidden"].equals(black["hidden"])


@pytest.mark.parametrize(
    ("file", "methods"), [("zoo-tis", {"tis", "tam", "center"}), ("zoo-vit-cx", {"vit-cx"})], ids=["tis", "vit-cx"]
)
def test_studies_of_one_method_at_tiny_size(file, methods, tmp_path):
    study = small(file, methods, ["zoo/deit"], take=1).run(tmp_path / "run", device="cpu")
    assert not study.status().failed
    for table in study.score_tables().values():
        assert len(table.rows) >= 3
        assert all(row.seconds > 0 for row in table.rows)


def test_real_weights_and_photographs(assets, tmp_path, monkeypatch):
    monkeypatch.setenv("SUFFICE_ASSETS", str(assets))
    model = {"name": "timm/vit_tiny_patch16_224", "checkpoint": f"{assets}/vit_tiny_patch16_224.safetensors"}
    study = small("real", {"grad-cam", "random"}, [{**model, "label": "vit-tiny"}], take=1)
    done = study.run(tmp_path / "run", device="cpu", only=["eea-target", "eea-predicted"])
    assert [row.method for row in done.score_tables()["eea-target"].rows] == ["grad-cam", "random"]
    target, predicted = (done.score_tables()[name].rows[0] for name in ("eea-target", "eea-predicted"))
    assert target.targets.tolist() == [0]  # tench
    assert predicted.targets.shape == (1,)


@pytest.mark.parametrize("name", ["eea-mixed-zoo", "eea-sensitivity-zoo"])
def test_explainers_of_studies_are_those_that_are_trained_for_them(name):
    made = {
        f"{net}-{kind}"
        for net in ("zoo-resnet", "zoo-deit")
        for kind in (
            *(f"weight-{weight}" for weight in explainer_variations.WEIGHTS),
            *(f"images-{count}" for count in explainer_variations.COUNTS),
            *("by-zoo-resnet", "by-zoo-deit", "shapley", "shapley-7"),  # the latter of cells of 7×7
        )
    }
    text = (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    named = re.findall(r'"explainers/([\w-]+)\.safetensors"', text)
    assert named
    assert set(named) <= made


def test_explainers_that_were_not_trained_are_left_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = small("eea-mixed-zoo", {"eea", "vit-shapley", "random"}, ["zoo/resnet", "zoo/deit"], take=1)
    study = made.run(tmp_path / "run", device="cpu")
    rows = [row for table in study.score_tables().values() for row in table.rows]
    assert [(row.model, row.method) for row in rows] == [("zoo/resnet", "random"), ("zoo/deit", "random")]
