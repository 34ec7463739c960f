"""Protocols list every choice, and say what they do not know."""

import pytest

from suffice.errors import OptionError
from suffice.metrics import Protocol, all_metrics, find_metric, find_protocol, list_protocols, measure
from suffice.metrics.protocols import all_protocols
from tests.attribution.nets import pictures, small_cnn
from tests.metrics.nets import brightness


def test_protocols_list_every_choice():
    assert set(all_protocols()) == {"default", "rise", "igos", "jiang", "vit-cx", "tis", "eea", "chefer"}
    for protocol in all_protocols().values():
        for name, choices in protocol.choices.items():
            assert set(choices) == set(find_metric(name).options)
    assert set(all_protocols()["default"].metrics) == set(all_metrics())
    assert all_protocols()["igos"].choices["deletion"]["steps"] == 50


def test_a_protocol_says_nothing_about_other_metrics():
    images = pictures(1)
    with pytest.raises(OptionError, match=r"'eea' says nothing about insertion; it defines pos, neg, deletion, lerf"):
        measure(small_cnn(), images, brightness(images), "insertion", "eea", targets=0)
    with pytest.raises(OptionError, match=r"no protocol 'rises'. Did you mean 'rise'"):
        measure(small_cnn(), images, brightness(images), "insertion", "rises")


def test_protocols_are_listed_by_pattern_and_found_by_name_or_as_they_are():
    assert list_protocols("*i*") == ["rise", "igos", "jiang", "vit-cx", "tis"]
    assert set(list_protocols()) == set(all_protocols())
    assert find_protocol("tis") is find_protocol(all_protocols()["tis"]) is all_protocols()["tis"]


def test_a_protocol_of_ones_own():
    mine = Protocol("mine", "Few steps.", "predicted", {"insertion": {"steps": 3, "baseline": "noise"}})
    images = pictures(1)
    found = measure(small_cnn(), images, brightness(images), "insertion", mine)
    assert found.protocol["protocol"] == "mine"
    assert found.curves.x.tolist() == pytest.approx([0, 341 / 1024, 683 / 1024, 1])


def test_naming_positions_one_way_unsets_the_others():
    images = pictures(1)
    found = measure(small_cnn(), images, brightness(images), ["pos", "insertion"], step_size=100)
    for name in found.metrics:
        scores = found[name]
        assert scores.protocol["steps"] is None
        assert scores.protocol["fractions"] is None
        assert scores.curves.x.shape == (12,)
