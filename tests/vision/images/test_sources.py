"""The ways to the pixels of one picture."""

import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, IterableDataset, Subset
from torchvision.datasets import ImageFolder

from suffice.attribution import attribute
from suffice.errors import ImageError, ImageTooLarge, OptionError, UnreadableImage
from suffice.vision import Classifier
from suffice.vision.images import open_images
from suffice.vision.stream import readable
from tests.vision.images.files import Squares, decoded, save


def test_pil(scene, tmp_path):
    assert np.array(decoded(Image.fromarray(scene))).tolist() == scene.tolist()
    assert decoded(Image.new("RGBA", (1, 1), (0, 0, 0, 0))).getpixel((0, 0)) == (255, 255, 255)
    assert open_images([Image.new("L", (1, 1)), Image.new("L", (1, 1))]).names == ["image[0]", "image[1]"]
    assert open_images(Image.open(save(tmp_path / "a.png"))).names == ["a.png"]
    with pytest.raises(UnreadableImage, match="holds no pixels"):
        decoded(Image.new("RGB", (0, 4)))


def test_pil_of_a_broken_file(tmp_path):
    path = save(tmp_path / "a.png")
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(UnreadableImage, match=r"a\.png"):
        decoded(Image.open(path))


def test_bytes(tmp_path):
    path = save(tmp_path / "a.png")
    assert open_images(path.read_bytes())[0].id == open_images(path)[0].id
    with pytest.raises(UnreadableImage, match="bytes"):
        decoded(b"nonsense")


class TestDatasets:
    def test_items_are_fetched_when_decoded(self):
        dataset = Squares()
        images = open_images(dataset)
        assert dataset.fetched == []
        assert repr(images) == "Images(4, labels on demand)"
        assert images[3].decode().getpixel((0, 0)) == (3, 3, 3)
        assert images[2].label == 4
        assert dataset.fetched == [3, 2]
        assert images.names == [f"Squares[{i}]" for i in range(4)]
        assert images.labels == [0, 1, 4, 9]
        assert open_images(dataset, labels=None).labels == [None] * 4

    def test_without_labels_and_with_other_kinds_of_images(self):
        images = open_images(Squares(make=lambda i: torch.full((3, 2, 2), i / 4), labeled=False))
        assert images[2].decode().unique().tolist() == [0.5]
        assert images.labels == [None] * 4
        arrays = open_images(Squares(make=lambda i: np.full((2, 2), i, np.uint8)))
        assert arrays[2].id == open_images(np.full((2, 2, 3), 2, np.uint8))[0].id

    def test_numpy_and_tensor_labels_become_integers(self):
        images = open_images([Squares(make=lambda i: Image.new("L", (1, 1)))])
        assert images[1].name == "Squares[0][1]"
        for label in (np.int64(3), torch.tensor(3)):
            (value,) = open_images(torch.zeros(3, 2, 2), labels=[label]).labels
            assert type(value) is int
            assert value == 3

    def test_faults_of_items_are_image_errors(self):
        normalized = open_images(Squares(make=lambda i: torch.randn(3, 4, 4) * 3))
        with pytest.raises(ImageError, match=r"Squares\[1\].*looks normalized"):
            normalized[1].decode()
        with pytest.raises(ImageError, match=r"Squares\[0\].*dict"):
            open_images(Squares(make=lambda i: {}))[0].decode()
        with pytest.raises(ImageError, match=r"Squares\[0\] is 2 images"):
            open_images(Squares(make=lambda i: torch.zeros(2, 3, 4, 4)))[0].decode()
        with pytest.raises(ImageError, match="3 parts"):
            open_images(Squares(labeled=False, make=lambda i: (1, 2, 3)))[0].decode()
        with pytest.raises(ImageError, match=r"label of Squares\[0\]"):
            _ = open_images(Squares(labeled=False, make=lambda i: (None, {"boxes": []})))[0].label

    def test_faults_of_the_data_set_itself_come_through(self):
        with pytest.raises(ZeroDivisionError):
            open_images(Squares(make=lambda i: 1 // 0))[0].decode()

    def test_broken_files_that_a_data_set_decodes_are_skipped_by_name(self, tmp_path, monkeypatch):
        paths = [save(tmp_path / f"class/{i}.png") for i in range(4)]
        whole = paths[1].read_bytes()
        paths[0].write_bytes(whole[:50])
        paths[1].write_bytes(whole.replace(b"IDAT", b"ID\x00T"))
        images = open_images(ImageFolder(str(tmp_path)))
        _, skipped = readable(images)
        assert [skip.name for skip in skipped] == ["ImageFolder[0]", "ImageFolder[1]"]
        with pytest.raises(UnreadableImage, match=r"Cannot read ImageFolder\[0\]"):
            images[0].decode()
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 2)
        with pytest.raises(ImageTooLarge, match=r"ImageFolder\[2\].*MAX_IMAGE_PIXELS"):
            images[2].decode()

    def test_a_data_set_without_positions(self):
        class Stream(IterableDataset):
            def __iter__(self):
                return iter([Image.new("L", (1, 1))] * 3)

            def __len__(self):
                return 3

        for source in (Stream(), DataLoader(Stream())):
            with pytest.raises(ImageError, match=r"Cannot open a Stream.*write list\(…\)"):
                open_images(source)

    def test_empty_and_endless(self):
        with pytest.raises(ImageError, match="Squares is empty"):
            open_images(Squares(0))
        with pytest.raises(ImageError, match="no positions"):
            open_images(iter([1]))

    def test_survives_pickling(self):
        dataset = torch.utils.data.TensorDataset(torch.rand(3, 3, 2, 2), torch.arange(3))
        images = open_images(dataset)
        again = pickle.loads(pickle.dumps(images))
        assert again.ids == images.ids
        assert again.labels == [0, 1, 2]

    def test_labels_are_the_names_of_classes(self, tmp_path):
        """The second class of a folder is not the second class of a model."""
        for name in ("pug", "beagle"):
            (tmp_path / name).mkdir()
            save(tmp_path / name / "1.png", (9, 9, 9))
        folder = ImageFolder(str(tmp_path))
        for source in (folder, Subset(folder, [0, 1]), DataLoader(folder, batch_size=2, shuffle=True), str(tmp_path)):
            assert open_images(source).labels == ["beagle", "pug"]
        net = Classifier(
            torch.nn.Flatten(), size=2, mean=(0,) * 3, std=(1,) * 3, labels=[*"abcdefghij", "pug", "beagle"]
        )
        found = attribute(net, open_images(folder), "gradient", targets=open_images(folder).labels)
        assert found.targets.tolist() == [11, 10]
        with pytest.raises(OptionError, match="no class 'beagle'"):
            attribute(net.replace(labels=list("abcdefghijkl")), folder, "gradient", targets=open_images(folder).labels)

    def test_names_of_several_words_and_items_without_a_class(self):
        class Named(Squares):
            classes = (("tench", "Tinca tinca"), ("goldfish",))

        class Unlabeled(Named):
            def __getitem__(self, index):
                return super().__getitem__(index)[0], torch.tensor(-1)

        assert open_images(Named(2)).labels == ["tench", "goldfish"]
        assert open_images(Unlabeled(2)).labels == [None] * 2
        Named.wnids = ["n1", "n2"]
        assert open_images(Named(2)).labels == ["n1", "n2"]

    def test_hugging_face(self, tmp_path):
        datasets = pytest.importorskip("datasets")
        paths = [save(tmp_path / f"{i}.png", (i, i, i)) for i in range(3)]
        features = datasets.Features(
            {
                "caption": datasets.Value("string"),
                "picture": datasets.Image(),
                "animal": datasets.ClassLabel(names=["cat", "dog"]),
            }
        )
        rows = {"caption": list("abc"), "picture": [str(path) for path in paths], "animal": [1, 0, 1]}
        dataset = datasets.Dataset.from_dict(rows, features=features)
        embedded = datasets.Dataset.from_dict(
            {**rows, "picture": [{"bytes": p.read_bytes(), "path": None} for p in paths]}, features=features
        )
        for source in (dataset, embedded, dataset.with_format("torch"), dataset.select([0, 1, 2])):
            images = open_images(source)
            assert images.names == ["dataset[0]", "dataset[1]", "dataset[2]"]
            assert repr(images) == "Images(3, labels on demand)"
            assert images.labels == ["dog", "cat", "dog"]
            assert images[2].decode().getpixel((0, 0)) == (2, 2, 2)
            assert images.ids == open_images(paths).ids
        with pytest.raises(ImageTooLarge):
            open_images(embedded, max_pixels=5)[0].decode()
        paths[1].write_bytes(b"broken")
        with pytest.raises(UnreadableImage, match=r"1\.png"):
            open_images(dataset)[1].decode()
        assert open_images(dataset.remove_columns("animal")).labels == [None] * 3
        with pytest.raises(ImageError, match=r"no column of type Image.*caption \(Value\)"):
            open_images(dataset.remove_columns("picture"))
        with pytest.raises(ImageError, match="'train'"):
            open_images(datasets.DatasetDict({"train": dataset}))
        with pytest.raises(ImageError, match="empty"):
            open_images(dataset.select([]))


def test_one_thread_at_a_time_loads_a_shared_pil_image(scene):
    image = Image.fromarray(scene)
    load, inside, most = image.load, [], []

    def slow_load():
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.01)
        inside.pop()
        return load()

    image.load = slow_load
    # Conversion loads once more, what is loaded by then; only the first load of each picture counts here.
    image.convert = lambda mode: Image.fromarray(scene)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda picture: np.array(picture.decode()), open_images([image] * 16)))
    assert len(most) == 16
    assert max(most) == 1
    assert all((result == scene).all() for result in results)
