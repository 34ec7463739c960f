import os
import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from suffice.errors import ImageError, ImageTooLarge, OptionError, UnreadableImage
from suffice.vision import images as images_module
from suffice.vision.images import Images, Picture, open_images, register_images, split_slice
from suffice.vision.images.sources import pixels_of_tensor


@pytest.fixture
def scene():
    return np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)


def save(path, color=(10, 20, 30)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (4, 3), color).save(path)
    return path


def decoded(source, **options):
    (picture,) = open_images(source, **options)
    return picture.decode()


class TestPaths:
    def test_one_file(self, tmp_path):
        path = save(tmp_path / "a.png")
        images = open_images(path)
        assert images.names == [str(path)]
        assert images.labels == [None]
        assert np.array(images[0].decode())[0, 0].tolist() == [10, 20, 30]
        assert open_images(str(path))[0].id == images[0].id

    def test_missing_path_is_said_at_once(self, tmp_path):
        with pytest.raises(UnreadableImage, match=r"no file or folder .*nothing"):
            open_images(tmp_path / "nothing")
        with pytest.raises(UnreadableImage, match=r"nothing\.jpg"):
            open_images(tmp_path / "nothing.jpg")

    def test_missing_file_in_a_list_does_not_stop_the_others(self, tmp_path):
        good = save(tmp_path / "good.png")
        images = open_images([good, tmp_path / "missing.png"])
        assert images[0].decode().size == (4, 3)
        with pytest.raises(UnreadableImage, match="no such file"):
            images[1].decode()
        with pytest.raises(UnreadableImage, match="missing"):
            _ = images[1].id

    def test_listed_files_are_not_touched(self, monkeypatch):
        monkeypatch.setattr("os.stat", lambda *_a, **_k: pytest.fail("touched a file"))
        assert len(open_images(["a.png", "b.JPEG"])) == 2

    def test_folder_is_recursive_sorted_by_bytes_and_skips_what_is_hidden(self, tmp_path):
        names = ["B.png", "a.PNG", "a/z.jpg", "a-b.png", "b/c/d.webp", "é.gif", "10.png", "9.png"]
        for name in reversed(names):
            save(tmp_path / name)
        for name in [".hidden.png", ".git/x.png", "b/.y.png"]:
            save(tmp_path / name)
        (tmp_path / "notes.txt").write_text("no image")
        images = open_images(tmp_path)
        assert images.names == sorted(names, key=os.fsencode)
        assert images.names[:3] == ["10.png", "9.png", "B.png"]
        assert images.labels == [None] * len(names)
        assert images.names == open_images(str(tmp_path) + "/").names

    def test_folder_per_class(self, tmp_path):
        for name in ["n02/x.png", "n01/deep/y.png", "n01/a.png"]:
            save(tmp_path / name)
        images = open_images(tmp_path)
        assert list(zip(images.names, images.labels, strict=True)) == [
            ("n01/a.png", "n01"),
            ("n01/deep/y.png", "n01"),
            ("n02/x.png", "n02"),
        ]
        assert repr(images) == "Images(3, labeled, 2 classes)"
        assert open_images(tmp_path, labels=None).labels == [None] * 3
        save(tmp_path / "stray.png")
        assert open_images(tmp_path).labels == [None] * 4

    def test_links_are_followed_but_never_in_a_circle(self, tmp_path):
        save(tmp_path / "real/a.png")
        os.symlink(tmp_path / "real", tmp_path / "other", target_is_directory=True)
        os.symlink(tmp_path, tmp_path / "real/loop", target_is_directory=True)
        os.symlink(tmp_path / "gone", tmp_path / "real/dangling.png")
        images = open_images(tmp_path)
        assert images.names == ["other/a.png", "other/dangling.png", "real/a.png", "real/dangling.png"]

    def test_folder_without_images_says_what_was_looked_for(self, tmp_path):
        (tmp_path / "readme.md").write_text("")
        with pytest.raises(ImageError, match=r"no image in the folder .* \.jpg"):
            open_images(tmp_path)

    def test_large_folder_opens_fast_and_untouched(self, tmp_path):
        for i in range(20):
            (tmp_path / f"class{i}").mkdir()
            for j in range(500):
                (tmp_path / f"class{i}" / f"{j}.jpg").touch()
        start = time.perf_counter()
        images = open_images(tmp_path)
        seconds = time.perf_counter() - start
        assert len(images) == 10_000
        assert seconds < 1.5
        assert repr(images) == "Images(10000, labeled, 20 classes)"

    def test_nothing_is_read_until_asked(self, tmp_path, monkeypatch):
        save(tmp_path / "a/x.png")
        monkeypatch.setattr("builtins.open", lambda *_a, **_k: pytest.fail("read a file"))
        images = open_images(tmp_path)
        assert (images + images)[::2].labels == ["a"]
        repr(images)

    def test_limit_reaches_every_kind(self, tmp_path):
        path = save(tmp_path / "a.png")
        for source in (path, tmp_path, [path], path.read_bytes(), Image.open(path), [Image.open(path)]):
            with pytest.raises(ImageTooLarge, match="4 × 3 = 12"):
                open_images(source, max_pixels=11)[0].decode()
            assert open_images(source, max_pixels=12)[0].decode().size == (4, 3)


class TestInMemory:
    def test_pil(self, scene, tmp_path):
        assert np.array(decoded(Image.fromarray(scene))).tolist() == scene.tolist()
        assert decoded(Image.new("RGBA", (1, 1), (0, 0, 0, 0))).getpixel((0, 0)) == (255, 255, 255)
        assert open_images([Image.new("L", (1, 1)), Image.new("L", (1, 1))]).names == ["image[0]", "image[1]"]
        assert open_images(Image.open(save(tmp_path / "a.png"))).names == ["a.png"]
        with pytest.raises(UnreadableImage, match="holds no pixels"):
            decoded(Image.new("RGB", (0, 4)))

    def test_pil_of_a_broken_file(self, tmp_path):
        path = save(tmp_path / "a.png")
        path.write_bytes(path.read_bytes()[:50])
        with pytest.raises(UnreadableImage, match=r"a\.png"):
            decoded(Image.open(path))

    def test_bytes(self, tmp_path):
        path = save(tmp_path / "a.png")
        assert open_images(path.read_bytes())[0].id == open_images(path)[0].id
        with pytest.raises(UnreadableImage, match="bytes"):
            decoded(b"nonsense")

    @pytest.mark.parametrize("make", [torch.from_numpy, np.asarray], ids=["tensor", "array"])
    def test_uint8_and_float_are_scaled_alike(self, make, scene):
        first = make(np.ascontiguousarray(scene.transpose(2, 0, 1)))
        expected = torch.from_numpy(scene).permute(2, 0, 1) / 255
        for source in (first, first / 255):
            pixels = decoded(source)
            assert pixels.dtype == torch.float32
            assert pixels.is_contiguous()
            assert torch.allclose(pixels, expected, atol=1e-7)

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f4", ">u2", np.uint16, np.uint8])
    def test_array_types(self, dtype):
        full = {"u": np.iinfo(dtype).max if np.dtype(dtype).kind == "u" else 1, "f": 1}[np.dtype(dtype).kind]
        array = np.full((2, 3, 3), full, dtype=dtype)
        array[0, 0] = 0
        pixels = decoded(array)
        assert pixels.dtype == torch.float32
        assert pixels[:, 0, 0].tolist() == [0, 0, 0]
        assert pixels[:, 1, 2].tolist() == [1, 1, 1]

    @pytest.mark.parametrize(
        ("shape", "expected"),
        [
            ((5, 7), [(3, 5, 7)]),
            ((5, 7, 3), [(3, 5, 7)]),
            ((5, 7, 1), [(3, 5, 7)]),
            ((5, 7, 4), [(3, 5, 7)]),
            ((3, 5, 7), [(3, 5, 7)]),
            ((1, 5, 7), [(3, 5, 7)]),
            ((3, 7, 3), [(3, 3, 7)]),  # ambiguous: channels last
            ((2, 5, 7, 3), [(3, 5, 7)] * 2),
            ((2, 3, 5, 7), [(3, 5, 7)] * 2),
            ((2, 5, 7, 1), [(3, 5, 7)] * 2),
        ],
    )
    def test_array_shapes(self, shape, expected):
        images = open_images(np.zeros(shape, dtype=np.uint8))
        assert [tuple(picture.decode().shape) for picture in images] == expected

    @pytest.mark.parametrize(
        ("shape", "expected"),
        [
            ((3, 5, 7), 1), ((1, 5, 7), 1), ((5, 7), 1), ((2, 3, 5, 7), 2), ((2, 1, 5, 7), 2), ((3, 7, 3), 1),
        ],
    )  # fmt: skip
    def test_tensor_shapes(self, shape, expected):
        images = open_images(torch.zeros(shape))
        assert [tuple(p.decode().shape) for p in images] == [(3, shape[-2], shape[-1])] * expected

    @pytest.mark.parametrize(
        "source",
        [
            np.zeros((5, 7, 2), np.uint8), np.zeros(5, np.uint8), np.zeros((2, 2, 5, 7, 3), np.uint8),
            np.zeros((0, 5, 3), np.uint8), np.zeros((0, 5, 7, 3), np.uint8),
            torch.zeros(2, 5, 7), torch.zeros(5), torch.zeros(0, 3, 5, 7), torch.zeros(3, 0, 7),
            torch.zeros(()),
        ],
        ids=lambda source: f"{type(source).__name__}{tuple(source.shape)}",
    )  # fmt: skip
    def test_shapes_that_are_no_image(self, source):
        with pytest.raises(ImageError, match="shape"):
            open_images(source)

    def test_tensor_with_channels_last_gets_a_hint(self):
        with pytest.raises(ImageError, match=r"movedim\(-1, -3\)"):
            open_images(torch.zeros(5, 7, 3))

    @pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.bool, torch.complex64])
    def test_types_that_are_no_pixels(self, dtype):
        with pytest.raises(ImageError, match="expected uint8, uint16, or float"):
            open_images(torch.zeros(3, 4, 4, dtype=dtype))
        with pytest.raises(ImageError, match="expected uint8, uint16, or float"):
            open_images(torch.zeros(4, 4, 3, dtype=dtype).numpy())

    @pytest.mark.parametrize("make", [lambda t: t, lambda t: t.numpy()], ids=["tensor", "array"])
    def test_values_outside_the_unit_interval(self, make):
        pixels = torch.rand(2, 3, 4, 4)
        for value in (-0.5, 1.5, -2.1):
            pixels[1, 2, 3, 3] = value
            with pytest.raises(ImageError, match=r"looks normalized: give pixels in \[0, 1\]"):
                open_images(make(pixels))
        for value in (float("nan"), float("inf"), -float("inf")):
            pixels[1, 2, 3, 3] = value
            with pytest.raises(ImageError, match=r"give pixels in \[0, 1\]"):
                open_images(make(pixels))
        with pytest.raises(ImageError, match=r"divide by 255"):
            open_images(make(torch.full((3, 4, 4), 200.0)))

    def test_rounding_is_clipped(self):
        assert decoded(torch.full((3, 2, 2), 1.000001)).max() == 1
        assert decoded(torch.full((3, 2, 2), -0.000001)).min() == 0

    def test_alpha_of_arrays_over_white(self):
        array = np.array([[[200, 100, 0, 0], [200, 100, 0, 51], [200, 100, 0, 255]]], dtype=np.uint8)
        expected = [[1, 1, 1], [0.8 + 0.2 * 200 / 255, 0.8 + 0.2 * 100 / 255, 0.8], [200 / 255, 100 / 255, 0]]
        assert torch.allclose(decoded(array)[:, 0].T, torch.tensor(expected))

    def test_tensor_with_gradient_and_readonly_array(self):
        assert not decoded(torch.rand(3, 4, 4, requires_grad=True)).requires_grad
        array = np.zeros((4, 4, 3), dtype=np.uint8)
        array.flags.writeable = False
        assert decoded(array[::-1]).shape == (3, 4, 4)

    def test_pixels_of_tensor_keeps_batches(self):
        batch = pixels_of_tensor(torch.full((2, 1, 4, 4), 51, dtype=torch.uint8))
        assert batch.shape == (2, 3, 4, 4)
        assert torch.allclose(batch, torch.tensor(0.2))
        assert pixels_of_tensor(torch.rand(3, 4, 4)).shape == (3, 4, 4)
        with pytest.raises(ImageError, match="looks normalized"):
            pixels_of_tensor(torch.randn(2, 3, 8, 8))

    def test_decoding_gives_a_copy(self):
        pixels = torch.zeros(3, 2, 2)
        decoded(pixels).fill_(1)
        assert pixels.max() == 0


class TestIdentity:
    def test_same_pixels_same_id_wherever_they_are(self, scene):
        sources = [
            scene,
            scene.transpose(2, 0, 1),
            torch.from_numpy(scene).permute(2, 0, 1),
            Image.fromarray(scene),
            scene[None],
        ]
        assert len({open_images(source)[0].id for source in sources}) == 1

    def test_other_pixels_or_another_shape_have_another_id(self, scene):
        changed = scene.copy()
        changed[0, 0, 0] ^= 1
        shapes = [np.zeros(shape, np.uint8) for shape in ((4, 6, 3), (6, 4, 3), (2, 12, 3))]
        assert len({open_images(source)[0].id for source in (scene, changed, *shapes)}) == 5

    def test_id_of_a_file_is_that_of_its_bytes(self, tmp_path):
        first, second = save(tmp_path / "a.png"), tmp_path / "b.png"
        second.write_bytes(first.read_bytes())
        other = save(tmp_path / "c.png", (0, 0, 0))
        ids = open_images([first, second, other]).ids
        assert ids[0] == ids[1] != ids[2]
        assert len(ids[0]) == 32

    def test_id_is_computed_once(self, tmp_path):
        path = save(tmp_path / "a.png")
        images = open_images(path)
        before = images[0].id
        path.unlink()
        assert images[0].id == before


@pytest.fixture(scope="module")
def twelve():
    return open_images(torch.rand(12, 3, 2, 2), labels=list(range(12)))


class TestSequence:
    @given(st.slices(12))
    def test_slices(self, twelve, part):
        assert twelve[part].labels == list(range(12))[part]

    @given(st.lists(st.integers(-12, 11)))
    def test_positions(self, twelve, positions):
        expected = [list(range(12))[i] for i in positions]
        for key in (positions, torch.tensor(positions, dtype=torch.long), np.array(positions, dtype=int)):
            assert twelve[key].labels == expected

    @given(st.lists(st.booleans(), min_size=12, max_size=12))
    def test_masks(self, twelve, mask):
        expected = [i for i in range(12) if mask[i]]
        for key in (mask, torch.tensor(mask), np.array(mask)):
            assert twelve[key].labels == expected

    @given(st.integers(-12, 11))
    def test_one_position(self, twelve, i):
        for key in (i, np.int64(i), torch.tensor(i)):
            assert isinstance(twelve[key], Picture)
            assert twelve[key].label == range(12)[i]

    def test_wrong_keys(self, twelve):
        for key in (12, -13, [0, 12], torch.tensor([12]), [True], torch.ones(13, dtype=torch.bool)):
            with pytest.raises(IndexError):
                twelve[key]
        for key in (True, 1.5, "a", [0.5], [True, 1], None):
            with pytest.raises(TypeError):
                twelve[key]

    def test_iteration_and_concatenation(self, twelve):
        both = twelve[:2] + twelve[5:6]
        assert [picture.label for picture in both] == [0, 1, 5]
        assert len(both) == 3
        assert twelve[3] in twelve
        assert twelve.index(twelve[3]) == 3
        with pytest.raises(TypeError):
            twelve + [1]  # noqa: RUF005

    def test_repr(self, twelve):
        assert repr(twelve) == "Images(12, labeled, 12 classes)"
        assert repr(twelve[:1]) == "Images(1, labeled, 1 class)"
        assert repr(Images()) == "Images(0)"
        assert repr(open_images(torch.rand(2, 3, 2, 2))) == "Images(2)"
        assert repr(twelve[:2] + open_images(torch.rand(2, 3, 2, 2))) == "Images(4, 2 labeled, 2 classes)"

    def test_pictures_are_frozen_and_survive_pickling(self, twelve):
        with pytest.raises(AttributeError):
            twelve[0].name = "x"
        again = pickle.loads(pickle.dumps(twelve))
        assert again.ids == twelve.ids
        assert again.labels == twelve.labels

    def test_only_pictures(self):
        with pytest.raises(OptionError, match="open_images"):
            Images(["a.png"])


class Squares(torch.utils.data.Dataset):
    """(image, label) pairs that note what was fetched."""

    def __init__(self, count=4, make=lambda i: Image.new("RGB", (2, 2), (i, i, i)), labeled=True):
        self.count, self.make, self.labeled, self.fetched = count, make, labeled, []

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        self.fetched.append(i)
        return (self.make(i), i * i) if self.labeled else self.make(i)


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

    def test_empty_and_endless(self):
        with pytest.raises(ImageError, match="Squares is empty"):
            open_images(Squares(0))
        with pytest.raises(ImageError, match="no length"):
            open_images(iter([1]))

    def test_survives_pickling(self):
        dataset = torch.utils.data.TensorDataset(torch.rand(3, 3, 2, 2), torch.arange(3))
        images = open_images(dataset)
        again = pickle.loads(pickle.dumps(images))
        assert again.ids == images.ids
        assert again.labels == [0, 1, 2]

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
            assert images.labels == [1, 0, 1]
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


class TestMixturesAndOptions:
    def test_list_of_every_kind(self, tmp_path, scene):
        path = save(tmp_path / "folder/sub/a.png")
        mixed = [path, tmp_path / "folder", scene, torch.rand(2, 3, 4, 4), Image.new("L", (2, 2)), Squares(1)]
        images = open_images([*mixed, open_images(scene), open_images(scene)[0], (path, [path])])
        assert images.names == [
            str(path), "sub/a.png", "array[2]", "tensor[3][0]", "tensor[3][1]", "image[4]", "Squares[5][0]",
            "array", "array", str(path), str(path),
        ]  # fmt: skip
        assert images.labels[:3] == [None, "sub", None]
        assert all(picture.decode() is not None for picture in images)

    def test_images_come_back_as_they_are(self):
        images = open_images(torch.rand(2, 3, 2, 2))
        assert open_images(images) is images
        assert open_images(images, labels=["a", "b"]).labels == ["a", "b"]
        assert images.labels == [None, None]

    def test_empty_list(self):
        with pytest.raises(ImageError, match="empty"):
            open_images([])

    @pytest.mark.parametrize("source", [5, None, {"a": 1}, {1, 2}, object()])
    def test_unknown_kinds(self, source):
        with pytest.raises(ImageError, match="Cannot open a"):
            open_images(source)

    def test_options(self, tmp_path):
        with pytest.raises(OptionError, match="labels= has 1 entries for 2"):
            open_images(torch.rand(2, 3, 2, 2), labels=[1])
        with pytest.raises(OptionError, match="'folder'"):
            open_images(torch.rand(2, 3, 2, 2), labels="folder")
        with pytest.raises(ImageError, match="label of tensor"):
            open_images(torch.rand(3, 2, 2), labels=[0.5])
        with pytest.raises(OptionError, match="manifest"):
            open_images(save(tmp_path / "a.png"), root=tmp_path)
        with pytest.raises(OptionError, match="max_pixels="):
            open_images(torch.rand(3, 2, 2), max_pixels=0)


class TestRegistry:
    @pytest.fixture(autouse=True)
    def _own_registry(self, monkeypatch):
        monkeypatch.setattr(images_module, "_openers", {})

    def test_opener_gets_what_follows_the_colon(self):
        seen = []

        def opener(rest):
            seen.append(rest)
            return open_images(torch.rand(3, 3, 2, 2))

        register_images("scenes", opener)
        register_images("scenes", opener)  # a module imported twice does no harm
        assert len(open_images("scenes:test[:200]:x")) == 3
        assert len(open_images(["scenes:", "scenes:a"], labels=range(6))) == 6
        assert seen == ["test[:200]:x", "", "a"]
        with pytest.raises(OptionError, match="taken"):
            register_images("scenes", lambda rest: opener(rest))

    def test_mistakes(self, tmp_path):
        register_images("bad", lambda rest: [rest])
        with pytest.raises(OptionError, match="returned list"):
            open_images("bad:x")
        for prefix in ("", "C", "a/b", "a:", "1a"):
            with pytest.raises(OptionError, match="prefix"):
                register_images(prefix, open_images)
        with pytest.raises(UnreadableImage, match="Known prefixes: bad"):
            open_images("unknown:x")

    def test_path_with_a_colon_is_still_a_path(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        save(tmp_path / "a:b.png")
        assert decoded("a:b.png").size == (4, 3)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("test", ("test", slice(None))),
            ("test[:200]", ("test", slice(None, 200))),
            ("test[5:]", ("test", slice(5, None))),
            ("[-5:-1:2]", ("", slice(-5, -1, 2))),
            ("a/b-c[::10]", ("a/b-c", slice(None, None, 10))),
            ("test[:]", ("test", slice(None))),
        ],
    )
    def test_split_slice(self, text, expected):
        assert split_slice(text) == expected

    @pytest.mark.parametrize(
        "text", ["test[5]", "test[", "test[:5", "test[:5]x", "test[a:b]", "test[::0]", "x[1:2][3:4]"]
    )
    def test_split_slice_mistakes(self, text):
        with pytest.raises(OptionError, match="expected a name"):
            split_slice(text)


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
