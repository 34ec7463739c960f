import io

import numpy as np
import pytest
import torch
from PIL import Image

from suffice.errors import ImageError, OptionError
from suffice.zoo.training import open_data, sources
from suffice.zoo.training.sources import data_of_renderer, npz_images

COLORS = {"blue": (20, 30, 220), "red": (220, 30, 20)}


@pytest.fixture
def folder(tmp_path):
    """Two classes with ten images each, wider than high."""
    for name, color in COLORS.items():
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(10):
            Image.new("RGB", (24, 16), color).save(tmp_path / "photos" / name / f"{i}.png")
    return tmp_path / "photos"


def write_npz(path, labels, names=("blue", "red"), **changes):
    """A file as Tiny-ImageNet has it here: JPEGs after each other."""
    files = []
    for label in labels:
        file = io.BytesIO()
        Image.new("RGB", (16, 16), COLORS[("blue", "red")[label]]).save(file, "JPEG", quality=95)
        files.append(file.getvalue())
    content = {
        "jpeg": np.frombuffer(b"".join(files), np.uint8),
        "offset": np.cumsum([0] + [len(f) for f in files]),
        "y": np.array(labels, np.uint8),
        "wnid": np.array(names),
    }
    content.update(changes)
    np.savez(path, **{k: v for k, v in content.items() if v is not None})
    return path


def test_a_folder(folder):
    data = open_data(str(folder), size=8)
    assert data.classes == ("blue", "red")
    assert data.size == (8, 8)
    assert (len(data.train), len(data.validation)) == (18, 2)
    assert data.photographs
    for part in (data.train, data.validation):
        for pixels, label in zip(part.pixels, part.labels, strict=True):
            expected = torch.tensor(COLORS[data.classes[int(label)]], dtype=torch.uint8)
            assert torch.equal(pixels, expected.view(3, 1, 1).expand(3, 8, 8))
    assert data.validation.labels.tolist() == [0, 1]
    assert data.mean == pytest.approx((120 / 255, 30 / 255, 120 / 255), abs=6e-4)


def test_training_images_keep_detail(folder):
    data = open_data(str(folder), size=8, detail=2)
    assert data.size == data.validation.pixels.shape[-2:] == (8, 8)
    assert data.train.pixels.shape[-2:] == (16, 16)
    with pytest.raises(OptionError, match="detail= is 2; scenes"):
        open_data("scenes", detail=2)


def test_folders_with_validation_and_fewer_images(folder, tmp_path):
    (tmp_path / "val" / "red").mkdir(parents=True)
    Image.new("RGB", (8, 8), COLORS["red"]).save(tmp_path / "val" / "red" / "a.png")
    done = []
    data = open_data(
        str(folder), validation=str(tmp_path / "val"), size=8, images=6, on_progress=lambda *d: done.append(d)
    )
    assert data.train.labels.tolist() == [0, 0, 0, 1, 1, 1]  # evenly, not only the first class
    assert data.validation.labels.tolist() == [1]
    assert done[-1] == (7, 7)


def test_folders_that_cannot_be_used(folder, tmp_path, monkeypatch):
    with pytest.raises(OptionError, match="There is no folder"):
        open_data(str(tmp_path / "missing"))
    (tmp_path / "val" / "green").mkdir(parents=True)
    Image.new("RGB", (8, 8)).save(tmp_path / "val" / "green" / "a.png")
    with pytest.raises(OptionError, match="no training images of: green"):
        open_data(str(folder), validation=str(tmp_path / "val"), size=8)
    with pytest.raises(OptionError, match="has 18 training images"):
        open_data(str(folder), size=8, images=30)
    Image.new("RGB", (8, 8)).save(folder / "loose.png")
    with pytest.raises(OptionError, match="has no label"):
        open_data(str(folder), size=8)
    (folder / "loose.png").unlink()
    monkeypatch.setattr(sources, "free_memory", lambda device: 20 * 3 * 8 * 8)
    with pytest.raises(OptionError, match=r"20 images of 8×8 need .* up to 16"):
        open_data(str(folder), size=8)


def test_npz_files(tmp_path):
    a = write_npz(tmp_path / "a.npz", [0, 1, 1])
    b = write_npz(tmp_path / "b.npz", [1, 0])
    val = write_npz(tmp_path / "val.npz", [1])
    data = open_data(f"{a},{b}", validation=str(val), size=16)
    assert data.train.labels.tolist() == [0, 1, 1, 1, 0]
    assert data.validation.labels.tolist() == [1]
    assert data.classes == ("blue", "red")
    for pixels, label in zip(data.train.pixels, data.train.labels, strict=True):
        expected = torch.tensor(COLORS[data.classes[int(label)]]).view(3, 1, 1)
        assert int((pixels.int() - expected).abs().max()) < 6  # JPEG


def test_npz_classes_may_be_numbers(tmp_path):
    images = npz_images(write_npz(tmp_path / "a.npz", [0, 1], wnid=None))
    assert images.labels == [0, 1]
    assert images.names == ["a.npz[0]", "a.npz[1]"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"y": None}, "y missing"),
        ({"offset": np.array([0, 5])}, "one offset more"),
        ({"offset": np.array([0, 5, 10**9])}, "within the bytes"),
        ({"offset": np.array([0, 9, 5])}, "rising"),
        ({"wnid": np.array(["blue"])}, "names for 1"),
        ({"y": np.array([None, None], dtype=object)}, "Cannot read"),
    ],
)
def test_npz_files_that_cannot_be_used(tmp_path, changes, said):
    with pytest.raises(ImageError, match=said):
        npz_images(write_npz(tmp_path / "a.npz", [0, 1], **changes))


def test_what_is_no_npz_at_all(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"PK\x03\x04 oops")
    for name in ("a.npz", "missing.npz"):
        with pytest.raises(ImageError, match=f"Cannot read .*{name}"):
            npz_images(tmp_path / name)


def test_rendered_images_are_those_of_their_splits():
    def render(index, seed, device):
        assert seed == 0
        level = (index % 256).float() / 255
        return level.view(-1, 1, 1, 1).expand(-1, 3, 4, 4), index % 2

    splits = {"train": (0, 5000), "validation": (6001, 9), "test": (7000, 7)}
    done = []
    data = data_of_renderer(render, splits, ("even", "odd"), 4, 3000, torch.device("cpu"), lambda *d: done.append(d))
    assert data.train.pixels[:, 0, 0, 0].tolist() == [i % 256 for i in range(3000)]
    assert data.validation.pixels[:, 0, 0, 0].tolist() == [i % 256 for i in range(6001, 6010)]
    assert data.test.labels.tolist() == [i % 2 for i in range(7000, 7007)]
    assert done[-1] == (3016, 3016)
    assert not data.photographs
    with pytest.raises(OptionError, match="5000 training scenes"):
        data_of_renderer(render, splits, ("even", "odd"), 4, 6000, torch.device("cpu"))


def test_scenes_take_no_validation_of_others():
    with pytest.raises(OptionError, match="of their own"):
        open_data("scenes", validation="photos")


def test_scenes_are_those_of_the_data_set(monkeypatch):
    from suffice.zoo.scenes import CLASSES, Scenes

    monkeypatch.setattr(sources, "ON_CPU", {"train": 4, "validation": 2, "test": 3})
    data = open_data("scenes")
    assert (len(data.train), len(data.validation), len(data.test)) == (4, 2, 3)
    assert data.classes == CLASSES
    for split, part in (("train", data.train), ("validation", data.validation), ("test", data.test)):
        for i in range(len(part)):
            image, label = Scenes(split)[i]
            assert torch.equal(part.pixels[i], torch.from_numpy(np.array(image)).permute(2, 0, 1))
            assert int(part.labels[i]) == int(label)
    with pytest.raises(OptionError, match="56×56"):
        open_data("scenes", size=64)


def test_real_photographs(assets):
    folder = assets / "tiny_imagenet_100"
    data = open_data(str(folder / "val.npz"), size=64, images=50)
    assert data.train.pixels.shape == (50, 3, 64, 64)
    assert len(data.classes) == 100  # of all images, not only of those that were asked for
    assert all(0.3 < m < 0.6 for m in data.mean)
