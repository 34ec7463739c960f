"""What metrics ask together is asked once, and in full batches."""

import pytest
import torch

from suffice.metrics import find_metric, measure
from suffice.metrics.protocols import all_protocols
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
