"""The promises that every attribution method and metric keeps, as checks that anybody can run.

A check takes ``run(net, images)``, a function from a classifier and pixels [N, 3, H, W] to one result per
image [N, ...], and raises AssertionError with the broken promise in words. Checks work on copies of the
classifier and put global state back, so that a bad method cannot spoil the next check::

    import pytest
    from suffice.testing import CHECKS

    @pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
    def test_my_method_keeps_its_promises(check):
        check(lambda net, images: my_method(net, images), net, images)
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import wraps
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from suffice.errors import OptionError
from suffice.testing.snapshots import (
    Interruption,
    hooks,
    in_use,
    model_state,
    module_of,
    on_every_call,
    out_of_memory_above,
    random_states,
    same_bits,
    workbench,
)

Run = Callable[[Any, Tensor], Tensor]
"""The function under test: (classifier, pixels [N, 3, H, W]) -> Tensor [N, ...]."""

# Results that are nothing but rounding error around zero may differ by this much whatever their scale.
NOISE = 1e-7


class Check(Protocol):
    """One promise: raises AssertionError if ``run`` breaks it."""

    __name__: str

    def __call__(self, run: Run, net: Any, images: Tensor, tolerance: float = 1e-5) -> None:
        """Check the promise on ``images``; ``tolerance`` is relative to the largest result."""


CHECKS: dict[str, Check] = {}
"""All checks by name, in the order in which :func:`check_all` runs them."""


def check_all(run: Run, net: Any, images: Tensor, tolerance: float = 1e-5, skip: Collection[str] = ()) -> None:
    """Run all checks, and report every promise that is broken.

    Args:
        run: the function under test, (classifier, pixels [N, 3, H, W]) -> Tensor [N, ...].
        net: a classifier, or a plain module.
        images: pixels [N, 3, H, W] on the device of ``net``, at least two different images.
        tolerance: allowed difference, relative to the largest magnitude among the results.
        skip: names of checks to leave out.

    Raises:
        AssertionError: names each check that failed and says why.
        OptionError: if ``skip`` has a name that is no check, or there are fewer than two images.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 2))
        >>> def brightness(net, images):
        ...     return images.mean(dim=(1, 2, 3))
        >>> check_all(brightness, net, torch.rand(3, 3, 2, 2))
    """
    unknown = sorted(set(skip) - set(CHECKS))
    if unknown:
        raise OptionError(f"skip names {unknown}, which are not checks; there are {list(CHECKS)}")
    chosen = {name: check for name, check in CHECKS.items() if name not in skip}
    failures: dict[str, Exception] = {}
    for name, check in chosen.items():
        try:
            check(run, net, images, tolerance)
        except OptionError:
            raise
        except AssertionError as error:
            failures[str(error)] = error
        except Exception as error:
            failures[f"{name}: raised {type(error).__name__}: {error}"] = error
    if failures:
        report = "\n- ".join([f"{len(failures)} of {len(chosen)} checks failed:", *failures])
        raise AssertionError(report) from next(iter(failures.values()))


def _promise(check: Check) -> Check:
    """Put a check on the list, and its name before what it says is broken."""

    @wraps(check)
    def named(run: Run, net: Any, images: Tensor, tolerance: float = 1e-5) -> None:
        try:
            check(run, net, images, tolerance)
        except AssertionError as error:
            raise AssertionError(f"{check.__name__}: {error}") from error

    CHECKS[check.__name__] = named
    return named


@_promise
def batch_invariance(run: Run, net: Any, images: Tensor, tolerance: float = 1e-5) -> None:
    """An image alone, in half the batch and in the whole batch has the same result."""
    _several(images)
    with workbench(net) as copied:
        together = _results(run, copied, images)
        for index in range(len(images)):
            alone = _results(run, copied, images[index : index + 1])
            same = together[index : index + 1]
            _agree(alone, same, tolerance, f"image {index} alone and among {len(images)} images")
        for part in (slice(None, len(images) // 2), slice(len(images) // 2, None)):
            half = _results(run, copied, images[part])
            _agree(half, together[part], tolerance, "half of the batch and the whole batch")


@_promise
def determinism(run: Run, net: Any, images: Tensor, tolerance: float = 1e-5) -> None:
    """Twice the same call, twice the same result: bit for bit on the CPU, else within the tolerance."""
    with workbench(net) as copied:
        first = _results(run, copied, images).clone()
        second = _results(run, copied, images)
    if first.device.type == "cpu":
        assert same_bits(first, second), (
            f"two identical calls differ by up to {_difference(first, second):.3g}; "
            "derive every random number from a seed argument"
        )
    else:
        # Some CUDA kernels add in whatever order threads finish.
        _agree(second, first, tolerance, "the second and the first of two identical calls")


@_promise
def order(run: Run, net: Any, images: Tensor, tolerance: float = 1e-5) -> None:
    """Results follow their images when the images change places."""
    _several(images)
    with workbench(net) as copied:
        straight = _results(run, copied, images)
        forward = torch.arange(len(images), device=images.device)
        for name, places in (("reversed", forward.flip(0)), ("rotated", forward.roll(1))):
            moved = _results(run, copied, images[places])
            _agree(moved, straight[places.to(straight.device)], tolerance, f"{name} and original images")


@_promise
def device(run: Run, net: Any, images: Tensor, tolerance: float = 1e-5) -> None:
    """Results lie on the device of the images; also on the GPU, where there is one."""
    for place in sorted({images.device.type, "cuda" if torch.cuda.is_available() else "cpu"}):
        with workbench(net) as copied:
            there = images.to(place)
            result = _results(run, copied.to(place), there)
            assert result.device == there.device, (
                f"images on {there.device} gave results on {result.device}; they should stay together"
            )


@_promise
def dtype(run: Run, net: Any, images: Tensor, tolerance: float = 1e-5) -> None:
    """Results are float32, without NaN or infinity."""
    with workbench(net) as copied:
        result = _results(run, copied, images)
    assert result.dtype == torch.float32, f"results are {result.dtype}, expected torch.float32"
    broken = int((~torch.isfinite(result)).sum())
    assert broken == 0, f"{broken} of {result.numel()} values are NaN or infinite; give them a defined value"


@_promise
def model_unchanged(run: Run, net: Any, images: Tensor, tolerance: float = 1e-5) -> None:
    """The model is bit for bit as before: weights, buffers, gradients, modes, switches, also after an error.

    Tried as the model comes; then in training mode, with every other parameter frozen and gradients from
    earlier work; then once more with an error in the middle of the work.
    """
    _left_alone(run, net, images, model_state)


@_promise
def no_hooks_left(run: Run, net: Any, images: Tensor, tolerance: float = 1e-5) -> None:
    """No hook stays behind on the model, its parameters, or all modules; also not after an error."""
    _left_alone(run, net, images, hooks)


@_promise
def grad_mode(run: Run, net: Any, images: Tensor, tolerance: float = 1e-5) -> None:
    """Gradient mode is as before, results carry no graph; ``no_grad`` and frozen weights do not matter."""
    with workbench(net) as copied:
        free = _results(run, copied, images)
        assert torch.is_grad_enabled(), "gradients were enabled before and are disabled afterwards"
        assert not free.requires_grad, "results require gradients; detach them"
        with torch.no_grad():
            inside = _works(run, copied, images, "under torch.no_grad()")
            assert not torch.is_grad_enabled(), "gradients were disabled before and are enabled afterwards"
        assert not inside.requires_grad, "results require gradients under no_grad; detach them"
        _agree(inside, free, tolerance, "results inside and outside torch.no_grad()")
        module_of(copied).requires_grad_(False)
        frozen = _works(run, copied, images, "on a model with frozen weights")
        _agree(frozen, free, tolerance, "results with frozen and with trainable weights")
    _survives_errors(run, net, images, lambda net: {"whether gradients are enabled": torch.is_grad_enabled()})


@_promise
def inputs_unchanged(run: Run, net: Any, images: Tensor, tolerance: float = 1e-5) -> None:
    """The pixels handed in keep their values, and neither ask for gradients nor collect any."""
    for wanted in (False, True):
        given = images.detach().clone().requires_grad_(wanted)
        before = given.detach().clone()
        with workbench(net) as copied:
            run(copied, given)
        assert same_bits(before, given.detach()), (
            f"the images were changed in place, by up to {_difference(before, given.detach()):.3g}"
        )
        assert given.requires_grad == wanted, (
            f"requires_grad of the images was {wanted} and is {given.requires_grad}; work on images.detach().clone()"
        )
        assert given.grad is None, "the images have collected a gradient; use torch.autograd.grad"


@_promise
def random_state(run: Run, net: Any, images: Tensor, tolerance: float = 1e-5) -> None:
    """The global random numbers of torch, numpy and Python go on as if nothing had happened."""
    with workbench(net) as copied:
        # Not where a fresh seed would be, or a method that seeds anew would go unnoticed.
        torch.rand(1), random.random(), np.random.rand()  # noqa: NPY002
        before = random_states()
        _results(run, copied, images)
        after = random_states()
    for name, state in before.items():
        assert state == after[name], f"the global random state of {name} has moved; draw from a generator of your own"


@_promise
def memory(run: Run, net: Any, images: Tensor, tolerance: float = 1e-5) -> None:
    """A model that itself runs out of memory above so many inputs gives the same results as without that limit."""
    with workbench(net) as copied:
        free = _results(run, copied, images)
    for most in sorted({1, (len(images) + 1) // 2}):
        with workbench(net) as copied, out_of_memory_above(module_of(copied), most) as refused:
            limited = _works(run, copied, images, f"where no more than {most} inputs fit")
        _agree(limited, free, tolerance, f"results where {most} inputs fit at once, {refused[0]} times refused,")


def _left_alone(run: Run, net: Any, images: Tensor, look: Callable[[Any], dict[str, object]]) -> None:
    """What ``look`` sees is the same before and after work: as the model comes, in use, and with an error."""
    for training, moment in ((False, "afterwards"), (True, "afterwards, having begun in training mode")):
        with workbench(net) as copied:
            if training:
                in_use(copied)
            before = look(copied)
            _results(run, copied, images)
            _unchanged(before, look(copied), moment)
    _survives_errors(run, net, images, look)


def _survives_errors(run: Run, net: Any, images: Tensor, look: Callable[[Any], dict[str, object]]) -> None:
    """What ``look`` sees is the same before and after work that fails, early, midway or at the end.

    The error comes from the first, a middle or the last call of a module, during the work on one image.
    """
    first = images[:1]
    with workbench(net) as copied, on_every_call(module_of(copied), None) as counted:
        _results(run, copied, first)
    calls = counted[0]
    for fail_at in sorted({1, (calls + 1) // 2, calls} - {0}):
        moment = f"an error in module call {fail_at} of {calls}"
        with workbench(net) as copied:
            in_use(copied)
            before = look(copied)
            with on_every_call(module_of(copied), fail_at) as counted, suppress(Interruption):
                _results(run, copied, first)
                assert counted[0] < fail_at, f"{moment} was swallowed; let it through"
            _unchanged(before, look(copied), f"after {moment}")


def _several(images: Tensor) -> None:
    if images.ndim != 4 or len(images) < 2:
        raise OptionError(f"images have shape {tuple(images.shape)}; expected [N, 3, H, W] with at least two images")


def _results(run: Run, net: Any, images: Tensor) -> Tensor:
    # A copy, so that a method that writes into its images spoils no other call.
    result = run(net, images.detach().clone())
    assert isinstance(result, Tensor), f"expected a tensor, got {type(result).__name__}"
    assert result.shape[:1] == images.shape[:1], (
        f"{len(images)} images gave a result of shape {tuple(result.shape)}; expected one entry per image"
    )
    return result


def _works(run: Run, net: Any, images: Tensor, circumstance: str) -> Tensor:
    """Results where an error is a broken promise of its own."""
    try:
        return _results(run, net, images)
    except Exception as error:
        raise AssertionError(f"{circumstance} it raised {type(error).__name__}: {error}") from error


def _difference(one: Tensor, other: Tensor) -> float:
    """Largest absolute difference; equal infinities and shared NaNs do not differ, all other NaNs do."""
    one, other = one.detach().cpu().double(), other.detach().cpu().double()
    same = (one == other) | (one.isnan() & other.isnan())
    gap = (one - other).abs().nan_to_num(nan=torch.inf, posinf=torch.inf)
    return float(gap.masked_fill(same, 0.0).max()) if one.numel() else 0.0


def _agree(found: Tensor, expected: Tensor, tolerance: float, what: str) -> None:
    assert found.shape == expected.shape, (
        f"{what} have results of different shapes, {tuple(found.shape)} and {tuple(expected.shape)}"
    )
    finite = expected.detach().double().nan_to_num(posinf=0.0, neginf=0.0)
    scale = float(finite.abs().max()) if finite.numel() else 0.0
    difference = _difference(found, expected)
    assert difference <= max(tolerance * scale, NOISE), (
        f"{what} differ by {difference:.3g}, "
        f"with results of magnitude {scale:.3g} and a relative tolerance of {tolerance:.3g}"
    )


def _unchanged(before: dict[str, object], after: dict[str, object], moment: str) -> None:
    missing = object()
    changed = [key for key in {**before, **after} if before.get(key, missing) != after.get(key, missing)]
    assert not changed, f"{moment}, these are not as before: {', '.join(changed[:5])}" + (
        f" and {len(changed) - 5} more" if len(changed) > 5 else ""
    )
