"""Errors that are found after a file was read say where it is wrong, too."""

import json

import pytest
import torch

from suffice.errors import StudyError
from suffice.study import Study
from suffice.study.asked import read_dict
from suffice.study.plan import make_plan
from tests.study.small import write_pictures

GOOD = """\
name = "small"
images = { source = "pictures", take = 3 }
models = [
    "tests.study.small:any_of",
    { name = "tests.study.small:weighted", label = "sum" },
]
[run]
block = 2
[[contrasts]]
of = "sum"
against = "tests.study.small:any_of"
[measure.maps]
kind = "attribution"
method = "occlusion"
models = ["sum"]
[measure.scores]
kind = "metrics"
maps = "maps"
models = ["sum"]
"""

ANY = '"tests.study.small:any_of",'
WRONG = {
    "no such images": ('"pictures"', '"picturse"', 2, "picturse"),
    "no images left": ("take = 3", 'classes = ["cat"]', 2, "'classes'"),
    "no such list of boxes": ("take = 3", 'boxes = "boxes.csv"', 2, "boxes.csv"),
    "no such variable": ('"pictures"', '"$NOWHERE/pictures"', 2, "NOWHERE"),
    "unknown model": (ANY, '"zoo/resnte",', 4, "Did you mean"),
    "unknown model in a table": ('"tests.study.small:weighted"', '"zoo/resnte"', 5, "Did you mean"),
    "unknown module": (ANY, '"tests.study.none:any_of",', 4, "tests.study.none"),
    "no model of a pattern": (ANY, '"zoo/resnte*",', 4, "No model is called 'zoo/resnte*'"),
    "missing checkpoint": ('label = "sum"', 'checkpoint = "none.safetensors"', 5, "There is no checkpoint"),
    "broken checkpoint": (ANY, '{ name = "zoo/resnet", checkpoint = "study.toml" },', 4, "cannot be read"),
    "no file of a pattern": ('label = "sum"', 'seeds = "none-*.safetensors"', 5, "none-*.safetensors"),
    "two of one label": ('label = "sum"', 'label = "tests.study.small:any_of"', 5, "Two models are called"),
    "method that does not fit": ('"occlusion"', '"rollout"', 14, "maps (rollout) does not fit sum"),
    "one of several methods": (
        'method = "occlusion"\n',
        'methods = [\n"occlusion",\n"rollout",\n]\n',
        16,
        "[measure.maps], or write",
    ),
    "labels that images have not": (
        '"occlusion"\n',
        '"occlusion"\ntarget_class = "label"\n',
        15,
        "it asks about their labels, and 3 of 3 have none, such as 000.png",
    ),
    "labels that a protocol asks about": (
        'maps = "maps"\n',
        'maps = "maps"\nprotocol = "tis"\n',
        19,
        "3 of 3 have none",
    ),
    "boxes that images have not": (
        'maps = "maps"\n',
        'maps = "maps"\nmetrics = ["insertion", "pointing-game"]\n',
        19,
        "no image has any; write boxes=",
    ),
    "class that no model has": ('"occlusion"\n', '"occlusion"\ntarget = "zebra"\n', 15, "zebra"),
    "no model is measured": (
        'method = "occlusion"\nmodels = ["sum"]',
        'method = "occlusion"\nmodels = ["sim"]',
        15,
        "'models'",
    ),
    "maps of other models": (
        'maps = "maps"\nmodels = ["sum"]',
        'maps = "maps"\nmodels = ["*"]',
        18,
        "not made with tests.study.small",
    ),
    "contrast with nothing": ('of = "sum"', 'of = "sim"', 10, "Did you mean 'sum'?"),
}


@pytest.fixture
def folder(tmp_path):
    write_pictures(tmp_path / "pictures", 3)
    return tmp_path


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_wrong_is_said_with_the_line(folder, kind):
    old, new, line, what = WRONG[kind]
    assert GOOD.count(old) == 1
    file = folder / "study.toml"
    file.write_text(GOOD.replace(old, new))
    with pytest.raises(StudyError) as error:
        Study.open(file).run(folder / "run", device="cpu")
    said = str(error.value)
    assert said.startswith(f"{file}, line {line}: ")
    assert what in said
    assert said.count(", line ") == 1
    assert not (folder / "run").exists()


@pytest.mark.parametrize("kind", ["attribution", "sanity"])
@pytest.mark.parametrize(
    ("method", "layer", "said"),
    [
        ("grad-cam", "nope", "there is no layer 'nope'; without the option it reads 'layer4.0'"),
        ("grad-cam", "nope:input", "there is no layer 'nope:input'"),
        ("grad-cam", "conv1", "layer 'conv1' cannot be read as maps"),
        ("vit-cx", "block-output", "which has no transformer blocks"),
    ],
)
def test_layers_that_a_model_has_not_or_that_are_no_maps(folder, kind, method, layer, said):
    head = 'images = "pictures"\nmodels = "zoo/resnet"\n[measure.maps]\n'
    text = f'{head}kind = "{kind}"\nmethod = "{method}"\nlayer = "{layer}"\n'
    (folder / "study.toml").write_text(text)
    with pytest.raises(StudyError, match=rf"study\.toml, line 6: maps \([a-z-]+\) does not fit zoo/resnet: .*{said}"):
        Study.open(folder / "study.toml").run(folder / "run", device="cpu")
    assert not (folder / "run").exists()
    for good in ("layer3", "layer4:input"):
        (folder / "study.toml").write_text(text.replace(layer, good).replace("vit-cx", "grad-cam"))
        assert not make_plan(Study.open(folder / "study.toml").asked, "cpu").models[0].misfits


def test_a_checkpoint_of_another_model(folder):
    torch.save({"weight": torch.zeros(3)}, folder / "other.pt")
    text = GOOD.replace(ANY, '\n{ name = "zoo/resnet", seeds = "oth*.pt", label = "c" },')
    (folder / "study.toml").write_text(text)
    with pytest.raises(StudyError, match=r"study\.toml, line 5: The checkpoint .*other\.pt does not fit"):
        Study.open(folder / "study.toml").run(folder / "run", device="cpu")


def test_one_model_without_a_list(folder):
    head, _, tail = GOOD.partition("models = [\n")
    rest = tail.partition("]\n")[2].replace('models = ["sum"]\n', "")
    rest = rest.replace('[[contrasts]]\nof = "sum"\nagainst = "tests.study.small:any_of"\n', "")
    (folder / "study.toml").write_text(f'{head}{rest}[models]\nlabel = "a"\nname = "zoo/resnte"\n')
    with pytest.raises(StudyError, match="line 13: The zoo has no network"):
        Study.open(folder / "study.toml").run(folder / "run", device="cpu")


def test_a_device_is_no_mistake_of_the_file(folder):
    (folder / "study.toml").write_text(GOOD)
    with pytest.raises(ValueError, match=r"^device='tpu'"):
        Study.open(folder / "study.toml").run(folder / "run", device="tpu")


def test_json_has_keys_instead_of_lines_and_python_has_neither(folder):
    content = {
        "images": str(folder / "pictures"),
        "models": [{"name": "zoo/resnte"}],
        "measure": {"said": {"kind": "predictions"}},
    }
    (folder / "study.json").write_text(json.dumps(content))
    with pytest.raises(StudyError, match=r"study\.json, models\.0\.name: The zoo has no network"):
        Study.open(folder / "study.json").run(folder / "run", device="cpu")
    with pytest.raises(StudyError, match=r"^The zoo has no network 'resnte'"):
        make_plan(read_dict(content))
