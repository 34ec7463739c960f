"""Images explained by several methods, for one class or several."""

import pytest
import torch

import suffice
from suffice import Attribution
from suffice.errors import OptionError, UnreadableImage
from suffice.report import explain_images

METHODS = ["gradient", "grad-cam"]


@pytest.fixture(scope="module")
def net():
    return suffice.load("zoo/resnet", device="cpu")


@pytest.fixture(scope="module")
def images():
    return suffice.open_images("scenes:test[:3]")


def test_the_predicted_class_without_being_asked(net, images):
    seen = []
    found = explain_images(net, images, METHODS, score=True, on_progress=lambda *done: seen.append(done))
    assert list(found.maps) == [""]
    assert found.maps[""]["gradient"].targets.tolist() == found.predictions.targets.tolist()
    assert found.scores[""]["grad-cam"]["insertion"].values.shape == (3,)
    assert seen[-1] == (3 * 2 * 2, 3 * 2 * 2)
    assert sorted(seen) == seen
    figure = found.figure(1, top=2)
    assert figure.count("insertion ") == 2
    assert found.figures == ()


def test_classes_of_each_image(net, images, tmp_path):
    found = explain_images(net, images, ["grad-cam"], ["@label", "@1", "@2", 3], out=tmp_path)
    assert found.maps["@label"]["grad-cam"].targets.tolist() == images.labels
    assert found.maps["3"]["grad-cam"].targets.tolist() == [3, 3, 3]
    first, second = found.maps["@1"]["grad-cam"], found.maps["@2"]["grad-cam"]
    assert (first.confidences >= second.confidences).all()
    assert (first.targets != second.targets).all()
    kept = Attribution.load(tmp_path / "grad-cam--2.safetensors")
    torch.testing.assert_close(kept.maps, second.maps)
    assert len(found.figures) == 3
    text = found.figures[0].read_text(encoding="utf-8")
    assert all(role in text for role in (", the label", ", likeliest", ", second"))


def test_options_go_to_their_method(net, images):
    found = explain_images(net, images[:1], ["rise", "gradient"], options={"rise": {"masks": 5}})
    assert found.maps[""]["rise"].settings["options"]["masks"] == 5


def test_images_that_cannot_be_read_are_skipped(net, tmp_path):
    from PIL import Image

    Image.new("RGB", (60, 60), "red").save(tmp_path / "red.png")
    (tmp_path / "broken.png").write_bytes(b"broken")
    found = explain_images(net, tmp_path, ["gradient"], on_error="skip")
    assert [skip.name.rpartition("/")[2] for skip in found.skipped] == ["broken.png"]
    assert len(found.images) == len(found.maps[""]["gradient"]) == 1
    (tmp_path / "red.png").unlink()
    with pytest.raises(UnreadableImage, match="None of the images could be read"):
        explain_images(net, tmp_path, ["gradient"], on_error="skip")


@pytest.mark.parametrize("target", ["@best", "@0", "@17"])
def test_a_target_that_is_not_there(net, images, target):
    with pytest.raises(OptionError, match="expected @label, or @1 to @16"):
        explain_images(net, images, ["gradient"], [target])


def test_labels_that_are_not_there(net):
    with pytest.raises(OptionError, match="2 of 2 images have no label"):
        explain_images(net, torch.rand(2, 3, 56, 56), ["gradient"], ["@label"])


@pytest.mark.parametrize(("format", "begins"), [("png", b"\x89PNG"), ("pdf", b"%PDF-"), ("svg", b"<svg")])
def test_figures_in_every_format(net, images, tmp_path, format, begins):
    found = explain_images(net, images[:1], ["gradient"], out=tmp_path, format=format)
    assert [file.suffix for file in found.figures] == [f".{format}"]
    assert found.figures[0].read_bytes().startswith(begins)


def test_a_format_that_cannot_be_is_said_before_any_work(net, images, tmp_path):
    with pytest.raises(OptionError, match="format='gif'"):
        explain_images(net, images, ["gradient"], out=tmp_path / "new", format="gif")
    assert not (tmp_path / "new").exists()
