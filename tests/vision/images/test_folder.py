"""A folder of images."""

import os

import pytest

from suffice.errors import ImageError
from suffice.vision.images import open_images
from tests.vision.images.files import save


def test_folder_is_recursive_sorted_by_bytes_and_skips_what_is_hidden(tmp_path):
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


def test_folder_per_class(tmp_path):
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


def test_links_are_followed_but_never_in_a_circle(tmp_path):
    save(tmp_path / "real/a.png")
    os.symlink(tmp_path / "real", tmp_path / "other", target_is_directory=True)
    os.symlink(tmp_path, tmp_path / "real/loop", target_is_directory=True)
    os.symlink(tmp_path / "gone", tmp_path / "real/dangling.png")
    images = open_images(tmp_path)
    assert images.names == ["other/a.png", "other/dangling.png", "real/a.png", "real/dangling.png"]


def test_folder_without_images_says_what_was_looked_for(tmp_path):
    (tmp_path / "readme.md").write_text("")
    with pytest.raises(ImageError, match=r"no image in the folder .* \.jpg"):
        open_images(tmp_path)


def test_a_large_folder_opens_with_one_look_at_each_folder(tmp_path, monkeypatch):
    for i in range(5):
        (tmp_path / f"class{i}").mkdir()
        for j in range(200):
            (tmp_path / f"class{i}" / f"{j}.jpg").touch()
    listed, touched = [], []
    scandir, stat = os.scandir, os.stat
    monkeypatch.setattr("os.scandir", lambda path: listed.append(path) or scandir(path))
    monkeypatch.setattr("os.stat", lambda path, *a, **k: touched.append(path) or stat(path, *a, **k))
    images = open_images(tmp_path)
    assert len(listed) == 6
    assert not any(str(path).endswith(".jpg") for path in touched)
    assert repr(images) == "Images(1000, labeled, 5 classes)"
