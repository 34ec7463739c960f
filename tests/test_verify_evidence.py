"""The script that asks the plain model again whether saved evidence is true."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

import suffice
from benchmarks import verify_evidence
from tests.cli.command import run

timm = pytest.importorskip("timm")


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A model of random weights that is sure of itself, two pictures, and the evidence in them."""
    folder = tmp_path_factory.mktemp("evidence")
    random = np.random.default_rng(0)
    for name in ("a.png", "b.png"):
        coarse = random.integers(0, 256, (4, 5, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize((200, 170), Image.Resampling.BICUBIC).save(folder / name)
    torch.manual_seed(0)
    module = timm.create_model("test_vit")
    with torch.no_grad():
        module.head.weight.mul_(40)
    save_file(module.state_dict(), folder / "weights.safetensors")
    net = suffice.load("timm/test_vit", checkpoint=folder / "weights.safetensors", device="cpu")
    found = suffice.find_evidence(net, folder, grid=3, baseline="blur", minimal="subset", certify=None)
    return folder, net, found, found.save(folder / "evidence.parquet")


def verified(folder, file, capsys):
    """The exit status and the rows of the printed table."""
    arguments = [str(file), "--checkpoint", str(folder / "weights.safetensors"), "--images", str(folder)]
    status = verify_evidence.main([*arguments, "--device", "cpu"])
    cells = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()]
    return status, {row[0]: row[1] for row in cells if len(row) == 2}


def changed(folder, file, **columns):
    """A copy of the file in which the lists of the first image are others."""
    table = pq.read_table(file)
    for name, value in columns.items():
        place, column = table.schema.get_field_index(name), table.column(name)
        values = [value, *column.to_pylist()[1:]]
        table = table.set_column(place, table.schema.field(name), pa.array(values, column.type))
    pq.write_table(table, folder / "changed.parquet")
    return folder / "changed.parquet"


def test_what_the_search_says_is_confirmed(searched, capsys):
    folder, _, found, file = searched
    assert sum(len(e.mses) for e in found) >= 3  # so that there is something to confirm
    status, rows = verified(folder, file, capsys)
    assert status == 0
    assert rows["images"] == "2"
    assert rows["MSEs"] == str(sum(len(e.mses) for e in found))
    assert float(rows["largest difference of ratios"]) < 1e-4


def test_a_folder_of_the_command_is_read(searched, capsys):
    folder, _, found, _ = searched
    pictures = folder / "pictures"
    pictures.mkdir()
    for name in ("a.png", "b.png"):
        shutil.copy(folder / name, pictures / name)
    (pictures / "c.png").write_bytes(b"no picture")
    model = ("--model", "timm/test_vit", "--checkpoint", folder / "weights.safetensors", "--device", "cpu")
    out, search = folder / "out", ("--grid", 3, "--certify", "none", "--no-figures")
    run("evidence", pictures, *model, *search, "--out", out, code=1)
    run("study", "export", out)
    status, rows = verified(folder, out, capsys)
    assert (status, rows["images"]) == (0, "2")
    assert rows["MSEs"] == str(sum(len(e.mses) for e in found))
    run("evidence", pictures, "--model", "zoo/resnet", "--device", "cpu", *search, "--out", out, code=1)
    with pytest.raises(SystemExit, match="evidence of 2 models"):
        verified(folder, out, capsys)
    assert verified(folder, out / "tables/measurement=evidence/model=timm%2Ftest_vit", capsys)[0] == 0


def test_pictures_are_those_of_the_search(searched):
    folder, net, _, _ = searched
    model = verify_evidence.Model("timm/test_vit", folder / "weights.safetensors", "cpu")
    torch.testing.assert_close(model.pixels(folder / "a.png"), net.prepare(folder / "a.png")[0])


def test_a_set_too_small_and_a_set_too_large_are_found_out(searched, capsys):
    folder, _, found, file = searched
    mse = max(found[0].mses, key=len)
    larger = [*mse.cells, next(c for c in range(9) if c not in mse.cells)]
    lists = {"mse_ratios": [mse.ratio], "mse_certified": [True]}

    status, rows = verified(folder, changed(folder, file, mse_cells=[mse.cells[1:]], **lists), capsys)
    assert status == 1
    assert rows["MSEs that do not suffice"].startswith("1 ")

    status, rows = verified(folder, changed(folder, file, mse_cells=[larger], **lists), capsys)
    assert status == 1
    assert rows["certified MSEs with a proper subset that suffices"].startswith("1 ")


def test_a_set_in_another_is_found_out(searched, capsys):
    folder, _, found, file = searched
    mse = found[0].mses[0]
    twice = {"mse_cells": [mse.cells] * 2, "mse_ratios": [mse.ratio] * 2, "mse_certified": [mse.certified] * 2}
    status, rows = verified(folder, changed(folder, file, **twice), capsys)
    assert status == 1
    assert rows["MSEs that contain another"] == "2"


def test_no_evidence_needs_a_reason(searched, capsys):
    folder, _, _, file = searched
    nothing = {"mse_cells": [], "mse_ratios": [], "mse_certified": []}
    assert json.loads(pq.read_schema(file).metadata[b"suffice"])["settings"]["deletion_orders"]
    status, rows = verified(folder, changed(folder, file, **nothing, stopped="max_size"), capsys)
    assert status == 1
    assert rows["without evidence"] == "1, 1 max_size"
    for reason in ("no confidence", "whole fails", "max_questions"):
        status, _ = verified(folder, changed(folder, file, **nothing, stopped=reason), capsys)
        assert status == 0


@pytest.mark.parametrize("size", [(6, 6), (7, 10)])
def test_cells_cover_the_image_once(size):
    shown = verify_evidence.shown_pixels(torch.eye(9).bool().view(9, 3, 3), torch.Size(size), "hard")
    assert bool((shown.sum(dim=0) == 1).all())
