"""Scores of one metric and of several: reading them, writing them down, showing them."""

import builtins
import json
import math
import webbrowser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from suffice.errors import MissingExtra, OptionError
from suffice.metrics import Outcome, Scores, forget_metric, measure, metric
from suffice.vision.stream import Skip
from tests.attribution.nets import pictures
from tests.metrics.nets import brightness, sharp_cnn

NAMES = ("insertion", "ins-del", "pointing-game")
COLUMNS = [
    "insertion", "insertion/gray", "insertion/noise",
    "ins-del", "ins-del/insertion", "ins-del/insertion/gray", "ins-del/insertion/noise",
    "ins-del/deletion", "ins-del/deletion/gray", "ins-del/deletion/noise",
    "pointing-game",
]  # fmt: skip


@pytest.fixture(scope="module")
def scores():
    images, boxes = pictures(4), [[(0, 0, 20, 20)], None, [(8, 8, 30, 30)], [(0, 0, 31, 31)]]
    return measure(
        sharp_cnn(), images, brightness(images), NAMES, baseline=["gray", "noise"], steps=4, boxes=boxes
    )  # fmt: skip


@pytest.fixture
def opened(monkeypatch):
    """What a browser was asked to open."""
    asked = []
    monkeypatch.setattr(webbrowser, "open", lambda address: asked.append(address) or True)
    yield asked
    for address in asked:
        Path(address.removeprefix("file://")).unlink(missing_ok=True)


def all_tensors(outcome):
    yield outcome.values
    if outcome.curves is not None:
        yield from (getattr(outcome.curves, name) for name in ("x", "y", "whole", "hidden", "weights"))
    for part in outcome.parts.values():
        yield from all_tensors(part)


def assert_same(one, other):
    assert one.metrics == other.metrics
    for name in one.metrics:
        tensors = [list(all_tensors(scores.outcomes[name])) for scores in (one, other)]
        for a, b in zip(*tensors, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)
        assert one.outcomes[name].combination == other.outcomes[name].combination


def test_a_metric_is_chosen_by_name(scores):
    assert scores.metrics == NAMES
    assert len(scores) == 4
    one = scores["insertion"]
    assert isinstance(one, Scores)
    assert one.metric == "insertion"
    assert one.higher_is_better is True
    assert one.values.shape == one.judged.shape == (4,)
    assert one.mean == pytest.approx(float(one.values.mean()))
    assert one.standard_error == pytest.approx(float(one.values.std() / 2))
    assert one.protocol["metric"] == "insertion"
    assert one.names == scores.names
    assert torch.equal(one.targets, scores.targets)


def test_a_part_is_chosen_by_name(scores):
    gray, noise = (scores[f"insertion/{name}"] for name in ("gray", "noise"))
    torch.testing.assert_close(scores["insertion"].values, (gray.values + noise.values) / 2)
    deletion = scores["ins-del/deletion/gray"]
    assert deletion.higher_is_better is False
    assert deletion.protocol == scores["ins-del"].protocol
    assert deletion.curves.y.shape == (4, 5)
    # What was chosen once can be chosen again, and further.
    torch.testing.assert_close(gray["insertion/gray"].values, gray.values)
    torch.testing.assert_close(scores["ins-del/deletion"]["ins-del/deletion/gray"].values, deletion.values)


def test_a_baseline_that_is_a_file_is_a_part_like_others(tmp_path):
    from PIL import Image

    file = tmp_path / "gray.png"
    Image.new("RGB", (32, 32), (128, 128, 128)).save(file)
    images = pictures(2)
    found = measure(sharp_cnn(), images, brightness(images), steps=3, baseline=[str(file), "black"])
    part = found[f"insertion/{file}"]
    torch.testing.assert_close((part.values + found["insertion/black"].values) / 2, found.values)
    assert_same(Scores.load(found.save(tmp_path / "scores.safetensors")), found)


def test_some_images(scores):
    for rows, kept in (
        (1, [1]), (-1, [3]), (slice(1, 3), [1, 2]), (slice(None, None, -1), [3, 2, 1, 0]), ([3, 0], [3, 0]),
        ([True, False, False, True], [0, 3]), (torch.tensor([2]), [2]), (np.int64(2), [2]), ([], []),
    ):  # fmt: skip
        some = scores[rows]
        assert isinstance(some, Scores)
        assert len(some) == len(kept)
        assert list(some.names) == [scores.names[i] for i in kept]
        assert list(some.ids) == [scores.ids[i] for i in kept]
        assert some.targets.tolist() == scores.targets[kept].tolist()
        for column in COLUMNS:
            torch.testing.assert_close(some[column].values, scores[column].values[kept], equal_nan=True)
        torch.testing.assert_close(some["insertion/gray"].curves.y, scores["insertion/gray"].curves.y[kept])
    assert [one.names[0] for one in scores] == list(scores.names)
    with pytest.raises(IndexError, match="There are 4 results, 0 to 3; there is no 4"):
        scores[4]


def test_errors_say_what_to_write(scores):
    for name in ("values", "curves", "parts", "mean", "standard_error", "judged", "reported", "protocol"):
        with pytest.raises(OptionError, match=r"of insertion, ins-del, pointing-game; choose one, .*\['insertion'\]"):
            getattr(scores, name)
    with pytest.raises(OptionError, match="no scores of 'deletion'; there are insertion, ins-del, pointing-game"):
        scores["deletion"]
    with pytest.raises(OptionError, match=r"no 'insertion/blur': the parts of insertion .* are gray, noise"):
        scores["insertion/blur"]
    with pytest.raises(OptionError, match=r"no 'pointing-game/gray': the parts of pointing-game .* are none"):
        scores["pointing-game/gray"]
    with pytest.raises(OptionError, match="the parts of ins-del/deletion under this protocol are gray, noise"):
        scores["ins-del/deletion/blur"]
    with pytest.raises(OptionError, match=r"pointing-game has none. Measure it on its own"):
        scores.normalized()


def test_saved_and_loaded(scores, tmp_path):
    kept = Scores(scores.outcomes, scores.protocols, scores.targets, scores.names, scores.ids, [Skip(4, "x", "torn")])
    file = kept.save(tmp_path / "out" / "scores.safetensors")
    again = Scores.load(file)
    assert_same(again, scores)
    assert torch.equal(again.targets, scores.targets)
    assert (list(again.names), list(again.ids)) == (list(scores.names), list(scores.ids))
    assert again.skipped == [Skip(4, "x", "torn")]
    assert again.protocols == json.loads(json.dumps(scores.protocols))
    assert again.metrics == NAMES  # in their order
    assert again["insertion"].reported == pytest.approx(scores["insertion"].reported)
    assert list(again["ins-del"].parts["deletion"].parts) == ["gray", "noise"]
    normalized = again["ins-del"].normalized("image")
    torch.testing.assert_close(normalized.values, scores["ins-del"].normalized("image").values)


def test_parts_and_scores_without_curves_or_targets_are_saved_too(scores, tmp_path):
    part = scores["insertion/gray"]
    assert_same(Scores.load(part.save(tmp_path / "part.safetensors")), part)
    images = pictures(2)
    alone = measure(sharp_cnn(), images, brightness(images), "sparseness")
    again = Scores.load(alone.save(tmp_path / "alone.safetensors"))
    assert_same(again, alone)
    assert again.targets is None
    assert again.curves is None


def test_what_cannot_be_loaded_is_said(tmp_path):
    with pytest.raises(OptionError, match="There are no scores at"):
        Scores.load(tmp_path / "nothing.safetensors")
    save_file({"weight": torch.zeros(2)}, tmp_path / "model.safetensors")
    with pytest.raises(OptionError, match="holds no scores"):
        Scores.load(tmp_path / "model.safetensors")


def test_as_a_table(scores):
    table = scores.to_arrow()
    assert table.column_names == ["image", "image_id", "index", "target", *COLUMNS]
    assert table.column("image").to_pylist() == list(scores.names)
    assert table.column("image_id").to_pylist() == list(scores.ids)
    assert table.column("index").to_pylist() == [0, 1, 2, 3]
    assert table.column("target").to_pylist() == scores.targets.tolist()
    for column in COLUMNS:
        wanted = scores[column].values.tolist()
        assert table.column(column).to_pylist() == pytest.approx(wanted, nan_ok=True)
    said = json.loads(table.schema.metadata[b"protocols"])
    assert said["insertion"]["baseline"] == ["gray", "noise"]
    images = pictures(1)
    alone = measure(sharp_cnn(), images, brightness(images), "sparseness").to_arrow()
    assert alone.column("target").to_pylist() == [None]


def test_as_a_data_frame(scores, monkeypatch):
    pytest.importorskip("pandas")
    frame = scores.to_pandas()
    assert list(frame.columns) == scores.to_arrow().column_names
    assert frame["insertion"].mean() == pytest.approx(scores["insertion"].mean)
    assert frame["pointing-game"].isna().tolist() == [False, True, False, False]
    whole = builtins.__import__

    def without_pandas(name, *args):
        if name == "pandas":
            raise ImportError(name)
        return whole(name, *args)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(MissingExtra, match="pip install pandas"):
        scores.to_pandas()


def test_in_a_notebook(scores):
    page = scores._repr_html_()
    tree = ElementTree.fromstring(f"<div>{page}</div>")
    rows = [[cell.text for cell in row] for row in tree.iter("tr")]
    assert rows[0] == ["metric", "mean ± standard error", "images"]
    one = scores["insertion"]
    assert rows[1] == ["insertion ↑", f"{one.mean:.4f} ± {one.standard_error:.4f}", "4"]
    assert rows[3][0::2] == ["pointing-game ↑", "3"]  # one image has no box
    assert tree.find("p/code").text == "default"
    assert "ins-del/deletion ↓" in scores["ins-del/deletion"]._repr_html_()


def test_scores_of_a_metric_that_is_not_known_here():
    @metric("a<b", higher_is_better=True, bounds=(0, 1), needs=("maps",), reference="nowhere")
    def function(given):
        """The highest value."""
        return Outcome(given.maps.flatten(1).amax(dim=1))

    images = pictures(2)
    found = measure(sharp_cnn(), images, brightness(images) / 40, "a<b")
    forget_metric("a<b")
    assert "<td>a&lt;b</td>" in found._repr_html_()
    assert repr(found).startswith("Scores('a<b', protocol='default', mean=")
    with pytest.raises(OptionError, match="There is no metric 'a<b'"):
        found.higher_is_better  # noqa: B018


def test_repr_names_every_metric(scores):
    text = repr(scores)
    assert text.endswith(", n=4)")
    for name in NAMES:
        assert f"{name!r}, protocol='default', mean={scores[name].mean:.4f}" in text


def test_curves_are_shown(scores, opened):
    scores["insertion"].show()
    assert len(opened) == 1
    assert opened[0].endswith(".svg")
    drawing = ElementTree.parse(opened[0].removeprefix("file://")).getroot()
    assert drawing.tag.endswith("svg")
    words = [part.text for part in drawing.iter() if part.tag.endswith("text")]
    assert {"insertion", "score of the class", "share of the pixels or cells that were moved"} <= set(words)


def test_curves_are_saved_as_pictures_by_the_ending(scores, tmp_path):
    assert scores.save(tmp_path / "curves.svg").read_text(encoding="utf-8") == scores.to_svg()
    assert scores.save(tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert scores.save(tmp_path / "curves.pdf").read_bytes().startswith(b"%PDF-")
    with pytest.raises(OptionError, match="pointing-game has no curves to draw"):
        scores["pointing-game"].save(tmp_path / "none.svg")


def test_curves_are_drawn_on_axes_of_matplotlib(scores):
    figures = pytest.importorskip("matplotlib.figure")
    axes = figures.Figure().subplots()
    scores.show(ax=axes)
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert f"insertion  {scores['insertion'].mean:.3f}" in labels
    assert axes.get_xlabel() == "share of the pixels or cells that were moved"
    drawn = next(line for line in axes.get_lines() if line.get_label() == labels[0])
    assert drawn.get_ydata() == pytest.approx(scores["insertion"].curves.mean.numpy(), abs=1e-6)


def test_a_difference_is_shown_as_its_two_curves(scores, opened):
    scores["ins-del"].normalized("image").show()
    words = Path(opened[0].removeprefix("file://")).read_text(encoding="utf-8")
    assert "ins-del/insertion" in words
    assert "ins-del/deletion" in words
    assert "score of the class, normalized" in words


def test_numbers_are_shown_where_there_are_no_curves(scores, opened):
    scores["pointing-game"].show()
    assert opened[0].endswith(".html")
    assert "pointing-game" in Path(opened[0].removeprefix("file://")).read_text(encoding="utf-8")


def test_what_is_reported_is_the_mean_or_the_area_under_the_median_curve():
    images = pictures(2)
    found = measure(sharp_cnn(), images, brightness(images), ["sic", "insertion"], steps=3, shares=(0.5,))
    assert found["insertion"].reported == found["insertion"].mean
    assert math.isnan(found["sic"].reported) == (not found["sic"].judged.any())
