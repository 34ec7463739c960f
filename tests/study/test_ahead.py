"""Images of the next shard are decoded while this one is measured."""

import threading

import pytest
import torch
from PIL import Image

from suffice.errors import UnreadableImage
from suffice.study.ahead import DecodedAhead
from suffice.vision import Images
from suffice.vision.images import Picture


class Source:
    """Pixels that know which thread decoded them, and wait until they may."""

    def __init__(self, side=4, broken=False):
        self.side, self.broken = side, broken
        self.may, self.threads, self.hashed = threading.Event(), [], 0
        self.may.set()

    def read(self):
        self.may.wait(10)
        self.threads.append(threading.current_thread().name)
        if self.broken:
            raise UnreadableImage("It is broken.")
        return Image.new("RGB", (self.side, self.side))

    def fingerprint(self):
        self.hashed += 1
        return "hash"


def pictures(*sources):
    return Images(Picture(f"{number}", source) for number, source in enumerate(sources))


def decoded(ahead):
    """Wait until threads have done what they do."""
    ahead._pool.shutdown(wait=True)
    return ahead.images


def test_threads_decode_and_readers_get_what_they_have():
    source = Source()
    (picture,) = decoded(DecodedAhead(pictures(source)))
    assert len(source.threads) == 1
    assert source.threads[0].startswith("suffice-ahead")
    assert picture.decode().size == (4, 4)
    assert len(source.threads) == 1


def test_what_was_read_is_let_go_and_decoded_anew_where_it_is_read_again():
    source = Source()
    (picture,) = decoded(DecodedAhead(pictures(source)))
    first, second = picture.decode(), picture.decode()
    assert first is not second
    assert source.threads[1] == threading.current_thread().name


def test_what_no_thread_has_begun_is_not_waited_for():
    slow = [Source() for _ in range(8)]  # as many as there are threads, at most
    for source in slow:
        source.may.clear()
    last = Source()
    ahead = DecodedAhead(pictures(*slow, last))
    assert ahead.images[-1].decode().size == (4, 4)
    assert last.threads == [threading.current_thread().name]
    for source in slow:
        source.may.set()
    ahead.close()


def test_a_broken_image_says_so_where_it_is_read():
    (picture,) = decoded(DecodedAhead(pictures(Source(broken=True))))
    with pytest.raises(UnreadableImage, match="It is broken"):
        picture.decode()


def test_no_more_is_held_than_there_is_room_for():
    sources = [Source(side=100) for _ in range(64)]
    images = decoded(DecodedAhead(pictures(*sources), most=40_000))
    begun = sum(bool(source.threads) for source in sources)
    assert 2 <= begun <= 2 + 8  # two fill it; each thread may have begun another
    assert all(image.decode().size == (100, 100) for image in images)


def test_tensors_count_as_they_are():
    sources = [Source() for _ in range(64)]
    for source in sources:
        source.read = lambda: torch.zeros(3, 10, 10)
    ahead = DecodedAhead(pictures(*sources), most=1200)
    assert [image.decode().shape for image in decoded(ahead)] == [(3, 10, 10)] * 64
    assert 1200 <= ahead._held <= 1200 * 9


def test_closing_leaves_what_is_not_begun():
    sources = [Source() for _ in range(64)]
    for source in sources:
        source.may.clear()
    ahead = DecodedAhead(pictures(*sources))
    threading.Timer(0.1, lambda: [source.may.set() for source in sources]).start()
    ahead.close()
    assert sum(bool(source.threads) for source in sources) <= 8
    assert ahead.images[-1].decode().size == (4, 4)


def test_an_image_keeps_its_name_label_and_hash():
    source = Source()
    given = Images([Picture("cat", source, stored_label=3)])
    assert given[0].id == "hash"
    ahead = DecodedAhead(given)
    assert (ahead.images[0].name, ahead.images[0].label, ahead.images[0].id) == ("cat", 3, "hash")
    assert source.hashed == 1
    ahead.close()
