"""Figures that are made of models and images, without a study."""

import re

import pyarrow.parquet as pq
import pytest

import suffice
from suffice.attribution import attribute
from suffice.errors import OptionError
from suffice.metrics.sanity import data_randomization
from suffice.report.figures import find_figure, list_figures

IMAGES = "scenes:test[:2]"


@pytest.fixture(scope="module")
def nets():
    return [suffice.load(name, device="cpu") for name in ("zoo/resnet", "zoo/deit")]


@pytest.mark.parametrize("name", [n for n in list_figures() if find_figure(n).of_model])
def test_figure_is_drawn(name, nets):
    small = {"count": 2} if "count" in find_figure(name).options else {}
    made = find_figure(name).drawings(nets[1:], IMAGES, **small)
    assert made
    for drawing in made:
        assert re.search(r"\d", drawing.alt)
        assert drawing.to_svg().startswith("<svg")


def test_masks_of_transformers_are_more_alike(nets):
    _, over_images = find_figure("mask-similarity").drawings(nets, IMAGES, count=2)
    means = {row["model"]: row["mean"] for row in over_images.table.to_pylist()}
    assert means["zoo/deit"] > means["zoo/resnet"]


def test_impacts_weigh_the_masks_of_the_map(nets):
    """The sum of all masks by their weights over their coverage is the map of the method itself."""
    from suffice.attribution.channels import TokenMasks
    from suffice.attribution.methods.vit_cx import impacts
    from suffice.report.figures.masks import batch_of, masks_of

    net = nets[1]
    batch = batch_of(net, IMAGES, 1)
    masks, image, first = masks_of(batch)
    made = TokenMasks(masks.to(batch.inputs.dtype))
    (drawing,) = find_figure("vit-cx-impacts").drawings([net], IMAGES)
    weights = impacts(batch, made, image, first)
    assert drawing.table["debiased"].to_pylist() == pytest.approx(weights.tolist(), abs=1e-5)
    total, shown = made.sums(weights, image, 1, net.size)
    own = attribute(net, suffice.open_images(IMAGES)[:1], "vit-cx").maps
    assert (total / (shown / len(masks))).flatten().tolist() == pytest.approx(own.flatten().tolist(), rel=1e-3)


def test_data_randomization_is_a_box_plot_of_what_the_command_wrote(nets, tmp_path):
    other = suffice.load("zoo/resnet-aug", device="cpu")
    found = data_randomization(nets[0], other, "scenes:test[:3]", ["grad-cam", "gradient"])
    found.write(tmp_path)
    (drawing,) = find_figure("data-randomization").drawings(tmp_path)
    written = pq.read_table(tmp_path / "sanity.parquet").to_pylist()
    last = [row["spearman"] for row in written if row["step"] == 1]
    assert sorted(drawing.table["similarity"].to_pylist()) == pytest.approx(sorted(last))
    assert "<svg" in drawing.to_svg()
    with pytest.raises(OptionError, match="--check data"):
        find_figure("data-randomization").drawings(tmp_path / "nowhere")


def test_what_was_inserted_is_what_the_model_says_of_it(nets):
    sheet, inserted, removed = find_figure("insertion-steps").drawings(nets, IMAGES)
    assert {row["model"] for row in sheet.table.to_pylist()} == {"zoo/resnet", "zoo/deit"}
    assert inserted.table.num_rows == removed.table.num_rows == 12
