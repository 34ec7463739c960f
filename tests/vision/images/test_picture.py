"""What is opened: its identity, and sequences of it."""

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from suffice.errors import OptionError
from suffice.vision.images import Images, Picture, open_images
from tests.vision.images.files import save


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
