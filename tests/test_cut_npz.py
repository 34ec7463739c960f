"""The script that cuts files into parts and joins them."""

import tracemalloc

import numpy as np
import pytest

from benchmarks import cut_npz
from benchmarks.cut_npz import cut, join, main
from suffice.errors import OptionError

SIZE = 40_000


@pytest.fixture
def file(tmp_path):
    draw = np.random.default_rng(0)
    np.savez(tmp_path / "a.npz", jpeg=draw.integers(0, 256, 100_000, dtype=np.uint8), y=np.arange(5))
    return tmp_path / "a.npz"


@pytest.fixture
def parts(file, tmp_path):
    return cut(file, tmp_path / "parts", SIZE)


def test_parts_are_below_the_size_and_joined_bit_for_bit(file, parts, tmp_path, capsys):
    assert [part.name for part in parts] == [f"a.npz.part-{n}-of-3" for n in (1, 2, 3)]
    assert all(part.stat().st_size <= SIZE for part in parts)
    joined = join(parts[::-1], tmp_path / "parts")
    assert joined == tmp_path / "parts" / "a.npz"
    assert joined.read_bytes() == file.read_bytes()
    with np.load(joined) as one, np.load(file) as other:
        assert np.array_equal(one["jpeg"], other["jpeg"])

    arguments = ["cut", str(file), "--size", str(SIZE / 2**20), "--out", str(tmp_path / "again")]
    assert main(arguments) == 0
    again = sorted((tmp_path / "again").iterdir())
    assert [part.read_bytes() for part in again] == [part.read_bytes() for part in parts]
    assert main(["join", *map(str, again), "--out", str(tmp_path / "b" / "b.npz")]) == 0
    assert (tmp_path / "b" / "b.npz").read_bytes() == file.read_bytes()
    assert "b.npz  0.1 MiB" in capsys.readouterr().out


@pytest.mark.parametrize("count", [0, 1, SIZE - cut_npz.HEAD, SIZE - cut_npz.HEAD + 1])
def test_files_of_any_length(tmp_path, count):
    (tmp_path / "some").write_bytes(b"x" * count)
    parts = cut(tmp_path / "some", tmp_path / "parts", SIZE)
    assert len(parts) == (2 if count > SIZE - cut_npz.HEAD else 1)
    assert join(parts, tmp_path / "joined").read_bytes() == b"x" * count


def test_missing_and_damaged_parts_are_refused_by_name(file, parts, tmp_path, capsys):
    with pytest.raises(OptionError, match=r"a\.npz\.part-2-of-3 is missing"):
        join([parts[0], parts[2]], tmp_path / "b.npz")
    content = bytearray(parts[1].read_bytes())
    content[-5] ^= 1
    parts[1].write_bytes(content)
    parts[2].write_bytes(parts[2].read_bytes()[:-1])
    with pytest.raises(OptionError) as error:
        join(parts, tmp_path / "b.npz")
    assert f"{parts[1]} is damaged; {parts[2]} is damaged" in str(error.value)
    parts[1].write_bytes(b"\0" + content[1:])
    assert main(["join", *map(str, parts), "--out", str(tmp_path / "b.npz")]) == 2
    assert f"{parts[1]} is damaged, or not a part" in capsys.readouterr().err
    assert main(["join", str(tmp_path / "none"), "--out", str(tmp_path / "b.npz")]) == 2
    assert "none: No such file" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.npz", "parts"]


def test_parts_of_several_files_are_not_mixed(parts, tmp_path):
    np.savez(tmp_path / "a.npz", jpeg=np.zeros(100_000, dtype=np.uint8), y=np.arange(5))
    others = cut(tmp_path / "a.npz", tmp_path / "others", SIZE)
    with pytest.raises(OptionError, match=r"others/a\.npz\.part-2-of-3 is a part of another file"):
        join([parts[0], others[1], parts[2]], tmp_path / "b.npz")
    with pytest.raises(OptionError, match="too small"):
        cut(tmp_path / "a.npz", tmp_path / "others", cut_npz.HEAD)


def test_little_memory_is_enough(tmp_path):
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(48 * cut_npz.MIB)
    tracemalloc.start()
    try:
        join(cut(large, tmp_path / "parts", 20 * cut_npz.MIB), tmp_path / "joined")
        assert tracemalloc.get_traced_memory()[1] < 8 * cut_npz.MIB
    finally:
        tracemalloc.stop()
    assert (tmp_path / "joined").stat().st_size == large.stat().st_size
