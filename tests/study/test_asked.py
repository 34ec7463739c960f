"""Files of studies: what they mean, and what is said about wrong ones."""

import json

import pytest

from suffice.errors import StudyError
from suffice.study.asked import read_dict, read_file

GOOD = """\
name = "small"
images = "scenes:test[:4]"
models = ["zoo/resnet", { name = "zoo/deit", label = "deit" }]
[run]
precision = "fp32"
[measure.scores]
kind = "metrics"
maps = "maps"
metrics = ["insertion"]
steps = 8
[measure.maps]
kind = "attribution"
method = "grad-cam"
[measure.evidence]
kind = "evidence"
preset = "cvpr2024"
grid = 4
"""


def written(folder, text, name="study.toml"):
    file = folder / name
    file.write_text(text)
    return file


def test_a_file_says_what_is_asked(tmp_path):
    asked, text = read_file(written(tmp_path, GOOD))
    assert text == GOOD
    assert asked.name == "small"
    assert asked.images.source == "scenes:test[:4]"
    assert [model.label for model in asked.models] == [None, "deit"]
    assert asked.base == tmp_path
    assert list(asked.measurements) == ["maps", "evidence", "scores"]  # maps before what reads them
    assert asked.measurements["evidence"].settings.grid == 4
    assert asked.measurements["evidence"].settings.candidates == 10
    assert asked.measurements["scores"].options == {"steps": 8}


@pytest.mark.parametrize("text", [GOOD, GOOD.replace('method = "grad-cam"', 'methods = ["tis", "cgw*"]')])
def test_json_and_python_say_the_same(tmp_path, text):
    asked, _ = read_file(written(tmp_path, text))
    plain = asked.to_dict()
    again, _ = read_file(written(tmp_path, json.dumps(plain), "study.json"))
    assert again.to_dict() == plain
    assert read_dict(plain).to_dict() == plain


def several(methods):
    return GOOD.replace('method = "grad-cam"', f"methods = [{methods}]")


def test_a_list_of_methods_is_a_measurement_each(tmp_path):
    asked, _ = read_file(written(tmp_path, several('"rise", { name = "rise", label = "few", masks = 9 }, "cgw*"')))
    names = ["rise", "few", "cgw1", "cgw2"]
    assert list(asked.measure) == [*(f"scores/{n}" for n in names), *(f"maps/{n}" for n in names), "evidence"]
    assert asked.tables == ["scores", "maps", "evidence"]
    assert asked.named("maps") == [f"maps/{n}" for n in names]
    assert asked.named("maps/few") == ["maps/few"]
    assert asked.measurements["maps/few"].method == "rise"
    assert asked.measurements["maps/few"].options == {"masks": 9}
    assert asked.measurements["scores/few"].reads == ("maps/few",)
    assert asked.measurements["scores/few"].facts == asked.measurements["maps/few"].facts == {"method": "few"}
    with pytest.raises(StudyError, match="Did you mean 'scores'"):
        asked.named("socres")


def test_a_pattern_stands_for_the_methods_that_are_not_named(tmp_path):
    asked, _ = read_file(written(tmp_path, several('"cgw*", { name = "cgw2", label = "gae" }')))
    assert asked.named("maps") == ["maps/cgw1", "maps/gae"]


def test_scores_are_for_the_models_that_have_the_maps(tmp_path):
    text = several('"rise", { name = "tis", models = ["deit"] }')
    asked, _ = read_file(written(tmp_path, text))
    assert asked.measure["scores/tis"]["models"] == asked.measure["maps/tis"]["models"] == ["deit"]
    assert "models" not in asked.measure["scores/rise"]
    own, _ = read_file(written(tmp_path, text.replace("steps = 8", 'models = ["d*"]')))
    assert own.measure["scores/tis"]["models"] == own.measure["scores/rise"]["models"] == ["d*"]


def test_scores_of_some_maps(tmp_path):
    text = several('"rise", "tis"').replace('maps = "maps"', 'maps = ["maps/tis", "more"]')
    text += '[measure.more]\nkind = "attribution"\nmethod = "gradient"\n'
    asked, _ = read_file(written(tmp_path, text))
    assert asked.named("scores") == ["scores/tis", "scores/more"]
    assert asked.measurements["scores/more"].reads == ("more",)


WRONG = {
    "not TOML": ("name = ", "", "Invalid value"),
    "unknown key": (GOOD.replace('name = "s', 'nmae = "s'), "line 1", "Did you mean 'name'"),
    "name of another type": (GOOD.replace('"small"', "3"), "line 1", "expected a text"),
    "no images": (GOOD.replace("images", "#"), "", "there is no 'images'"),
    "no models": (GOOD.replace("models = ", "#"), "", "there is no 'models'"),
    "no measurements": (GOOD.split("[measure")[0], "", "there is no 'measure'"),
    "unknown key of images": (GOOD.replace('"scenes:test[:4]"', '{ source = "a", tkae = 3 }'), "line 2", "'take'"),
    "wrong number of images": (GOOD.replace('"scenes:test[:4]"', '{ source = "a", take = 0 }'), "line 2", "take=0"),
    "images without source": (GOOD.replace('"scenes:test[:4]"', "{ take = 3 }"), "line 2", "there is no 'source'"),
    "models of another type": (GOOD.replace('["zoo/resnet", {', "3 # {"), "line 3", "expected one or more models"),
    "no model in the list": (GOOD.replace('"zoo/resnet", { name = "zoo/deit", label = "deit" }', ""), "line 3", "one"),
    "model without name": (GOOD.replace('name = "zoo/deit", ', ""), "line 3", "there is no 'name'"),
    "unknown key of a model": (GOOD.replace("label =", "lable ="), "line 3", "Did you mean 'label'?"),
    "checkpoint and seeds": (GOOD.replace('label = "deit"', 'seeds = "a*", checkpoint = "a"'), "line 3", "seeds is"),
    "unknown key of run": (GOOD.replace("precision", "precison"), "line 5", "Did you mean 'precision'?"),
    "unknown precision": (GOOD.replace("fp32", "fp8"), "line 5", "'fp32', 'tf32'"),
    "seed of another type": (GOOD.replace('precision = "fp32"', "seed = 1.5"), "line 5", "a whole number"),
    "unknown kind": (GOOD.replace('"attribution"', '"atribution"'), "line 12", "Did you mean 'attribution'"),
    "no kind": (GOOD.replace('kind = "attribution"\n', ""), "line 11", "there is no kind"),
    "measurement that is no table": (GOOD.split("[measure")[0] + "[measure]\nmaps = 3\n", "line 7", "expected a table"),
    "name with a blank": (GOOD.replace("[measure.evidence]", '[measure."a b"]'), "line 14", "letters, digits"),
    "name with two slashes": (GOOD.replace("[measure.evidence]", '[measure."a/b/c"]'), "line 14", "letters, digits"),
    "method and methods": (GOOD.replace('"grad-cam"', '"grad-cam"\nmethods = ["rise"]'), "line 13", "one of them"),
    "methods that are no list": (GOOD.replace('method = "grad-cam"', "methods = 3"), "line 13", "a list of names"),
    "unknown one of methods": (several('"rise", "tsi"'), "line 13", "There is no method 'tsi'"),
    "unknown option of one of methods": (several('{ name = "rise", maks = 3 }'), "line 13", "maks"),
    "method without name": (several("{ masks = 3 }"), "line 13", "with a 'name'"),
    "two methods of one label": (several('"rise", { name = "rise", masks = 3 }'), "line 13", "There are two 'rise'"),
    "label of a method with a blank": (several('{ name = "rise", label = "a b" }'), "line 13", "letters, digits"),
    "methods of no such pattern": (several('"rsie*"'), "line 13", "is called 'rsie*'"),
    "unknown one of several maps": (GOOD.replace('maps = "maps"', 'maps = ["maps", "mpas"]'), "line 8", "'mpas'"),
    "class of maps": (GOOD.replace('"grad-cam"', '"grad-cam"\ntarget_class = "first"'), "line 14", "target_class"),
    "class of scores": (GOOD.replace("steps = 8", 'target_class = "first"'), "line 10", "target_class"),
    "unknown method": (GOOD.replace("grad-cam", "gard-cam"), "line 13", "Did you mean 'grad-cam'"),
    "no method": (GOOD.replace('method = "grad-cam"\n', ""), "line 11", "needs 'method'"),
    "unknown option of a method": (GOOD.replace('"grad-cam"\n', '"grad-cam"\nlayr = 3\n'), "line 14", "layr"),
    "unknown metric": (GOOD.replace('"insertion"', '"insertoin"'), "line", "Did you mean 'insertion'?"),
    "unknown protocol": (GOOD.replace("steps = 8", 'protocol = "reis"'), "line 10", "reis"),
    "unknown option of a metric": (GOOD.replace("steps = 8", "stpes = 8"), "line 10", "stpes"),
    "metrics without maps": (GOOD.replace('maps = "maps"\n', ""), "line 6", "needs 'maps'"),
    "maps of nothing": (GOOD.replace('maps = "maps"', 'maps = "mpas"'), "line 8", "Did you mean 'maps'?"),
    "maps of what makes none": (GOOD.replace('maps = "maps"', 'maps = "evidence"'), "line 8", "makes no maps"),
    "unknown preset": (GOOD.replace("cvpr2024", "cvpr2025"), "line 16", "There is no preset"),
    "unknown setting of a search": (GOOD.replace("grid = 4", "girds = 4"), "line 17", "girds"),
    "unknown key of a search": (GOOD.replace("preset =", "prseet ="), "line 16", "Did you mean 'preset'"),
    "what a search can have": (
        GOOD.replace("grid = 4", "xyz = 4"),
        "line 17",
        "There are preset, target_class, target,",
    ),
    "impossible setting of a search": (GOOD.replace("grid = 4", "grid = 0"), "line 17", "grid=0"),
    "a name that is taken": (GOOD.replace("measure.evidence", "measure.models"), "line 14", "every study has"),
    "contrasts that are no list": (f"contrasts = 3\n{GOOD}", "line 1", "expected a list"),
    "contrast of one": (f'contrasts = [{{ of = "deit" }}]\n{GOOD}', "line 1", "there is no 'against'"),
    "contrast with itself": (f'contrasts = [{{ of = "deit", against = "deit" }}]\n{GOOD}', "line 1", "with itself"),
    "unknown key of a contrast": (f'contrasts = [{{ of = "deit", agianst = "a" }}]\n{GOOD}', "line 1", "'against'"),
    "models of a measurement": (GOOD.replace("grid = 4", "models = 3"), "line 17", "a list of names"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_file_is_one_line_that_says_what_and_where(tmp_path, kind):
    text, where, what = WRONG[kind]
    file = written(tmp_path, text)
    with pytest.raises(StudyError) as error:
        read_file(file)
    said = str(error.value)
    assert said.startswith(str(file))
    assert where in said
    assert what in said
    assert "\n" not in said


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(StudyError, match="cannot be read"):
        read_file(tmp_path / "none.toml")
