"""The batch: its parts are as the whole, whatever is asked of it."""

import pytest
import torch

from suffice.errors import OptionError
from suffice.perturb import Batch, Runner, make_baseline
from suffice.testing import AnyOf
from suffice.testing.snapshots import out_of_memory_above
from suffice.vision.identity import image_seed
from tests.attribution.nets import pictures, small_cnn

TARGETS, IDS = torch.tensor([1, 4, 2, 0, 3]), list("abcde")


@pytest.fixture
def batch():
    net = small_cnn()
    net.module.requires_grad_(False)
    return Batch(net, pictures(5), TARGETS, IDS, 7, Runner(net, batch_size=8).variant("gradients"))


def test_parts_are_as_the_whole(batch):
    part = batch[1:4]
    assert len(part) == 3
    assert part.net is batch.net
    assert part.runner is batch.runner
    assert list(part.ids) == ["b", "c", "d"]
    assert torch.equal(part.targets, TARGETS[1:4])
    assert torch.equal(part.seeds, batch.seeds[1:4])
    torch.testing.assert_close(part.inputs, batch.inputs[1:4])
    for name in ("blur", "noise"):
        torch.testing.assert_close(part.baseline(name), batch.baseline(name)[1:4])
    torch.testing.assert_close(part.outputs(part.inputs), batch.outputs(batch.inputs)[1:4], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(part.gradients(part.inputs), batch.gradients(batch.inputs)[1:4], atol=1e-6, rtol=1e-4)
    again = part[1:]  # a part of a part
    assert again.index.tolist() == [2, 3]
    assert again.total == 5
    assert batch[:] is batch
    assert batch[0:5] is batch


def test_seeds_are_those_of_the_images(batch):
    assert batch.seeds.tolist() == [image_seed(7, i) for i in IDS]
    torch.testing.assert_close(batch.inputs, batch.net.normalize(batch.pixels))


def test_baselines_given_for_all_images_follow_their_parts(batch):
    given = torch.rand(5, 3, 32, 32)
    torch.testing.assert_close(batch[3:].baseline(given), given[3:])
    torch.testing.assert_close(batch[3:][1:].baseline(given), given[4:])
    one = torch.rand(1, 3, 32, 32)
    torch.testing.assert_close(batch[3:].baseline(one), one.expand(2, -1, -1, -1))
    with pytest.raises(OptionError, match="2 baseline images were given for 5 images"):
        batch[3:].baseline(given[:2])
    expected = make_baseline("noise", batch.pixels, mean=batch.net.mean, ids=IDS, seed=7)
    torch.testing.assert_close(batch.baseline("noise"), expected)


@pytest.mark.parametrize("output", ["logit", "score"])
def test_outputs_and_gradients_by_autograd(batch, output):
    leaf = batch.inputs.clone().requires_grad_()
    logits = batch.net.module(leaf)
    wanted = (logits if output == "logit" else logits.softmax(dim=1)).gather(1, TARGETS[:, None])[:, 0]
    torch.testing.assert_close(batch.outputs(batch.inputs, output), wanted.detach(), atol=1e-6, rtol=1e-5)
    expected = torch.autograd.grad(wanted.sum(), leaf)[0]
    torch.testing.assert_close(batch.gradients(batch.inputs, output), expected, atol=1e-6, rtol=1e-4)
    # Several versions of all images, one after the other.
    both = torch.cat([batch.inputs, batch.inputs.flip(3)])
    found = batch.gradients(both, output)
    torch.testing.assert_close(found[:5], expected, atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(found[5:], batch.gradients(batch.inputs.flip(3), output), atol=1e-6, rtol=1e-4)
    assert not batch.inputs.requires_grad


def test_a_model_without_gradients_is_told(batch):
    oracle = AnyOf([(5,)], grid=4)
    net = oracle.classifier(32)
    one = Batch(net, oracle.image(32), torch.tensor([1]), ["a"], 0, Runner(net).variant("gradients"))
    with pytest.raises(OptionError, match="have no gradient with respect to the pixels"):
        one.gradients(one.inputs)


@pytest.mark.parametrize("most", [None, 11, 6, 5])
def test_sums_over_versions_take_as_many_as_fit(batch, most):
    expected = sum(batch.gradients(batch.inputs * weight) for weight in range(7))
    seen = []

    def work(versions):
        seen.append(len(versions))
        return batch.gradients(torch.cat([batch.inputs * weight for weight in versions]))

    with out_of_memory_above(batch.net.module, 1000 if most is None else most):
        total = batch.sum_over(7, work)
    assert set(seen) == {1}  # 8 inputs at once are one version of five images
    torch.testing.assert_close(total, expected, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(batch.mean_over(7, work), expected / 7, atol=1e-5, rtol=1e-4)


def test_several_versions_go_through_at_once(batch):
    batch.runner = Runner(batch.net, batch_size=16).variant("gradients")
    seen = []

    def work(versions):
        seen.append(list(versions))
        return batch.outputs(torch.cat([batch.inputs * weight for weight in versions]))

    with torch.no_grad():
        free = batch.sum_over(7, work)
        assert seen == [[0, 1, 2], [3, 4, 5], [6]]
        seen.clear()
        with out_of_memory_above(batch.net.module, 10) as refused:
            limited = batch.sum_over(7, work)
    assert refused[0] == 1
    assert sorted(v for versions in seen[1:] for v in versions) == list(range(7))
    torch.testing.assert_close(limited, free, atol=1e-5, rtol=1e-4)


def test_its_probe_asks_about_its_images_and_counts(batch):
    part = batch[1:3]
    probe = part.probe("black", grid=4, output="logit")
    everything = probe.grid.full(2)
    logits = batch.net.logits(part.inputs).gather(1, part.targets[:, None])[:, 0]
    torch.testing.assert_close(probe.ask(torch.arange(2), everything), logits, atol=1e-5, rtol=1e-4)
    assert probe.runner is batch.runner
    assert batch.runner.counters.forwards == 2 + 2  # the whole images, and as often what was asked


def test_activations_are_those_of_the_users_module(batch):
    found = batch.activations(["first", "second"])
    first = batch.net.module.first(batch.inputs)
    torch.testing.assert_close(found["first"], first)
    torch.testing.assert_close(found["second"], batch.net.module.second(first))
    assert batch.runner.counters.forwards == 5
    assert not batch.net.module.first._forward_hooks
