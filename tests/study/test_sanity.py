"""Sanity checks as measurements of studies: what they ask, of whom, and in which precision."""

import json

import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

from suffice import load, open_images
from suffice.errors import StudyError
from suffice.metrics import data_randomization, sanity_check
from suffice.metrics.sanity.randomize import layers_of
from suffice.report.figures import find_figure
from suffice.report.page.sane import sanity_findings, sanity_rows, sanity_table
from suffice.study import Study

IMAGES = "scenes:test[:3]"
GRADIENT = {"kind": "sanity", "method": "gradient"}


def study(measure, model="zoo/resnet", **run):
    return Study("sanity", IMAGES, model, {"sane": measure}, run)


@pytest.fixture
def net():
    return load("zoo/resnet", device="cpu")


@pytest.fixture
def other(tmp_path):
    """Weights for the same network that are not those it was trained to."""
    torch.manual_seed(0)
    weights = load("zoo/resnet", device="cpu").module.state_dict()
    shuffled = {k: v.flatten()[torch.randperm(v.numel())].view(v.shape) for k, v in weights.items()}
    save_file(shuffled, tmp_path / "other.safetensors")
    return tmp_path / "other.safetensors"


def similarities(rows, report):
    """Of a study's table and a report, in the same order: draws, steps, images."""
    found = [row["spearman"] for row in sorted(rows, key=lambda row: (row["draw"], row["step"], row["index"]))]
    return found, report.rows[0].values["spearman"].flatten().tolist()


@pytest.mark.parametrize("options", [{}, {"reduction": "sum", "draws": 2, "how": "permute"}, {"check": "independent"}])
def test_the_same_as_the_function(tmp_path, net, options):
    made = study({**GRADIENT, **options}).run(tmp_path / "run", device="cpu")
    own = {"reduction": options["reduction"]} if "reduction" in options else {}
    further = {name: value for name, value in options.items() if name != "reduction"}
    report = sanity_check(net, open_images(IMAGES), "gradient", options={"gradient": own}, **further)
    found, expected = similarities(made.table("sane").to_pylist(), report)
    assert found == pytest.approx(expected, abs=1e-4)
    assert len(found) == 3 * report.draws * (1 + len(layers_of(net.module)))


def test_labels_name_methods_with_other_options(tmp_path):
    made = study({**GRADIENT, "reduction": "sum", "label": "signed gradient"}).run(tmp_path / "run", device="cpu")
    assert set(made.table("sane")["method"].to_pylist()) == {"signed gradient"}


def test_the_precision_is_that_of_the_study(tmp_path):
    runs = {p: study(GRADIENT, precision=p).run(tmp_path / p, device="cpu") for p in ("fp32", "bf16")}
    exact, rounded = ([row["spearman"] for row in run.table("sane").to_pylist()] for run in runs.values())
    assert exact != rounded
    assert exact == pytest.approx(rounded, abs=0.2)
    for precision in runs:
        (file,) = (tmp_path / precision / "tables").rglob("*.parquet")
        assert json.loads(pq.read_schema(file).metadata[b"suffice"])["precision"] == precision


@pytest.mark.parametrize("options", [{}, {"draws": 2}, {"check": "data"}])
def test_what_is_asked_of_models_is_counted_and_foreseen(tmp_path, net, other, options):
    permuted = {"permuted": str(other)} if "check" in options else {}
    made = study({**GRADIENT, **options, **permuted}).run(tmp_path / "run", device="cpu")
    (finished,) = [event for event in made.store.events() if event["event"] == "finished"]
    assert finished["forwards"] == 3 * made.plan.measurements["sane"].questions(net)


def test_data_randomization_compares_with_other_weights(tmp_path, net, other):
    measure = {**GRADIENT, "check": "data", "permuted": str(other)}
    made = study(measure).run(tmp_path / "run", device="cpu")
    second = load("zoo/resnet", checkpoint=other, device="cpu")
    report = data_randomization(net, second, open_images(IMAGES), "gradient")
    rows = made.table("sane").to_pylist()
    assert {row["layer"] for row in rows} == {"trained", "permuted labels"}
    found, expected = similarities(rows, report)
    assert found == pytest.approx(expected, abs=1e-4)


def test_a_report_says_what_became_of_labels(tmp_path, other):
    made = study({**GRADIENT, "check": "data", "permuted": str(other)}).run(tmp_path / "run", device="cpu")
    checked, missing = sanity_rows(made, "sane")
    assert missing == []
    table = sanity_table(made, checked)
    assert table.title == "How similar maps are to those of the same network trained on permuted labels"
    assert [column.title for column in table.columns][:3] == ["Model", "Method", "Spearman"]
    assert all(len(row) == len(table.columns) for row in table.rows)
    (said,) = [finding.text for finding in sanity_findings(checked)[0]] or sanity_findings(checked)[1]
    assert "the labels of zoo/resnet" in said
    (drawing,) = find_figure("sanity").drawings(made)
    last = [row["spearman"] for row in made.table("sane").to_pylist() if row["step"] == 1]
    assert sorted(drawing.table["similarity"].to_pylist()) == pytest.approx(sorted(last))
    assert "<svg" in drawing.to_svg()


def test_weights_of_another_network_do_not_fit(tmp_path, other):
    with pytest.raises(StudyError, match="sane") as said:
        study({**GRADIENT, "check": "data", "permuted": str(other)}, "zoo/vgg").run(tmp_path / "run", device="cpu")
    assert "\n" not in str(said.value)


def test_an_explainer_that_is_not_there_is_said_first(tmp_path, other):
    measure = {"kind": "sanity", "method": "eea", "check": "data", "permuted": str(other)}
    lacking = {"permuted_options": {"explainer": str(tmp_path / "none.safetensors")}}
    with pytest.raises(StudyError, match=r"there is no explainer .*none"):
        study(measure | lacking).run(tmp_path / "run", device="cpu")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"check": "data"}, "needs 'permuted'"),
        ({"permuted": "weights.safetensors"}, "no other check takes it"),
        ({"check": "data", "permuted": "a.safetensors", "draws": 2}, "neither 'draws' nor 'how'"),
        ({"permuted_options": {"reduction": "sum"}}, "are for check"),
        ({"reductoin": "sum"}, "reduction"),
        ({"method": 3}, "the name of one"),
    ],
)
def test_what_does_not_go_together_is_said_first(tmp_path, options, said):
    with pytest.raises(StudyError, match=said):
        study({**GRADIENT, **options}).run(tmp_path / "run", device="cpu")


def test_other_weights_are_noticed(tmp_path, other):
    made = study({**GRADIENT, "check": "data", "permuted": str(other)})
    made.run(tmp_path / "run", device="cpu")
    weights = load("zoo/resnet-aug", device="cpu").module.state_dict()
    save_file({k: v.contiguous() for k, v in weights.items()}, other)
    with pytest.raises(StudyError, match=r"the file .*other\.safetensors is another"):
        made.run(tmp_path / "run", device="cpu")
