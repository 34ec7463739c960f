"""Places of studies that are not folders of this machine."""

import pytest

from suffice.errors import StoreError
from suffice.study import Study
from suffice.study.elsewhere import UNFINISHED
from suffice.study.store import Store
from tests.study.listing import Listing
from tests.study.small import ANY, write_study


def test_what_others_have_written_since_a_folder_was_listed_is_seen():
    store, other = Store("listing://shared"), Store("memory://shared")
    other.write("tables/a", b"1")
    assert (store.files(), store.exists("tables/b")) == (["tables/a"], False)
    other.write("tables/b", b"22")
    assert isinstance(store.fs, Listing)
    assert store.exists("tables/b")
    assert store.files() == ["tables/a", "tables/b"]
    assert store.fs.info(store.path("tables/b"))["size"] == 2
    other.write("tables/b", b"333")
    assert store.fs.info(store.path("tables/b"))["size"] == 3
    other.remove("tables/a")
    assert not store.exists("tables/a")


def test_folders_are_made_and_files_replaced_as_a_whole(tmp_path, monkeypatch):
    store = Store(f"dir::file://{tmp_path}/run")
    assert store.local is None
    store.write("a/b.txt", b"before")
    store.write("a/b.txt", b"after")
    assert store.read("a/b.txt") == b"after"
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["b.txt"]
    pipe = store._fs.pipe_file

    def breaking(path, content, **options):
        pipe(path, content[:2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store._fs, "pipe_file", breaking)
    with pytest.raises(StoreError, match=r"a/b\.txt cannot be written .*: No space left on device"):
        store.write("a/b.txt", b"more")
    assert store.read("a/b.txt") == b"after"
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["b.txt"]


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("nowhere://here", "Protocol not known"),
        ("zip::file:///none.zip", "none.zip"),
        ("reference://here", "missing 1 required"),
        ("simplecache::memory://here", "reads copies of files"),
    ],
)
def test_places_that_cannot_keep_a_study(place, said):
    with pytest.raises(StoreError, match=said) as error:
        Store(place)
    assert str(error.value).startswith(place)
    assert "\n" not in str(error.value)


def test_a_study_elsewhere_goes_on(tmp_path):
    file, place = write_study(tmp_path, [ANY]), f"dir::file://{tmp_path}/run"
    Study.open(file).run(place, device="cpu", only="said")
    study = Study.open(place).run(device="cpu")
    assert study.status().finished
    assert study.table("scores").num_rows == 6
    assert not [*tmp_path.rglob(f"*{UNFINISHED}")]
