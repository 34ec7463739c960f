"""The checks find every kind of broken promise, and nothing else."""

from __future__ import annotations

import copy
import functools
import itertools
import random
from collections.abc import Callable
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from suffice.errors import OptionError
from suffice.testing import CHECKS, WeightedSum, check_all
from suffice.testing.snapshots import out_of_memory_above
from suffice.vision.batching import BatchLoop

Run = Callable[[nn.Module, Tensor], Tensor]


@pytest.fixture
def net() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(3, 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(4, 3),
        ).eval()


@pytest.fixture
def images() -> Tensor:
    pixels = torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    # From dark to bright, which one of the bad methods below relies on.
    return pixels * torch.linspace(0.4, 1.0, 4).view(-1, 1, 1, 1)


@contextmanager
def evaluating(net: nn.Module):
    training = [part for part in net.modules() if part.training]
    net.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True


def as_many_as_fit(run: Run) -> Run:
    """The same in smaller pieces where memory runs out."""

    @functools.wraps(run)
    def careful(net: nn.Module, images: Tensor) -> Tensor:
        loop = BatchLoop(len(images), images.device)
        return torch.cat(list(loop.run(len(images), lambda rows: run(net, images[rows]))))

    return careful


@as_many_as_fit
def saliency(net: nn.Module, images: Tensor) -> Tensor:
    """A method that keeps every promise."""
    with evaluating(net), torch.enable_grad():
        pixels = images.detach().clone().requires_grad_()
        (gradient,) = torch.autograd.grad(net(pixels).amax(dim=1).sum(), pixels)
    return gradient.abs().amax(dim=1)


@as_many_as_fit
@torch.no_grad()
def confidence(net: nn.Module, images: Tensor) -> Tensor:
    """A metric that keeps every promise, with two forwards."""
    with evaluating(net):
        return net(images).softmax(1)[:, 0] - net(images / 2).softmax(1)[:, 0]


def failing(run: Run, net: nn.Module, images: Tensor) -> set[str]:
    """The names that the messages of failing checks begin with."""
    failed = set()
    for check in CHECKS.values():
        try:
            check(run, net, images)
        except AssertionError as error:
            failed.add(str(error).split(":")[0])
    return failed


def test_the_list_of_checks_is_complete() -> None:
    assert list(CHECKS) == [
        "batch_invariance",
        "determinism",
        "order",
        "device",
        "dtype",
        "model_unchanged",
        "no_hooks_left",
        "grad_mode",
        "inputs_unchanged",
        "random_state",
        "memory",
    ]


@pytest.mark.parametrize("run", [saliency, confidence, lambda net, images: images.mean(dim=(1, 2, 3))])
def test_good_functions_pass(run: Run, net: nn.Module, images: Tensor) -> None:
    check_all(run, net, images)


def test_classifiers_are_accepted() -> None:
    oracle = WeightedSum({0: 1.0, 5: 2.0}, 1.5, grid=3, link="smooth")
    images = torch.stack([oracle.image(9, shade=seed) for seed in range(3)])

    @as_many_as_fit
    def gradient(net, pixels: Tensor) -> Tensor:
        with torch.enable_grad():
            pixels = pixels.detach().clone().requires_grad_()
            return torch.autograd.grad(net(pixels)[:, 1].sum(), pixels)[0].sum(dim=1)

    check_all(gradient, oracle.classifier(9), images)


def centered_over_the_batch(net: nn.Module, images: Tensor) -> Tensor:
    maps = saliency(net, images)
    return maps - maps.mean(dim=0)


def sorted_by_brightness(net: nn.Module, images: Tensor) -> Tensor:
    return saliency(net, images)[images.mean(dim=(1, 2, 3)).argsort()]


def a_bit_different_every_time() -> Run:
    calls = itertools.count()
    return lambda net, images: saliency(net, images) * (1 + 1e-6 * (next(calls) % 2))


def in_double_precision(net: nn.Module, images: Tensor) -> Tensor:
    return saliency(net, images).double()


def divided_by_zero(net: nn.Module, images: Tensor) -> Tensor:
    maps = saliency(net, images).clone()
    maps[:, 0, 0] = maps[:, 0, 0] * 0 / 0
    return maps


def infinite(net: nn.Module, images: Tensor) -> Tensor:
    maps = saliency(net, images).clone()
    maps[:, 0, 0] = torch.inf
    return maps


def leaves_evaluation_mode(net: nn.Module, images: Tensor) -> Tensor:
    net.eval()
    return saliency(net, images)


def uses_the_mode_it_finds(net: nn.Module, images: Tensor) -> Tensor:
    # In training mode the forward moves the running statistics; its own result comes from elsewhere.
    with torch.random.fork_rng():
        for image in images:
            net(image[None])
    return saliency(net, images)


def nudges_a_weight(net: nn.Module, images: Tensor) -> Tensor:
    weight = net[0].weight.data
    weight[0, 0, 0, 0] = torch.nextafter(weight[0, 0, 0, 0], weight.new_tensor(9.0))
    return saliency(net, images)


@as_many_as_fit
def collects_weight_gradients(net: nn.Module, images: Tensor) -> Tensor:
    with evaluating(net), torch.enable_grad():
        pixels = images.detach().clone().requires_grad_()
        net(pixels).amax(dim=1).sum().backward()
    return pixels.grad.abs().amax(dim=1)


def clears_weight_gradients(net: nn.Module, images: Tensor) -> Tensor:
    net.zero_grad()
    return saliency(net, images)


def freezes_weights(net: nn.Module, images: Tensor) -> Tensor:
    net.requires_grad_(False)
    return saliency(net, images)


def thaws_a_weight(net: nn.Module, images: Tensor) -> Tensor:
    net[0].bias.requires_grad_(True)
    return saliency(net, images)


def flips_a_switch(net: nn.Module, images: Tensor) -> Tensor:
    net[2].inplace = True
    return saliency(net, images)


def patches_a_forward(net: nn.Module, images: Tensor) -> Tensor:
    part = net[2]
    part.forward = lambda x: type(part).forward(part, x)
    return saliency(net, images)


def swaps_a_module(net: nn.Module, images: Tensor) -> Tensor:
    net[2] = nn.ReLU()
    return saliency(net, images)


def unfreezes_only_without_errors(net: nn.Module, images: Tensor) -> Tensor:
    wanted = [parameter.requires_grad for parameter in net.parameters()]
    net.requires_grad_(False)
    maps = saliency(net, images)
    for parameter, flag in zip(net.parameters(), wanted, strict=True):
        parameter.requires_grad_(flag)
    return maps


def leaves_a_hook(net: nn.Module, images: Tensor) -> Tensor:
    net[0].register_forward_hook(lambda *_: None)
    return saliency(net, images)


def leaves_a_hook_on_a_parameter(net: nn.Module, images: Tensor) -> Tensor:
    parameter = net[0].weight
    if parameter.requires_grad:
        parameter.register_hook(lambda gradient: gradient)
    return saliency(net, images)


def leaves_a_hook_on_all_modules(net: nn.Module, images: Tensor) -> Tensor:
    nn.modules.module.register_module_forward_hook(lambda *_: None)
    return saliency(net, images)


def removes_its_hook_only_without_errors(net: nn.Module, images: Tensor) -> Tensor:
    handle = net[-1].register_forward_hook(lambda *_: None)
    maps = saliency(net, images)
    handle.remove()
    return maps


@as_many_as_fit
def keeps_the_graph(net: nn.Module, images: Tensor) -> Tensor:
    with evaluating(net), torch.enable_grad():
        return net(images.detach().clone().requires_grad_())


@as_many_as_fit
def needs_gradients_enabled(net: nn.Module, images: Tensor) -> Tensor:
    with evaluating(net):
        pixels = images.detach().clone().requires_grad_()
        return torch.autograd.grad(net(pixels).amax(dim=1).sum(), pixels)[0]


@as_many_as_fit
def needs_trainable_weights(net: nn.Module, images: Tensor) -> Tensor:
    with evaluating(net), torch.enable_grad():
        scores = net(images)
        assert scores.requires_grad, "nothing to differentiate"
    return scores.detach()


def disables_gradients(net: nn.Module, images: Tensor) -> Tensor:
    torch.set_grad_enabled(False)
    return confidence(net, images)


def enables_gradients_again_only_without_errors(net: nn.Module, images: Tensor) -> Tensor:
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    values = confidence(net, images)
    torch.set_grad_enabled(before)
    return values


def writes_into_its_images(net: nn.Module, images: Tensor) -> Tensor:
    maps = saliency(net, images)
    images.detach().clamp_(0.1, 0.9)
    return maps


def asks_its_images_for_gradients(net: nn.Module, images: Tensor) -> Tensor:
    maps = saliency(net, images)
    images.requires_grad_()
    return maps


def leaves_a_gradient_on_its_images(net: nn.Module, images: Tensor) -> Tensor:
    if images.requires_grad:
        images.grad = torch.zeros_like(images)
    return saliency(net, images)


def draws(source: Callable[[], object]) -> Run:
    def run(net: nn.Module, images: Tensor) -> Tensor:
        source()
        return saliency(net, images)

    return run


def puts_all_through_at_once(net: nn.Module, images: Tensor) -> Tensor:
    with evaluating(net), torch.no_grad():
        return net(images)


def gives_up_where_memory_runs_out(net: nn.Module, images: Tensor) -> Tensor:
    try:
        return puts_all_through_at_once(net, images)
    except torch.cuda.OutOfMemoryError:
        return torch.zeros(len(images), 3, device=images.device)


def forgets_what_did_not_fit(net: nn.Module, images: Tensor) -> Tensor:
    """Goes on from there, and not from what was refused."""
    try:
        return puts_all_through_at_once(net, images)
    except torch.cuda.OutOfMemoryError:
        first = puts_all_through_at_once(net, images[:1])
        return torch.cat([first, first.expand(len(images) - 1, -1)])


BAD: list[tuple[str, Run]] = [
    ("batch_invariance", centered_over_the_batch),
    ("determinism", a_bit_different_every_time()),
    ("order", sorted_by_brightness),
    ("dtype", in_double_precision),
    ("dtype", divided_by_zero),
    ("dtype", infinite),
    ("model_unchanged", leaves_evaluation_mode),
    ("model_unchanged", uses_the_mode_it_finds),
    ("model_unchanged", nudges_a_weight),
    ("model_unchanged", collects_weight_gradients),
    ("model_unchanged", clears_weight_gradients),
    ("model_unchanged", freezes_weights),
    ("model_unchanged", thaws_a_weight),
    ("model_unchanged", flips_a_switch),
    ("model_unchanged", patches_a_forward),
    ("model_unchanged", swaps_a_module),
    ("model_unchanged", unfreezes_only_without_errors),
    ("no_hooks_left", leaves_a_hook),
    ("no_hooks_left", leaves_a_hook_on_a_parameter),
    ("no_hooks_left", leaves_a_hook_on_all_modules),
    ("no_hooks_left", removes_its_hook_only_without_errors),
    ("grad_mode", keeps_the_graph),
    ("grad_mode", needs_gradients_enabled),
    ("grad_mode", needs_trainable_weights),
    ("grad_mode", disables_gradients),
    ("grad_mode", enables_gradients_again_only_without_errors),
    ("inputs_unchanged", writes_into_its_images),
    ("inputs_unchanged", asks_its_images_for_gradients),
    ("inputs_unchanged", leaves_a_gradient_on_its_images),
    ("random_state", draws(lambda: torch.rand(1))),
    ("random_state", draws(lambda: torch.manual_seed(0))),
    ("random_state", draws(lambda: np.random.rand())),  # noqa: NPY002
    ("random_state", draws(random.random)),
    ("memory", puts_all_through_at_once),
    ("memory", gives_up_where_memory_runs_out),
    ("memory", forgets_what_did_not_fit),
]


@pytest.mark.parametrize(
    ("name", "run"),
    BAD,
    ids=[f"{name}-{getattr(run, '__name__', '')}-{i}" for i, (name, run) in enumerate(BAD)],
)
def test_bad_functions_fail_just_their_check(name: str, run: Run, net: nn.Module, images: Tensor) -> None:
    assert failing(run, net, images) == {name}


def test_results_elsewhere_fail(net: nn.Module, images: Tensor) -> None:
    with pytest.raises(AssertionError, match="images on cpu gave results on meta"):
        CHECKS["device"](lambda net, images: saliency(net, images).to("meta"), net, images)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_results_left_on_the_host_fail_where_there_is_a_gpu(net: nn.Module, images: Tensor) -> None:
    check_all(saliency, net, images)
    check_all(saliency, net.cuda(), images.cuda())
    with pytest.raises(AssertionError, match="gave results on cpu"):
        CHECKS["device"](lambda net, images: saliency(net, images).cpu(), net, images)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda images: images.mean(), r"4 images gave a result of shape \(\)"),
        (lambda images: images[:1], "expected one entry per image"),
        (lambda images: images.tolist(), "expected a tensor, got list"),
    ],
)
def test_results_must_be_one_entry_per_image(result, message: str, net: nn.Module, images: Tensor) -> None:
    for name in ("determinism", "dtype", "device", "model_unchanged"):
        with pytest.raises(AssertionError, match=message):
            CHECKS[name](lambda net, images: result(images), net, images)


def test_errors_may_not_be_swallowed(net: nn.Module, images: Tensor) -> None:
    def careless(net: nn.Module, images: Tensor) -> Tensor:
        try:
            return saliency(net, images)
        except RuntimeError:
            return torch.zeros(len(images), 8, 8)

    with pytest.raises(AssertionError, match="was swallowed"):
        CHECKS["model_unchanged"](careless, net, images)


def test_a_model_refuses_what_does_not_fit_and_is_free_again_afterwards(net: nn.Module, images: Tensor) -> None:
    with out_of_memory_above(net, 2) as refused:
        assert net(images[:2]).shape == (2, 3)
        with pytest.raises(torch.cuda.OutOfMemoryError, match="4 inputs, and no more than 2 fit"):
            net(images)
        with pytest.raises(torch.cuda.OutOfMemoryError):
            copy.deepcopy(net)(images)  # a method that works on a copy has no more room
        assert refused == [2]
    assert net(images).shape == (4, 3)


def test_memory_is_checked_down_to_single_inputs(net: nn.Module, images: Tensor) -> None:
    sizes = []

    @as_many_as_fit
    def run(net: nn.Module, images: Tensor) -> Tensor:
        values = puts_all_through_at_once(net, images)
        sizes.append(len(images))
        return values

    CHECKS["memory"](run, net, images)
    assert sizes == [4, 1, 1, 1, 1, 2, 2]


def test_small_results_are_compared_at_their_own_scale(net: nn.Module, images: Tensor) -> None:
    with pytest.raises(AssertionError, match="batch_invariance"):
        CHECKS["batch_invariance"](lambda *a: centered_over_the_batch(*a) * 1e-4, net, images)


def test_tolerance_is_the_callers_choice(net: nn.Module, images: Tensor) -> None:
    def slightly_off(net: nn.Module, images: Tensor) -> Tensor:
        return saliency(net, images) * (1 + 1e-4 * len(images))

    with pytest.raises(AssertionError, match="batch_invariance"):
        CHECKS["batch_invariance"](slightly_off, net, images)
    CHECKS["batch_invariance"](slightly_off, net, images, tolerance=1e-2)


def test_check_all_reports_every_broken_promise_and_crash(net: nn.Module, images: Tensor) -> None:
    def run(net: nn.Module, images: Tensor) -> Tensor:
        if len(images) == 1:
            raise ValueError("one image is too few")
        torch.rand(1)
        return saliency(net, images).double()

    with pytest.raises(AssertionError) as caught:
        check_all(run, net, images)
    report = str(caught.value)
    assert report.startswith("6 of 11 checks failed:")
    assert "- batch_invariance: raised ValueError: one image is too few" in report
    assert "- dtype: results are torch.float64" in report
    assert "- random_state: the global random state of torch has moved" in report


def test_checks_can_be_skipped_by_name(net: nn.Module, images: Tensor) -> None:
    check_all(in_double_precision, net, images, skip=["dtype"])
    with pytest.raises(OptionError, match="'speed'"):
        check_all(saliency, net, images, skip=["speed"])


def test_one_image_is_not_enough_to_check_batches(net: nn.Module, images: Tensor) -> None:
    with pytest.raises(OptionError, match="at least two images"):
        check_all(saliency, net, images[:1])
    with pytest.raises(OptionError, match=r"torch\.nn\.Module"):
        check_all(lambda net, images: images, object(), images)


def test_checks_leave_the_callers_things_alone(net: nn.Module, images: Tensor) -> None:
    def wreck(net: nn.Module, images: Tensor) -> Tensor:
        net.train()
        net[0].weight.data.zero_()
        net[0].register_forward_hook(lambda *_: None)
        nn.modules.module.register_module_forward_hook(lambda *_: None)
        torch.set_grad_enabled(False)
        torch.manual_seed(3)
        np.random.seed(3)  # noqa: NPY002
        random.seed(3)
        images.zero_()
        return images.mean(dim=(1, 2, 3))

    weights = {name: value.clone() for name, value in net.state_dict().items()}
    pixels = images.clone()
    generators = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    for name in ("model_unchanged", "no_hooks_left", "grad_mode", "inputs_unchanged", "random_state"):
        with pytest.raises(AssertionError, match=name):
            CHECKS[name](wreck, net, images)
    assert all(torch.equal(value, weights[name]) for name, value in net.state_dict().items())
    assert not any(part.training or part._forward_hooks for part in net.modules())
    assert not nn.modules.module._global_forward_hooks
    assert torch.is_grad_enabled()
    assert torch.equal(images, pixels)
    assert torch.equal(torch.get_rng_state(), generators[0])
    assert (np.random.get_state()[1] == generators[1]).all()  # noqa: NPY002
    assert random.getstate() == generators[2]
