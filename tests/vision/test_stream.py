import gc
import threading
import time
import weakref
from concurrent.futures import Future

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from suffice.errors import ImageError, OptionError, UnreadableImage
from suffice.vision.geometry import Geometry
from suffice.vision.images import Images, Picture, open_images
from suffice.vision.stream import PixelBatch, Skip, readable, stream


def decoding_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("suffice-decode")]


class Numbered:
    """A source whose pixels are its number; it can be slow or broken, and notes when it is read."""

    def __init__(self, number, error=None, seconds=0.0, log=None):
        self.number, self.error, self.seconds, self.log = number, error, seconds, log

    def read(self):
        if self.log is not None:
            self.log.append(self.number)
        time.sleep(self.seconds)
        if self.error:
            raise self.error
        return torch.full((3, 2, 2), float(self.number))

    def fingerprint(self):
        return str(self.number)


def numbered(count, broken=(), **options):
    errors = {i: ImageError(f"image {i} is broken") for i in broken}
    return Images(Picture(f"n{i}", Numbered(i, errors.get(i), **options)) for i in range(count))


def identity(pixels):
    return pixels


def taken(decoding, count):
    """Positions of the next images."""
    return decoding.take(count).index.tolist()


def test_batches_come_in_order_whatever_finishes_first():
    pictures = [Picture(str(i), Numbered(i, seconds=0.02 * ((i * 7) % 5))) for i in range(23)]
    batches = list(stream(Images(pictures), identity, batch_size=5, workers=4))
    assert [len(batch.index) for batch in batches] == [5, 5, 5, 5, 3]
    assert torch.cat([batch.index for batch in batches]).tolist() == list(range(23))
    for batch in batches:
        assert batch.index.dtype == torch.int64
        assert batch.pixels.dtype == torch.float32
        assert batch.pixels.shape == (len(batch.index), 3, 2, 2)
        assert (batch.pixels[:, 0, 0, 0] == batch.index).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 20), st.sets(st.integers(0, 19)), st.integers(1, 6), st.integers(1, 3))
def test_skipping_loses_nothing_else_and_batches_stay_full(count, broken, batch_size, workers):
    broken = {i for i in broken if i < count}
    batches = stream(numbered(count, broken), identity, batch_size=batch_size, workers=workers, on_error="skip")
    seen = [batch.index.tolist() for batch in batches]
    assert [i for chunk in seen for i in chunk] == [i for i in range(count) if i not in broken]
    assert all(len(chunk) == batch_size for chunk in seen[:-1])
    assert all(seen)
    assert batches.skipped == [Skip(i, f"n{i}", f"image {i} is broken") for i in sorted(broken)]


def test_raise_is_the_default():
    batches = stream(numbered(6, broken=[3]), identity, batch_size=2)
    iterator = iter(batches)
    assert next(iterator).index.tolist() == [0, 1]
    with pytest.raises(ImageError, match="image 3 is broken"):
        next(iterator)
    assert batches.skipped == []
    assert not decoding_threads()


def test_other_errors_are_never_skipped():
    def geometry(pixels):
        if pixels.max() == 2:
            raise ZeroDivisionError("a fault of the program")
        return pixels

    with pytest.raises(ZeroDivisionError):
        list(stream(numbered(5), geometry, on_error="skip"))
    assert not decoding_threads()


def test_image_errors_of_the_geometry_are_skipped():
    def geometry(pixels):
        if pixels.max() == 2:
            raise ImageError("too small")
        return pixels

    batches = stream(numbered(5), geometry, on_error="skip")
    assert [batch.index.tolist() for batch in batches] == [[0, 1, 3, 4]]
    assert batches.skipped == [Skip(2, "n2", "too small")]


def test_iterating_again_starts_again():
    batches = stream(numbered(7, broken=[1]), identity, batch_size=3, on_error="skip")
    first = [batch.index.tolist() for batch in batches]
    kept = batches.skipped
    second = iter(batches)
    assert batches.skipped == []
    assert [batch.index.tolist() for batch in second] == first == [[0, 2, 3], [4, 5, 6]]
    assert batches.skipped == kept
    assert len(kept) == 1


def test_two_iterations_at_once_do_not_meet():
    batches = stream(numbered(6), identity, batch_size=2)
    assert [(a.index.tolist(), b.index.tolist()) for a, b in zip(batches, batches, strict=True)] == [
        ([0, 1], [0, 1]), ([2, 3], [2, 3]), ([4, 5], [4, 5]),
    ]  # fmt: skip


def test_prefetch_is_bounded_and_runs_ahead():
    log = []
    batch_size, workers = 4, 2
    iterator = iter(stream(numbered(500, log=log), identity, batch_size=batch_size, workers=workers))
    assert log == []  # nothing starts before it is asked for
    for taken in range(1, 6):
        next(iterator)
        deadline = time.monotonic() + 5
        while len(log) <= taken * batch_size and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(0.05)  # anything unbounded would run away now
        assert taken * batch_size < len(log) <= taken * batch_size + 2 * batch_size + workers
    iterator.close()
    assert len(log) < 50


def test_pixels_do_not_pile_up():
    alive = weakref.WeakSet()

    def geometry(pixels):
        made = pixels + 0
        alive.add(made)
        return made

    most = 0
    for _batch in stream(numbered(300), geometry, batch_size=4, workers=2):
        most = max(most, len(alive))
    assert 0 < most <= 2 * 4 + 2 + 4 + 2


def test_broken_images_do_not_pile_up_either():
    batches = stream(numbered(2000, broken=range(2000)), identity, batch_size=4, workers=2, on_error="skip")
    assert list(batches) == []
    assert len(batches.skipped) == 2000


@pytest.mark.parametrize("leave", ["break", "raise", "interrupt", "close"])
def test_leaving_early_leaves_no_thread(leave):
    log = []
    error = {"raise": RuntimeError, "interrupt": KeyboardInterrupt}.get(leave)

    def loop():
        iterator = iter(stream(numbered(1000, seconds=0.002, log=log), identity, batch_size=2, workers=3))
        for _batch in iterator:
            assert decoding_threads()
            if leave == "close":
                iterator.close()
            elif error:
                raise error
            else:
                break

    if error:
        with pytest.raises(error):
            loop()
    else:
        loop()
    gc.collect(1)  # what is new; all objects of a long session would take half a second
    assert not decoding_threads()
    assert len(log) < 30


def test_leaving_early_drops_what_was_queued():
    log = []
    iterator = iter(stream(numbered(1000, seconds=0.01, log=log), identity, batch_size=50, workers=2))
    next(iterator)
    iterator.close()
    assert 50 <= len(log) < 70  # of 152 that were queued


def test_interrupt_while_waiting_for_an_image(monkeypatch):
    real = Future.result
    calls = []

    def result(self, timeout=None):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return real(self, timeout)

    monkeypatch.setattr(Future, "result", result)
    with pytest.raises(KeyboardInterrupt):
        list(stream(numbered(100), identity, batch_size=2))
    assert not decoding_threads()


def test_geometry_must_make_one_size_of_float32():
    sizes = Images([Picture("a", Numbered(0)), Picture("b", Numbered(1))])
    with pytest.raises(OptionError, match=r"\[3, 3, 3\] of b, but \[3, 2, 2\] of the first"):
        list(stream(sizes, lambda p: torch.zeros(3, 2 + int(p.max()), 2 + int(p.max())), on_error="skip"))
    for wrong in (torch.zeros(3, 2, 2, dtype=torch.float64), torch.zeros(1, 2, 2), torch.zeros(2, 2)):
        with pytest.raises(OptionError, match=r"expected float32 \[3, H, W\]"):
            list(stream(sizes, lambda p, wrong=wrong: wrong))
    with pytest.raises(OptionError, match=r"\[3, 5, 5\] of b"):  # also where each batch is uniform
        list(stream(sizes, lambda p: torch.zeros(3, 2 + 3 * int(p.max()), 2 + 3 * int(p.max())), batch_size=1))


@pytest.mark.parametrize("options", [{"batch_size": 0}, {"workers": 0}, {"on_error": "ignore"}])
def test_senseless_options(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        stream(numbered(1), identity, **options)


def test_folder_with_broken_files_from_end_to_end(tmp_path):
    for i in range(10):
        Image.new("RGB", (4, 4), (i, i, i)).save(tmp_path / f"{i}.png")
    whole = (tmp_path / "3.png").read_bytes()
    (tmp_path / "3.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "7.png").write_bytes(b"")
    images = open_images(tmp_path)

    def geometry(image):
        return torch.from_numpy(np.array(image)).permute(2, 0, 1) / 255

    batches = stream(images, geometry, batch_size=3, on_error="skip")
    values = [round(v * 255) for batch in batches for v in batch.pixels[:, 0, 0, 0].tolist()]
    assert values == [0, 1, 2, 4, 5, 6, 8, 9]
    assert [(skip.index, skip.name) for skip in batches.skipped] == [(3, "3.png"), (7, "7.png")]
    assert "empty" in batches.skipped[1].reason
    with pytest.raises(UnreadableImage, match=r"3\.png"):
        list(stream(images, geometry))


def test_readable_images_are_told_from_others_at_once(tmp_path):
    Image.new("RGB", (4, 4)).save(tmp_path / "good.png")
    (tmp_path / "bad.png").write_bytes(b"broken")
    images = open_images([tmp_path / "bad.png", tmp_path / "good.png"])
    good, skipped = readable(images)
    assert good.names == [str(tmp_path / "good.png")]
    assert [(skip.index, skip.name) for skip in skipped] == [(0, str(tmp_path / "bad.png"))]
    assert readable(images, "raise")[0].names == images.names
    assert readable(images, "raise", most=1)[0].names == images[:1].names
    three = open_images([tmp_path / "bad.png", tmp_path / "good.png", tmp_path / "bad.png"])
    for most, left_out in ((None, [0, 2]), (2, [0, 2]), (1, [0])):
        good, skipped = readable(three, most=most)
        assert good.names == [str(tmp_path / "good.png")]
        assert [skip.index for skip in skipped] == left_out
    with pytest.raises(UnreadableImage, match="None of the images could be read"):
        readable(images[:1])


def test_what_is_decoded_by_now_can_be_asked():
    gate = threading.Event()

    class Gated(Numbered):
        def read(self):
            if self.number >= 3:
                gate.wait(30)
            return super().read()

    pictures = Images(Picture(str(i), Gated(i)) for i in range(5))
    decoding = stream(pictures, identity, workers=2, ahead=4).one_by_one()
    assert taken(decoding, 2) == [0, 1]
    for _ in range(200):
        if decoding.ready(1):
            break
        time.sleep(0.01)
    assert decoding.ready(1)
    assert not decoding.ready(2)  # the fourth waits at the gate
    gate.set()
    assert taken(decoding, 9) == [2, 3, 4]
    assert decoding.ready(5)  # nothing is left, and nothing has to be waited for
    assert decoding.take(1) is None
    assert not decoding_threads()


def test_ready_never_promises_more_than_is_decoded_ahead():
    decoding = stream(numbered(9), identity, workers=1, ahead=3).one_by_one()
    assert not decoding.ready(4)
    assert taken(decoding, 9) == list(range(9))
    decoding.close()


@pytest.fixture
def files_and_tensors():
    """A photograph in bytes, and pixels of the size wanted."""
    random = np.random.default_rng(0)
    photograph = Image.fromarray(random.integers(0, 256, (40, 50, 3), dtype=np.uint8))
    return photograph, torch.rand(3, 32, 32, generator=torch.Generator().manual_seed(0))


def test_bytes_stay_bytes_until_a_batch_is_used(files_and_tensors):
    geometry, photograph = Geometry((32, 32)), files_and_tensors[0]
    (batch,) = stream(open_images([photograph] * 3), geometry)
    assert batch.decoded.dtype == torch.uint8
    by_hand = np.asarray(photograph.resize((40, 32), Image.Resampling.BICUBIC).crop((4, 0, 36, 32)), dtype=np.float32)
    wanted = torch.from_numpy(by_hand.transpose(2, 0, 1) / np.float32(255))
    assert torch.equal(batch.pixels, wanted.expand(3, -1, -1, -1))
    assert torch.equal(batch.on(torch.device("cpu")), batch.pixels)
    assert torch.equal(geometry(photograph), wanted)


def test_bytes_and_pixels_may_be_in_one_batch(files_and_tensors):
    photograph, pixels = files_and_tensors
    geometry = Geometry((32, 32))
    mixed = Images([*open_images([photograph]), *open_images(pixels[None])])
    (batch,) = stream(mixed, geometry)
    assert torch.equal(batch.pixels, torch.stack([geometry(photograph), pixels]))


def test_only_a_geometry_of_ours_may_give_bytes():
    with pytest.raises(OptionError, match="uint8"):
        list(stream(numbered(1), lambda pixels: pixels.byte()))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_pixels_have_the_same_bits_on_every_device():
    every = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16).expand(1, 3, 16, 16)
    batch = PixelBatch(torch.zeros(1, dtype=torch.long), every)
    assert torch.equal(batch.on(torch.device("cuda")).cpu(), batch.pixels)
