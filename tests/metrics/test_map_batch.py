"""What metrics ask together is asked once, and in full batches."""

import pytest
import torch

from suffice.errors import OptionError
from suffice.metrics import MapBatch, find_metric, measure
from suffice.metrics.protocols import all_protocols
from suffice.perturb import Batch, Runner
from suffice.testing import AnyOf
from tests.attribution.nets import pictures, small_cnn
from tests.metrics.nets import brightness, counting_runner, sharp_cnn

SHARED = ["insertion", "deletion", "morf", "lerf", "pos", "neg"]
ALIKE = {"baseline": "black", "units": "pixels", "steps": 8, "fractions": None}


def test_metrics_asked_together_share_their_forwards():
    (runner, batches), images = counting_runner(), pictures(4)
    together = measure(runner.net, images, brightness(images), SHARED, runner=runner, **ALIKE)
    # The whole image, the baseline, and seven inner points from both ends.
    assert sum(batches) == runner.counters.forwards == 4 * (1 + 1 + 2 * 7)
    assert set(batches) == {4}
    for name in SHARED:
        alone = measure(small_cnn(), images, brightness(images), name, **ALIKE)
        torch.testing.assert_close(together[name].values, alone.values)
        assert together[name].protocol == alone.protocol


@pytest.mark.parametrize("protocol", ["default", "rise", "eea"])
def test_together_and_alone_agree(protocol):
    """Metrics that rank other units, hide by other baselines or look at other places do not mix up their answers."""
    images, boxes = pictures(2), [(4, 4, 20, 20)] * 2
    maps = brightness(images) / 40
    names = [n for n in all_protocols()[protocol].metrics if "method" not in find_metric(n).needs]
    together = measure(sharp_cnn(), images, maps, names, protocol, boxes=boxes, targets=1)
    for name in names:
        alone = measure(sharp_cnn(), images, maps, name, protocol, boxes=boxes, targets=1)
        torch.testing.assert_close(together[name].values, alone.values, equal_nan=True)


def test_the_whole_image_is_asked_once_for_all_baselines():
    (runner, batches), images, three = counting_runner(), pictures(2), ["black", "gray", "blur"]
    found = measure(runner.net, images, brightness(images), "insertion", baseline=three, steps=4, runner=runner)
    assert sum(batches) == 2 * (1 + 3 * 4)
    alone = [measure(small_cnn(), images, brightness(images), baseline=b, steps=4) for b in three]
    torch.testing.assert_close(found.values, torch.stack([a.values for a in alone]).mean(dim=0))
    assert list(found.parts) == three


def test_batches_are_full_whatever_the_number_of_images():
    (runner, batches), images = counting_runner(), pictures(5)
    measure(runner.net, images, brightness(images), ["insertion", "deletion"], runner=runner, steps=8)
    assert set(batches) == {4, 3, 1}  # the fifth image is alone: 1, 4 + 4 and 4 + 3 questions
    assert batches.count(4) == (1 + 8 + 7) + 3


def test_metrics_without_a_question_do_not_ask_the_model():
    (runner, batches), images, boxes = counting_runner(), pictures(2), [(0, 0, 9, 9)] * 2
    names = ["sparseness", "pointing-game"]
    found = measure(runner.net, images, brightness(images), names, boxes=boxes, precision="bf16")
    assert batches == []  # nor is there a forward to see what could be folded
    assert found["sparseness"].targets is None


@pytest.fixture
def given():
    """Two images whose cell 5 decides, and maps that say so; asked about are "yes" in the first, "no" in the second."""
    oracle = AnyOf([(5,)], grid=4)
    net, pixels = oracle.classifier(16), oracle.image(16).repeat(2, 1, 1, 1)
    maps = torch.zeros(2, 4, 4)
    maps[:, 1, 1] = 1.0
    runner = Runner(net, batch_size=8)
    scores = runner.scores(pixels)
    runner.counters.forwards = 0
    return MapBatch(Batch(net, pixels, torch.tensor([1, 0]), ["a", "b"], 0, runner), maps, scores)


def test_responses_are_scores_and_wins_of_each_image_at_each_count(given):
    assert len(given) == 2
    assert given.size == (16, 16)
    assert given.device == given.batch.pixels.device
    assert given.whole.score.tolist() == pytest.approx([0.98, 0.02])
    assert given.whole.correct.tolist() == [True, False]
    ranking = given.ranking("cells", "bilinear", "nearest")
    assert ranking.count == 16
    shown = given.respond("black", ranking, "below", [0, 1, 16])
    torch.testing.assert_close(shown.score, torch.tensor([[0.02, 0.98, 0.98], [0.98, 0.02, 0.02]]))
    assert shown.correct.tolist() == [[False, True, True], [True, False, False]]
    hidden = given.respond("black", ranking, "rest", [0, 1, 16])
    torch.testing.assert_close(hidden.score, torch.tensor([[0.98, 0.02, 0.02], [0.02, 0.98, 0.98]]))
    assert hidden.value("accuracy").tolist() == [[1, 0, 0], [0, 1, 1]]


def test_nothing_is_asked_twice(given):
    counters = given.batch.runner.counters
    ranking = given.ranking("cells", "bilinear", "nearest")
    given.respond("black", ranking, "below", [0, 1, 16])
    assert counters.forwards == 2 * 2  # the whole image is known
    given.respond("black", ranking, "below", [1, 0])
    given.respond("black", ranking, "rest", [16, 0])  # all but all is nothing, all but nothing is all
    assert counters.forwards == 2 * 2
    given.respond("gray", ranking, "below", [1])
    given.respond("black", ranking, "below", [1, 2])
    assert counters.forwards == 2 * 4
    mask = torch.full((2, 16, 16), 0.5)
    first = given.respond_through("black", mask, "half")
    again = given.respond_through("black", mask, "half")
    assert counters.forwards == 2 * 5
    assert torch.equal(first.score, again.score)
    assert given.once("key", lambda: 1) == given.once("key", lambda: 2) == 1


def test_rules_that_have_nothing_to_do_make_no_other_ranking(given):
    own = given.ranking("cells", "bilinear", "nearest")
    assert given.ranking(4, "nearest", "nearest") is own
    assert given.ranking("cells", "bilinear", "bilinear") is not own
    pixels = given.ranking("pixels", "nearest", "nearest")
    assert given.ranking(16, "nearest", "bilinear") is pixels
    assert given.ranking(16, "bilinear", "nearest") is not pixels
    with pytest.raises(OptionError, match="units=17 are 17×17 cells, more than the image has pixels"):
        given.ranking(17, "nearest", "nearest")


def test_a_metric_that_asks_the_model_has_to_say_so(given):
    given.whole_scores = None
    with pytest.raises(AssertionError, match="does not say so in needs="):
        given.respond("black", given.ranking("cells", "bilinear", "nearest"), "below", [1])
