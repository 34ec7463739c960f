"""Whatever a user has, opened as images."""

import numpy as np
import pytest
import torch
from PIL import Image

from suffice import plugins
from suffice.errors import ImageError, ImageTooLarge, OptionError, UnreadableImage
from suffice.vision.images import open_images, register_images, split_slice
from suffice.vision.images.opening import GROUP
from tests.vision.images.files import Squares, decoded, save


def test_one_file(tmp_path):
    path = save(tmp_path / "a.png")
    images = open_images(path)
    assert images.names == [str(path)]
    assert images.labels == [None]
    assert np.array(images[0].decode())[0, 0].tolist() == [10, 20, 30]
    assert open_images(str(path))[0].id == images[0].id


def test_missing_path_is_said_at_once(tmp_path):
    with pytest.raises(UnreadableImage, match=r"no file or folder .*nothing"):
        open_images(tmp_path / "nothing")
    with pytest.raises(UnreadableImage, match=r"nothing\.jpg"):
        open_images(tmp_path / "nothing.jpg")


def test_missing_file_in_a_list_does_not_stop_the_others(tmp_path):
    good = save(tmp_path / "good.png")
    images = open_images([good, tmp_path / "missing.png"])
    assert images[0].decode().size == (4, 3)
    with pytest.raises(UnreadableImage, match="no such file"):
        images[1].decode()
    with pytest.raises(UnreadableImage, match="missing"):
        _ = images[1].id


def test_listed_files_are_not_touched(monkeypatch):
    monkeypatch.setattr("os.stat", lambda *_a, **_k: pytest.fail("touched a file"))
    assert len(open_images(["a.png", "b.JPEG"])) == 2


def test_nothing_is_read_until_asked(tmp_path, monkeypatch):
    save(tmp_path / "a/x.png")
    monkeypatch.setattr("builtins.open", lambda *_a, **_k: pytest.fail("read a file"))
    images = open_images(tmp_path)
    assert (images + images)[::2].labels == ["a"]
    repr(images)


def test_limit_reaches_every_kind(tmp_path):
    path = save(tmp_path / "a.png")
    for source in (path, tmp_path, [path], path.read_bytes(), Image.open(path), [Image.open(path)]):
        with pytest.raises(ImageTooLarge, match="4 × 3 = 12"):
            open_images(source, max_pixels=11)[0].decode()
        assert open_images(source, max_pixels=12)[0].decode().size == (4, 3)


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

    def test_columns_of_tables(self, tmp_path):
        pandas = pytest.importorskip("pandas")
        paths = [str(save(tmp_path / f"{i}.png")) for i in range(3)]
        table = pandas.DataFrame({"path": paths, "label": list("abc")})
        few = table[table.label != "b"]
        images = open_images(few.path, labels=few.label)
        assert images.names == paths[::2]
        assert images.labels == ["a", "c"]
        assert images[1].decode().size == (4, 3)
        assert open_images(np.array(paths)).names == paths
        with pytest.raises(ImageError, match="choose one of its entries: 'path', 'label'"):
            open_images(table)

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
        for labels in ("folder", 3):
            with pytest.raises(OptionError, match=f"labels= is {labels!r}; expected 'auto'"):
                open_images(torch.rand(2, 3, 2, 2), labels=labels)
        with pytest.raises(ImageError, match="label of tensor"):
            open_images(torch.rand(3, 2, 2), labels=[0.5])
        with pytest.raises(OptionError, match="manifest"):
            open_images(save(tmp_path / "a.png"), root=tmp_path)
        with pytest.raises(OptionError, match="max_pixels="):
            open_images(torch.rand(3, 2, 2), max_pixels=0)


class TestRegistry:
    @pytest.fixture(autouse=True)
    def _own_registry(self, monkeypatch):
        monkeypatch.setitem(plugins._provided, GROUP, {})

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
