"""Capture and recapture: the estimate by hand, and of oracles with known numbers of MSEs."""

import math

import pytest
import torch

from suffice.errors import OptionError
from suffice.evidence import Settings
from suffice.evidence.beyond.recapture import Completeness, Recapture, completeness
from suffice.testing import AtLeast


def test_the_textbook_estimate():
    # 17 marked, 15 caught, 5 of them marked: 18 · 16 / 6 − 1 = 47.
    image = Recapture("lake", 17, 15, 5)
    assert image.total == pytest.approx(47)
    assert image.found == 27
    assert image.share == pytest.approx(27 / 47)
    assert image.standard_error == pytest.approx(math.sqrt(18 * 16 * 12 * 10 / (36 * 7)))


def test_what_both_find_is_all():
    image = Recapture("a", 6, 6, 6)
    assert (image.total, image.standard_error, image.share) == pytest.approx((6, 0, 1))
    assert Recapture("b", 0, 0, 0).share == pytest.approx(1)


def test_together():
    result = Completeness((Recapture("a", 17, 15, 5), Recapture("b", 3, 3, 3), Recapture("c", 0, 0, 0)))
    assert (result.found, result.total) == (30, pytest.approx(50))
    assert result.share == pytest.approx(0.6)
    # Deviations of found from 0.6 · total: −1.2, 1.2, 0.
    assert result.standard_error == pytest.approx(math.sqrt(3 / 2 * 2 * 1.2**2) / 50)
    assert len(result) == 3
    assert result[1].name == "b"
    assert result[:1].share == pytest.approx(27 / 47)
    assert math.isnan(result[:1].standard_error)
    assert "30 MSEs of an estimated 50 or more" in result.summary()
    assert "±" not in str(result[:1])


def test_the_table():
    table = Completeness((Recapture("a", 17, 15, 5), Recapture("b", 3, 3, 3))).to_arrow()
    assert table.column_names == ["image", "first", "second", "both", "found", "total", "standard_error", "share"]
    assert table["total"].to_pylist() == pytest.approx([47, 3])
    assert Completeness(()).to_arrow().num_rows == 0


def test_a_wide_beam_finds_all_of_them_twice():
    oracle = AtLeast(2, range(6), grid=3)  # 15 MSEs
    wide = Settings(grid=3, baseline="black", max_mses=None, beam_width=40)
    result = completeness(oracle.classifier(9), oracle.image(9), targets=1, settings=wide)
    assert (result[0].first, result[0].second, result[0].both) == (15, 15, 15)


def test_the_estimate_is_near_the_truth_where_all_are_as_easy_to_find():
    oracle = AtLeast(3, range(9), grid=3)  # 84 MSEs, none of which stands out
    images = torch.stack([oracle.image(9, shade=shade) for shade in range(12)])
    narrow = Settings(grid=3, baseline="black", max_mses=None, beam_width=8)
    result = completeness(oracle.classifier(9), images, targets=1, settings=narrow, noise=0.5)
    assert all(image.first < 60 and image.second < 60 for image in result)
    assert result.total / 12 == pytest.approx(84, rel=0.1)
    assert result.share == pytest.approx(result.found / (12 * 84), abs=0.08)
    assert 0 < result.standard_error < 0.05


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"seeds": (1, 1)}, "two different seeds"),
        ({"noise": 0.0}, "some noise"),
        ({"settings": Settings(baseline="noise")}, "drawn by the seed"),
        ({"settings": "papers"}, "no preset"),
    ],
)
def test_searches_that_would_say_nothing(wrong, message):
    oracle = AtLeast(2, range(4), grid=2)
    with pytest.raises(OptionError, match=message):
        completeness(oracle.classifier(8), oracle.image(8), **wrong)
