"""The line search takes the first step that pays, and asks no more than it must."""

import pytest
import torch

from suffice.attribution import attribute
from suffice.attribution.igos import line_search
from suffice.attribution.igos.scores import MaskedScores
from suffice.testing import WeightedSum
from tests.attribution.igos.twin import sure_cnn
from tests.attribution.nets import pictures

QUICK = {"size": 6, "steps": 3, "l1": 0.05, "l2": 0.2, "iterations": 3}


def inputs_seen(net):
    seen = []
    net.module.register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0])))
    return seen


@pytest.mark.parametrize(("at_once", "parts"), [(1, 1), (3, 4), (100, 100)])
@pytest.mark.parametrize("name", ["i-gos", "igos++"])
def test_how_much_is_asked_at_once_changes_nothing(monkeypatch, name, at_once, parts):
    net, images = sure_cnn(), pictures(2)
    expected = attribute(net, images, name, batch_size=8, **QUICK).maps
    monkeypatch.setattr(line_search, "TRIALS_AT_ONCE", at_once)
    monkeypatch.setattr(line_search, "PARTS", parts)
    found = attribute(net, images, name, batch_size=8, **QUICK).maps
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("search_loss", ["integrated", "plain"])
def test_a_search_asks_no_more_than_it_must(monkeypatch, search_loss):
    net, images = sure_cnn(), pictures(2)
    seen = inputs_seen(net)
    options = {**QUICK, "search_loss": search_loss, "batch_size": 1}
    expected = attribute(net, images, "igos++", **options).maps
    thrifty = sum(seen)
    seen.clear()
    monkeypatch.setattr(MaskedScores, "bounded", False)  # so that a few answers never settle anything
    torch.testing.assert_close(attribute(net, images, "igos++", **options).maps, expected, atol=1e-5, rtol=0)
    assert thrifty < sum(seen)
    # Then each trial asks 4 · 3 questions, or 4 plain ones: the whole images, first losses where these are plain,
    # gradients, then trials; none for the loss before a step.
    plain = search_loss == "plain"
    assert (sum(seen) - 2 - 2 * 4 * plain - 2 * 3 * 12) % (4 if plain else 12) == 0


def test_a_search_for_logits_tries_whole_steps():
    net, images = sure_cnn().replace(score="logit"), pictures(1)
    seen = inputs_seen(net)
    attribute(net, images, "igos++", batch_size=1, **QUICK)
    assert (sum(seen) - 1) % 12 == 0


def test_steps_that_penalties_forbid_are_not_tried():
    oracle = WeightedSum({5: 1.0}, threshold=0.5, grid=4, link="smooth")
    net, image = oracle.classifier(16), oracle.image(16)
    seen = inputs_seen(net)
    options = {"size": 4, "steps": 2, "iterations": 1, "baseline": "black", "noise": 0, "step_size": 1e4}
    attribute(net, image, "i-gos", 1, l1=1e4, **options)
    # The whole image, the first loss, and two steps of the gradient; then a ladder of 13 steps, of which the first ones
    # delete so much that no score of the model could make up for it.
    assert 0 < sum(seen) - 4 < 13 - 3


def test_where_nothing_pays_the_gradient_still_ranks_cells():
    # The whole image is certain by far, so that no small deletion is felt, and larger ones cost too much.
    weights = {16: 1.0, 17: 0.8, 32: 0.6}
    oracle = WeightedSum(weights, threshold=0.5, grid=7, link="smooth", sharpness=30.0)
    options = {"size": 7, "baseline": "black", "iterations": 2}
    saliency = attribute(oracle.classifier(56), oracle.image(56), "i-gos", 1, **options).maps[0]
    assert 0 < saliency.max() < 1e-6
    assert saliency.flatten().topk(3).indices.tolist() == [16, 17, 32]
