"""Runs: what is learned, resumed, interrupted and distilled."""

import signal
import threading
from dataclasses import replace

import pytest
import torch
from torch import nn

from suffice.errors import CheckpointError, OptionError
from suffice.zoo.training import Examples, Recipe, Teacher, train, trainer

QUICK = Recipe(steps=60, batch=32, lr=0.01)
# Everything that draws random numbers at once.
BUSY = replace(QUICK, steps=23, mixup=0.2, erase=0.5, jitter=0.2, flip=True, crop=2, zoom=0.5, smoothing=0.1, ema=0.9)


def same(a: nn.Module, b: nn.Module) -> bool:
    pairs = zip(a.state_dict().values(), b.state_dict().values(), strict=True)
    return all(torch.equal(x, y) for x, y in pairs)


def test_learns_a_simple_problem(data, net):
    before = torch.get_rng_state()
    trained = train(net(), data, QUICK)
    assert trained.test_accuracy > 0.95
    assert trained.accuracy == trained.test_accuracy
    assert trained.validation_accuracy > 0.95
    assert trained.training_accuracy > 0.95
    assert trained.history[-1].loss < 0.5 * trained.history[0].loss
    assert [row.step for row in trained.history] == list(range(6, 61, 6))
    assert not trained.module.training
    assert torch.equal(torch.get_rng_state(), before)  # the caller's generator is left alone


def test_learns_with_all_augmentations_and_the_moving_average(data, net):
    recipe = replace(BUSY, steps=150, flip=False)  # mirrored, left is right
    assert train(net(), data, recipe).accuracy > 0.95


def test_bf16_learns_too(data, net):
    assert train(net(), data, replace(QUICK, precision="bf16")).accuracy > 0.95


def test_the_seed_decides_everything(data, net):
    first, again = (train(net(), data, BUSY) for _ in range(2))
    assert same(first.module, again.module)
    assert [r.loss for r in first.history] == [r.loss for r in again.history]
    assert not same(first.module, train(net(), data, replace(BUSY, seed=1)).module)


def test_a_set_smaller_than_a_batch_is_one_batch(data, net):
    trained = train(net(), replace(data, train=data.train[:20]), Recipe(steps=3, batch=512))
    assert trained.history[-1].step == 3


def test_epochs_count_whole_batches():
    assert Recipe(epochs=2, batch=100).total_steps(350) == 6
    assert Recipe(epochs=2, batch=100, steps=5).total_steps(350) == 5
    assert Recipe(epochs=2, batch=512).total_steps(10) == 2


def test_each_epoch_sees_every_image_once_in_another_order(data, net):
    from suffice.zoo.training.loop import Loop

    loop = Loop(net(), data, Recipe(steps=30, batch=24))
    epochs = []
    for _ in range(2):
        seen = []
        for _ in range(10):
            seen += loop._batch().tolist()
            loop.step += 1
        epochs.append(seen)
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(240))
    assert epochs[0] != epochs[1]


class Stopped(Exception):
    """Ends a run from outside, as a crash would."""


@pytest.mark.parametrize("stop", [7, 16])
def test_a_resumed_run_ends_with_the_same_bits(data, net, tmp_path, stop):
    whole = train(net(), data, BUSY)

    def crash(progress):
        if progress.step >= stop:
            raise Stopped

    path = tmp_path / "run" / "last.pt"
    with pytest.raises(Stopped):
        train(net(), data, BUSY, checkpoint=path, checkpoint_every=5, on_progress=crash)
    resumed = train(net(seed=9), data, BUSY, checkpoint=path, resume=True)
    assert same(whole.module, resumed.module)
    assert [r.loss for r in whole.history] == [r.loss for r in resumed.history]
    assert [r.validation for r in whole.history] == [r.validation for r in resumed.history]


def test_ctrl_c_finishes_the_step_saves_and_goes_on(data, net, tmp_path):
    path = tmp_path / "last.pt"
    handler = signal.getsignal(signal.SIGINT)

    def press(progress):
        if progress.step == 8:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(net(), data, BUSY, checkpoint=path, on_progress=press)
    assert signal.getsignal(signal.SIGINT) is handler
    assert torch.load(path, weights_only=True)["step"] == 8
    assert same(train(net(), data, BUSY, checkpoint=path, resume=True).module, train(net(), data, BUSY).module)


def test_a_run_pauses_when_it_is_told_to_and_goes_on(data, net, tmp_path):
    path, asked = tmp_path / "last.pt", []
    with pytest.raises(KeyboardInterrupt):
        train(net(), data, BUSY, checkpoint=path, pause=lambda: asked.append(1) or len(asked) == 7)
    assert torch.load(path, weights_only=True)["step"] == 7
    assert same(train(net(), data, BUSY, checkpoint=path, resume=True).module, train(net(), data, BUSY).module)
    train(
        net(), data, replace(QUICK, steps=1), checkpoint=path, pause=lambda: True
    )  # one that has ended is not cut off
    with pytest.raises(OptionError, match="pause= needs checkpoint="):
        train(net(), data, QUICK, pause=lambda: True)


def test_works_in_a_thread(data, net):
    done = []
    thread = threading.Thread(target=lambda: done.append(train(net(), data, replace(QUICK, steps=2))))
    thread.start()
    thread.join()
    assert len(done) == 1


def test_resuming_another_run_is_refused(data, net, tmp_path):
    path = tmp_path / "last.pt"
    with pytest.raises(CheckpointError, match="does not exist"):
        train(net(), data, QUICK, checkpoint=path, resume=True)
    train(net(), data, replace(QUICK, steps=4), checkpoint=path, checkpoint_every=2)
    with pytest.raises(CheckpointError, match=r"lr: 0\.01 and 0\.5"):
        train(net(), data, replace(QUICK, steps=4, lr=0.5), checkpoint=path, resume=True)
    with pytest.raises(CheckpointError, match="other images"):
        train(net(), replace(data, train=data.train[:100]), replace(QUICK, steps=4), checkpoint=path, resume=True)
    with pytest.raises(CheckpointError, match="not of other"):
        train(net(), data, replace(QUICK, steps=4), name="other", checkpoint=path, resume=True)
    path.write_bytes(b"oops")
    with pytest.raises(CheckpointError, match="not a readable checkpoint"):
        train(net(), data, QUICK, checkpoint=path, resume=True)
    with pytest.raises(OptionError, match="checkpoint="):
        train(net(), data, QUICK, resume=True)


def test_labels_are_permuted_by_the_seed_and_only_in_training(data):
    permuted, again, other = (data.with_permuted_labels(seed) for seed in (3, 3, 4))
    assert torch.equal(permuted.train.labels, again.train.labels)
    assert not torch.equal(permuted.train.labels, other.train.labels)
    assert torch.equal(permuted.train.labels.bincount(), data.train.labels.bincount())
    agreement = (permuted.train.labels == data.train.labels).double().mean()
    assert 0.2 < agreement < 0.5  # a third by chance
    assert torch.equal(permuted.train.pixels, data.train.pixels)
    assert permuted.validation is data.validation
    assert permuted.test is data.test


def test_permuted_labels_can_be_learned_by_heart_and_nothing_else(data):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 128), nn.ReLU(), nn.Linear(128, 3))
    trained = train(
        net, replace(data, train=data.train[:60]), Recipe(steps=200, batch=60, lr=0.01, permute_labels=True)
    )
    assert trained.training_accuracy > 0.95
    assert trained.validation_accuracy < 0.7
    assert "permuted" in trained.data


def test_a_run_ends_when_enough_is_learned(data, net):
    whole = train(net(), data, replace(QUICK, steps=400))
    early = train(net(), data, replace(QUICK, steps=400, enough=0.99))
    assert whole.history[-1].step == 400
    assert early.history[-1].step < 400
    assert early.history[-1].accuracy >= 0.99
    assert all(row.accuracy < 0.99 for row in early.history[:-1])
    assert early.training_accuracy > 0.95
    # What cannot be learned takes all steps.
    noise = data.with_permuted_labels(0)
    tried = train(nn.Sequential(nn.Flatten(), nn.Linear(192, 3)), noise, replace(QUICK, enough=1.0))
    assert tried.history[-1].step == QUICK.steps


def test_a_run_that_stops_is_the_beginning_of_the_whole(data, net):
    whole = train(net(), data, replace(QUICK, steps=40))
    half = train(net(), data, replace(QUICK, steps=40, stop=20))
    assert half.history[-1].step == 20
    same_step = next(row for row in whole.history if row.step == 20)
    assert half.history[-1].validation == pytest.approx(same_step.validation)
    assert not same(half.module, train(net(), data, replace(QUICK, steps=20)).module)  # another learning rate
    assert same(train(net(), data, replace(QUICK, steps=40, stop=99)).module, whole.module)


def test_shorter_runs_come_for_nothing(data, net):
    recipe, found = replace(BUSY, steps=20), {}

    def keep(earlier):
        weights = {name: value.clone() for name, value in earlier.module.state_dict().items()}
        found[earlier.recipe.stop] = weights, earlier.validation_accuracy, earlier.training_accuracy

    whole = train(net(), data, recipe, stops=(6, 14), on_stop=keep)
    assert set(found) == {6, 14}
    assert same(whole.module, train(net(), data, recipe).module)  # which it does not change
    for stop, (weights, validation, training) in found.items():
        short = train(net(), data, replace(recipe, stop=stop))
        assert all(torch.equal(value, weights[name]) for name, value in short.module.state_dict().items())
        assert (short.validation_accuracy, short.training_accuracy) == pytest.approx((validation, training))


def test_looks_are_at_images_of_all_classes(data, net, monkeypatch):
    order = data.validation.labels.argsort(stable=True)  # as files lie in folders
    by_class = replace(data, validation=data.validation[order], train=data.train[data.train.labels.argsort()])
    seen = []
    monkeypatch.setattr(trainer, "LOOK", 12)
    monkeypatch.setattr(trainer, "MOST", 15)
    monkeypatch.setattr(trainer, "accuracy", lambda module, some, *_, **__: seen.append(some.labels) or 0.5)
    train(net(), by_class, Recipe(steps=1, batch=8))
    assert [labels.bincount().tolist() for labels in seen] == [[4, 4, 4], [20, 20, 20], [20, 20, 20], [5, 5, 5]]


def test_training_images_may_have_more_detail(data, net):
    large = Examples(data.train.pixels.repeat_interleave(2, 2).repeat_interleave(2, 3), data.train.labels)
    fine = replace(data, train=large)
    assert fine.size == (8, 8)
    found, plain = (train(net(), one, QUICK) for one in (fine, data))
    assert found.accuracy > 0.95
    assert found.size == (8, 8)
    assert found.training_accuracy == pytest.approx(plain.training_accuracy)  # made smaller, it is the same images
    assert train(net(), fine, replace(QUICK, zoom=0.5)).accuracy > 0.95


def test_channels_last_changes_the_layout_and_little_else(data):
    def convolutions():
        torch.manual_seed(0)
        size = data.size[0] * data.size[1]
        return nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(4 * size, len(data.classes))
        )

    usual, last = (train(convolutions(), data, replace(QUICK, channels_last=layout)) for layout in (False, True))
    assert last.module[0].weight.is_contiguous(memory_format=torch.channels_last)
    assert not usual.module[0].weight.is_contiguous(memory_format=torch.channels_last)
    assert last.accuracy > 0.95


def test_a_run_that_ended_early_and_one_that_was_resumed_are_the_same(data, net, tmp_path):
    recipe = replace(QUICK, steps=400, enough=0.99)
    straight = train(net(), data, recipe)
    file = tmp_path / "state"

    def stop(row):
        if row.step >= straight.history[0].step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(net(), data, recipe, checkpoint=file, checkpoint_every=1, on_progress=stop)
    resumed = train(net(), data, recipe, checkpoint=file, resume=True)
    assert resumed.history[-1].step == straight.history[-1].step
    for mine, other in zip(resumed.module.parameters(), straight.module.parameters(), strict=True):
        assert torch.equal(mine, other)


def test_a_teacher_is_approached(data, net):
    taught = train(net(), data, QUICK)
    teacher = taught.as_teacher()
    torch.manual_seed(1)
    student = nn.Sequential(nn.Flatten(), nn.Linear(192, 3))
    pixels = data.validation.pixels.float() / 255

    @torch.no_grad()
    def distance(module):
        mine = module((pixels - 0.5) / 0.25).log_softmax(1)
        return float((teacher(pixels).softmax(1) - mine.exp()).abs().sum(1).mean())

    before = distance(student)
    # The labels say nothing, so what is learned comes from the teacher.
    blind = data.with_permuted_labels(0)
    recipe = replace(QUICK, teacher=teacher.name, distillation="soft", distill_weight=1.0)
    trained = train(student, blind, recipe, teacher=teacher)
    assert distance(trained.module) < 0.5 * before
    assert trained.accuracy > 0.9


def test_two_heads_learn_from_two_teachers(data, net, two_heads):
    teacher = train(net(), data, QUICK).as_teacher()
    recipe = replace(QUICK, teacher=teacher.name, permute_labels=True)
    trained = train(two_heads, data, recipe, teacher=teacher)
    assert not two_heads.distilled_training
    x = (data.test.pixels.float() / 255 - 0.5) / 0.25
    right = [(head(two_heads.body(x)).argmax(1) == data.test.labels).double().mean() for head in
             (trained.module.head, trained.module.head_dist)]  # fmt: skip
    assert right[1] > 0.95  # from the teacher
    assert right[0] < 0.8  # from permuted labels


def test_a_teacher_stays_as_it_is(data, net):
    module = net()
    teacher = Teacher(module, data.classes, data.mean, data.std)
    before = {k: v.clone() for k, v in module.state_dict().items()}
    train(net(1), data, replace(QUICK, steps=3, teacher="teacher"), teacher=teacher)
    assert all(torch.equal(v, before[k]) for k, v in module.state_dict().items())


def test_a_teacher_must_fit(data, net):
    stranger = Teacher(net(), ("a", "b", "c"), data.mean, data.std, "stranger")
    with pytest.raises(OptionError, match="stranger knows 3 classes"):
        train(net(), data, replace(QUICK, teacher="stranger"), teacher=stranger)
    with pytest.raises(OptionError, match="not given"):
        train(net(), data, replace(QUICK, teacher="stranger"))
    with pytest.raises(OptionError, match="give both or none"):
        train(net(), data, QUICK, teacher=stranger)


def test_divergence_is_said(data, net):
    broken = net()
    with torch.no_grad():
        broken[0].weight.fill_(float("inf"))
    with pytest.raises(OptionError, match="training diverged"):
        train(broken, data, QUICK)
