"""The probe: right answers, nothing asked twice, bounded memory, and a model that is left as it was."""

import resource
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from suffice.errors import OptionError
from suffice.perturb import FloatMasks, Grid, Probe, RankMasks, Runner, make_baseline
from suffice.testing import AnyOf
from suffice.testing.snapshots import out_of_memory_above
from suffice.vision import Classifier
from tests.compiler import needs_compiler

MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)


class SmallNet(nn.Module):
    """A small real network, which also counts what passes through it."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Conv2d(8, 8, 3, stride=2),
            nn.ReLU(),
        )
        self.head = nn.Linear(8, 5)
        self.batches = []

    def forward(self, x):
        self.batches.append(len(x))
        return self.head(self.body(x).mean(dim=(2, 3))) * 3


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Classifier(SmallNet().eval(), size=28, mean=MEAN, std=STD)


@pytest.fixture
def images():
    return torch.rand(3, 3, 28, 28, generator=torch.Generator().manual_seed(1))


def literal(net, images, targets, masks, index, baseline="blur"):
    """One question at a time: mask pixels, normalize, look."""
    hidden = make_baseline(baseline, images, mean=net.mean)
    answers = []
    for i, mask in zip(index.tolist(), masks, strict=True):
        seen = images[i] * mask + hidden[i] * (1 - mask)
        normalized = (seen - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(STD).view(3, 1, 1)
        with torch.no_grad():
            answers.append(net.module(normalized[None]).softmax(dim=1)[0, targets[i]])
    return torch.stack(answers)


def test_region_answers_are_those_of_single_questions(net, images):
    probe = Probe(net, images, grid=7, batch_size=4)
    regions = torch.randint(1 << 49, (22,))
    index = torch.randint(3, (22,))
    masks = probe.grid.to_bits(regions).view(-1, 7, 7).float().repeat_interleave(4, 1).repeat_interleave(4, 2)
    expected = literal(net, images, probe.targets, masks, index)
    assert torch.allclose(probe.ask(index, regions), expected, atol=1e-6)
    assert torch.equal(probe.targets, net(images).argmax(dim=1))
    assert torch.allclose(probe.whole, net(images).amax(dim=1), atol=1e-6)


@pytest.mark.parametrize("channels_last", [False, True])
def test_float_and_rank_masks(net, images, channels_last):
    runner = Runner(net, batch_size=4, channels_last=channels_last)
    probe = Probe(net, images, baseline="black", runner=runner)
    index = torch.tensor([0, 2, 2, 1, 0])
    masks = torch.rand(5, 28, 28)
    expected = literal(net, images, probe.targets, masks, index, "black")
    assert torch.allclose(probe.ask(index, masks), expected, atol=1e-5)
    assert torch.allclose(probe.ask(index, FloatMasks(masks)), expected, atol=1e-5)

    ranks = torch.stack([torch.randperm(28 * 28).view(28, 28) for _ in range(3)])
    thresholds = torch.tensor([0, 10, 300, 784, 500])
    masks = (ranks[index] < thresholds[:, None, None]).float()
    expected = literal(net, images, probe.targets, masks, index, "black")
    assert torch.allclose(probe.ask(index, RankMasks(ranks, index, thresholds)), expected, atol=1e-5)


def test_small_float_masks_are_enlarged(net, images):
    probe = Probe(net, images)
    masks = torch.rand(4, 7, 7)
    large = torch.nn.functional.interpolate(masks[:, None], (28, 28), mode="bilinear")[:, 0]
    assert torch.allclose(probe.ask(1, masks), probe.ask(1, large), atol=1e-6)


def test_nothing_is_asked_twice(net, images):
    probe = Probe(net, images, batch_size=8)
    passed = probe.runner.module.batches
    assert sum(passed) == 3  # the whole images
    regions = torch.randint(1 << 49, (20,))
    index = torch.randint(3, (20,))
    first = probe.ask(index, regions)
    assert sum(passed) == 3 + 20
    assert torch.equal(probe.ask(index, regions), first)
    again = torch.arange(20).repeat(3)
    assert torch.equal(probe.ask(index[again], regions[again]), first[again])
    assert sum(passed) == 3 + 20
    counters = probe.counters
    assert (counters.questions, counters.remembered, counters.forwards) == (100, 80, 3 + 20)
    assert counters.seconds > 0
    assert torch.equal(probe.forwards, torch.bincount(index, minlength=3))


def test_the_same_region_of_another_image_is_another_question(net, images):
    probe = Probe(net, images)
    answers = probe.ask(torch.arange(3), torch.full((3,), 12345))
    assert probe.forwards.tolist() == [1, 1, 1]
    assert len(answers.unique()) == 3


def test_without_remembering_each_ask_goes_to_the_model(net, images):
    probe = Probe(net, images, remember=0)
    regions = torch.arange(1, 6)
    assert torch.equal(probe.ask(0, regions), probe.ask(0, regions))
    assert probe.forwards.tolist() == [10, 0, 0]


def test_batches_are_full(net, images):
    probe = Probe(net, images, batch_size=8)
    probe.runner.module.batches.clear()
    probe.ask(torch.arange(30) % 3, torch.arange(30) * 77 + 1)
    assert probe.runner.module.batches == [8, 8, 8, 6]


@pytest.mark.parametrize("batch_size", [1, 7, 64])
def test_batches_never_change_a_number(net, images, batch_size):
    index, regions = torch.arange(30) % 3, torch.arange(30) * 123457 + 1
    reference = Probe(net, images, batch_size=16).ask(index, regions)
    answers = Probe(net, images, batch_size=batch_size).ask(index, regions)
    assert torch.allclose(answers, reference, atol=1e-5)
    alone = Probe(net, images[1:2], batch_size=batch_size).ask(0, regions[index == 1])
    assert torch.allclose(alone, reference[index == 1], atol=1e-5)


@pytest.mark.parametrize("side", [1, 2, 8, 9, 14])
def test_other_grids(net, images, side):
    grid = Grid(side)
    probe = Probe(net, images, grid=side)
    assert torch.allclose(probe.ask(torch.arange(3), grid.full(3)), probe.whole, atol=1e-6)
    hidden = Probe(net, images, targets=probe.targets, grid=7).ask(torch.arange(3), Grid(7).empty(3))
    assert torch.allclose(probe.ask(torch.arange(3), grid.empty(3)), hidden, atol=1e-6)
    assert probe.forwards.tolist() == [2, 2, 2]


def test_soft_cells(net, images):
    probe = Probe(net, images, cells="soft", baseline="black")
    region = probe.grid.from_cells([(10, 11, 12)])
    masks = torch.nn.functional.interpolate(
        probe.grid.to_bits(region).float().view(1, 1, 7, 7), (28, 28), mode="bilinear", align_corners=True
    )[:, 0]
    assert torch.allclose(probe.ask(2, region), literal(net, images, probe.targets, masks, torch.tensor([2]), "black"))


def test_targets(net, images):
    index, regions = torch.tensor([0, 1, 2]), torch.tensor([5, 6, 7])
    by_class = [Probe(net, images, targets=c).ask(index, regions) for c in range(5)]
    assert torch.allclose(torch.stack(by_class).sum(dim=0), torch.ones(3), atol=1e-5)
    mixed = Probe(net, images, targets=[4, 0, 2]).ask(index, regions)
    assert torch.allclose(mixed, torch.stack([by_class[4][0], by_class[0][1], by_class[2][2]]), atol=1e-6)


def test_logits_as_score(net, images):
    logits = net.replace(score="logit")
    assert torch.allclose(Probe(logits, images).whole, net.logits(net.normalize(images)).amax(dim=1), atol=1e-5)


def test_batch_normalization_keeps_its_numbers_in_lower_precision(images):
    class Wide(torch.nn.Module):
        """Normalizes activations whose variance fp16 cannot hold."""

        def __init__(self):
            super().__init__()
            self.norm = torch.nn.BatchNorm2d(3)
            self.head = torch.nn.Linear(3, 2)
            self.norm.running_var.fill_(1e5)
            torch.nn.init.constant_(self.norm.weight, 300.0)

        def forward(self, x):
            return self.head(self.norm(x).mean(dim=(2, 3)))

    torch.manual_seed(0)
    net = Classifier(Wide(), size=28, mean=(0.0,) * 3, std=(1.0,) * 3, score="softmax")
    index, regions = torch.zeros(8, dtype=torch.long), torch.arange(8) * 37
    exact = Probe(net, images).ask(index, regions)
    rough = Probe(net, images, precision="fp16").ask(index, regions)
    assert exact.std() > 1e-4
    assert (rough - exact).abs().max() < 2e-3


def test_weights_too_large_for_a_precision_are_refused(images):
    class Huge(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.head = torch.nn.Linear(3, 2)
            torch.nn.init.constant_(self.head.weight, 1e5)

        def forward(self, x):
            return self.head(x.mean(dim=(2, 3)))

    net = Classifier(Huge(), size=28, mean=(0.0,) * 3, std=(1.0,) * 3)
    with pytest.raises(OptionError, match=r"head\.weight .* too large"):
        Probe(net, images, precision="fp16")


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_lower_precision_is_near_and_leaves_the_model_alone(net, images, precision):
    before = {k: v.clone() for k, v in net.module.state_dict().items()}
    index, regions = torch.arange(30) % 3, torch.arange(30) * 123457 + 1
    exact = Probe(net, images).ask(index, regions)
    rough = Probe(net, images, precision=precision).ask(index, regions)
    assert rough.dtype == torch.float32
    assert torch.allclose(rough, exact, atol=0.02)
    assert all(torch.equal(v, before[k]) and v.dtype == before[k].dtype for k, v in net.module.state_dict().items())


@needs_compiler
def test_compiled_answers_agree(net, images):
    index, regions = torch.arange(10) % 3, torch.arange(10) * 123457 + 1
    exact = Probe(net, images).ask(index, regions)
    # The body alone: counting calls in Python is nothing to compile.
    plain = Classifier(
        nn.Sequential(net.module.body, MeanPool(), net.module.head, Times3()), size=28, mean=MEAN, std=STD
    )
    probe = Probe(plain, images, compile=True, batch_size=4)
    assert torch.allclose(probe.ask(index, regions), exact, atol=1e-5)


class MeanPool(nn.Module):
    def forward(self, x):
        return x.mean(dim=(2, 3))


class Times3(nn.Module):
    def forward(self, x):
        return x * 3


def questions(kind):
    """Some questions about three images of 28×28 pixels, of each kind there is."""
    index, chance = torch.arange(30) % 3, torch.Generator().manual_seed(2)
    if kind == "regions":
        return index, torch.arange(30) * 123457 + 1
    if kind == "float masks":
        return index, torch.rand(30, 7, 7, generator=chance)
    ranks = torch.stack([torch.randperm(28 * 28, generator=chance).view(28, 28) for _ in range(3)])
    return index, RankMasks(ranks, index, torch.arange(30) * 25)


@pytest.mark.parametrize("kind", ["regions", "float masks", "ranks"])
def test_out_of_memory_halves_the_batch_and_says_so_once(net, images, kind):
    index, asked = questions(kind)
    free = Probe(net, images).respond(index, asked)
    probe = Probe(net, images, batch_size=16)
    module = probe.runner.module  # its own copy, as batch normalization is folded
    with out_of_memory_above(module, 5) as refused, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        limited = probe.respond(index, asked)
    assert refused[0] == 2  # at 16 and at 8
    assert [str(w.message) for w in warned] == ["Out of memory at batch size 16; going on with smaller batches."]
    assert probe.runner.batch_size == 4
    assert torch.allclose(limited.score, free.score, atol=1e-5)
    assert torch.equal(limited.correct, free.correct)
    assert probe.forwards.tolist() == [10, 10, 10]
    assert probe.counters.questions == 30


@pytest.mark.parametrize("most", [1, 2])
def test_also_whole_images_that_do_not_fit_at_once(net, images, most):
    with out_of_memory_above(net.module, most) as refused:
        probe = Probe(net, images)
    assert refused[0]
    assert torch.allclose(probe.whole, Probe(net, images).whole, atol=1e-6)


def test_other_errors_of_the_model_come_out(net, images):
    class Broken(SmallNet):
        def forward(self, x):
            raise RuntimeError("a bug in the model")

    with pytest.raises(RuntimeError, match="a bug in the model"):
        Probe(Classifier(Broken(), size=28, mean=MEAN, std=STD), images)


def test_the_model_stays_in_the_mode_it_was_in(net, images):
    net.module.train()
    net.module.body[1].eval()
    modes = [m.training for m in net.module.modules()]
    before = {k: v.clone() for k, v in net.module.state_dict().items()}
    probe = Probe(net, images)
    probe.ask(0, torch.arange(5))
    assert [m.training for m in net.module.modules()] == modes
    assert all(torch.equal(v, before[k]) for k, v in net.module.state_dict().items())


def test_oracle_answers_over_all_subsets():
    oracle = AnyOf([(0, 3), (5,)], grid=3)
    probe = Probe(oracle.classifier(30), oracle.image(30), targets=1, baseline="black", grid=3, batch_size=64)
    regions = torch.arange(1 << 9)
    expected = oracle.decide(probe.grid.to_bits(regions))
    assert torch.equal(probe.ask(0, regions) > 0.5, expected)


def test_many_questions_in_constant_memory():
    oracle = AnyOf([(17, 24), (30,)], grid=7)
    probe = Probe(
        oracle.classifier(14),
        oracle.image(14).expand(4, -1, -1, -1),
        targets=1,
        baseline="black",
        batch_size=4096,
    )
    generator = torch.Generator().manual_seed(0)
    count = 250_000
    regions, index = torch.randint(1 << 49, (count,), generator=generator), torch.arange(count) % 4
    probe.ask(index[:60_000], regions[:60_000])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answers = probe.ask(index, regions)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert int(probe.forwards.sum()) == count
    # The masked images alone would be 147 MB; sorting so many questions takes some room.
    assert grown < 90
    assert torch.equal(answers > 0.5, oracle.decide(probe.grid.to_bits(regions)))


def test_a_runner_may_be_shared_and_counts_for_all(net, images):
    runner = Runner(net, batch_size=8)
    one, two = Probe(net, images, runner=runner), Probe(net, images.flip(0), runner=runner)
    assert torch.allclose(one.whole, two.whole.flip(0), atol=1e-6)
    one.ask(0, torch.arange(4))
    assert one.counters is two.counters is runner.counters
    assert (runner.counters.questions, runner.counters.forwards) == (4, 3 + 3 + 4)
    assert two.forwards.tolist() == [0, 0, 0]


def test_exchanged_images_are_asked_anew(net, images):
    probe = Probe(net, images, batch_size=8)
    regions = torch.tensor([5, 6, 7])
    before = probe.ask(torch.arange(3), regions)
    fresh = torch.rand(1, 3, 28, 28, generator=torch.Generator().manual_seed(2))
    probe.exchange(torch.tensor([1]), fresh)
    after = probe.ask(torch.arange(3), regions)
    assert torch.equal(after[[0, 2]], before[[0, 2]])  # remembered
    alone = Probe(net, fresh)
    torch.testing.assert_close(after[1:2], alone.ask(0, regions[1:2]), atol=1e-6, rtol=0)
    torch.testing.assert_close(probe.whole[1:2], alone.whole, atol=1e-6, rtol=0)
    assert torch.equal(probe.targets[1:2], alone.targets)
    assert probe.forwards.tolist() == [1, 1, 1]


@pytest.mark.parametrize("target", [0, 1])
def test_a_response_says_whether_the_target_wins(target):
    oracle = AnyOf([(0, 3), (5,)], grid=3)
    probe = Probe(oracle.classifier(30), oracle.image(30), targets=target, baseline="black", grid=3)
    regions = torch.arange(1 << 9)
    yes = oracle.decide(probe.grid.to_bits(regions))
    for _ in range(2):  # asked, then remembered
        found = probe.respond(0, regions)
        assert found.correct.dtype == torch.bool
        assert torch.equal(found.correct, yes if target else ~yes)
        assert torch.equal(found.value("accuracy"), found.correct.float())
        assert found.value("score") is found.score
        assert torch.equal(found.score, probe.ask(0, regions))
    assert probe.counters.remembered == 3 * len(regions)


def test_scores_of_all_classes_agree_with_what_is_said_of_the_target(net, images):
    probe = Probe(net, images, targets=2, batch_size=3)
    regions = probe.grid.from_cells([(0, 1, 2), (), range(49), (24,)])
    index = torch.tensor([0, 1, 1, 0])
    before = probe.forwards.clone()
    scores, response = probe.scores(index, regions), probe.respond(index, regions)
    assert scores.shape == (4, probe.classes)
    torch.testing.assert_close(scores[:, 2], response.score)
    assert (scores.argmax(dim=1) == 2).tolist() == response.correct.tolist()
    assert (probe.forwards - before).sum() == 8  # what was asked for all classes is not remembered
    everything = torch.ones(2, 7, 7)
    torch.testing.assert_close(probe.scores(torch.tensor([0, 1]), everything)[:, 2], probe.whole[:2])
    assert probe.scores(0, regions[:0]).shape == (0, probe.classes)


def test_known_scores_of_whole_images_are_not_asked_for(net, images):
    known = net(images)
    probe = Probe(net, images, whole=known)
    assert probe.counters.forwards == 0
    assert torch.equal(probe.targets, known.argmax(dim=1))
    assert torch.equal(probe.whole, known.amax(dim=1))


def test_nothing_asked_nothing_answered(net, images):
    probe = Probe(net, images)
    answers = probe.respond(torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.long))
    assert (len(answers.score), len(answers.correct)) == (0, 0)


def test_images_are_named_by_a_number_a_list_or_an_array(net, images):
    probe, regions = Probe(net, images), torch.tensor([3, 9, 27])
    expected = probe.ask(torch.tensor([2, 0, 1]), regions)
    for index in ([2, 0, 1], (2, 0, 1), np.array([2, 0, 1])):
        assert torch.equal(probe.ask(index, regions), expected)
    for index in (1, np.int64(1), torch.tensor(1)):
        assert torch.equal(probe.ask(index, regions), probe.ask([1, 1, 1], regions))


def test_masks_of_truth_values(net, images):
    probe, masks = Probe(net, images), torch.rand(4, *net.size) > 0.5
    for some in (masks, masks[:, ::2, ::2]):
        torch.testing.assert_close(probe.ask(0, some), probe.ask(0, some.float()))
        torch.testing.assert_close(probe.scores(0, some), probe.scores(0, some.float()))


def test_mistakes_are_named(net, images):
    probe = Probe(net, images)
    with pytest.raises(OptionError, match=r"grid.from_cells.*not a list"):
        probe.ask(0, [(17, 24)])
    with pytest.raises(OptionError, match="images 0 to 2"):
        probe.ask(3, torch.arange(2))
    with pytest.raises(OptionError, match="one image index per question"):
        probe.ask(torch.zeros(3, dtype=torch.long), torch.arange(2))
    with pytest.raises(OptionError, match="precision"):
        Probe(net, images, precision="fp8")
    with pytest.raises(OptionError, match="batch_size"):
        Probe(net, images, batch_size=0)
    with pytest.raises(OptionError, match="does not fit"):
        Probe(net, images, grid=29)
    with pytest.raises(OptionError, match="no class 9"):
        Probe(net, images, targets=9)
    with pytest.raises(OptionError, match="2 targets were given for 3 images"):
        Probe(net, images, targets=[1, 2])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_the_gpu_answers_come_back_to_the_caller(net, images):
    expected = Probe(net, images).ask(0, torch.arange(50))
    net.to("cuda")
    probe = Probe(net, images)
    assert torch.allclose(probe.ask(0, torch.arange(50)), expected, atol=1e-4)
    assert probe.ask(0, torch.arange(50, device="cuda")).device.type == "cuda"


def test_questions_that_may_wait_are_left_out_of_incomplete_batches(net, images):
    probe, grid = Probe(net, images, batch_size=4), Grid(7)
    index = torch.tensor([0] * 5 + [1] * 5)
    regions = grid.from_cells([(cell,) for cell in range(10)])
    later = torch.tensor([0] * 5 + [2] * 3 + [1] * 2)
    batches = probe.runner.module.batches
    batches.clear()
    first = probe.respond(index, regions, later)
    assert int(first.waits.sum()) == 2
    assert set(later[first.waits].tolist()) == {2}  # the highest
    assert batches == [4, 4]
    assert first.new.tolist() == (~first.waits).tolist()
    again = probe.respond(index, regions, later)  # one batch is not enough to be full: nothing waits
    assert again.waits is None
    assert batches == [4, 4, 2]
    assert again.new.tolist() == first.waits.tolist()
    torch.testing.assert_close(again.score, Probe(net, images).ask(index, regions), atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(first.score[~first.waits], again.score[~first.waits], atol=0, rtol=0)


def test_what_must_be_answered_never_waits(net, images):
    probe, grid = Probe(net, images, batch_size=4), Grid(7)
    regions = grid.from_cells([(cell,) for cell in range(7)])
    answered = probe.respond(0, regions, torch.tensor([0, 0, 0, 0, 0, 0, 9]))
    assert answered.waits is None
    # The same question, once with time and once without.
    twice = probe.respond(1, regions[[0, 1, 2, 3, 4, 4]], torch.tensor([0, 0, 0, 0, 5, 0]))
    assert twice.waits is None


def test_room_for_images_that_come_later(net, images):
    probe = Probe(net, images[:1], slots=3)
    probe.exchange(torch.tensor([2]), images[1:2])
    regions = Grid(7).from_cells([(3, 4, 17), (3, 4, 17)])
    expected = Probe(net, images).ask(torch.tensor([0, 1]), regions)
    torch.testing.assert_close(probe.ask(torch.tensor([0, 2]), regions), expected, atol=1e-6, rtol=1e-5)
