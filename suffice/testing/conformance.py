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
    failures: list[tuple[str, Exception]] = []
    for name, check in CHECKS.items():
        if name in skip:
            continue
        try:
            check(run, net, images, tolerance)
        except OptionError:
            raise
        except AssertionError as error:
            failures.append((str(error), error))
        except Exception as error:
            failures.append((f"{name}: raised {type(error).__name__}: {error}", error))
    if failures:
        report = "\n".join(f"- {message}" for message, _ in failures)
        raise AssertionError(f"{len(failures)} of {len(CHECKS) - len(set(skip))} checks failed:\n{report}") from (
            failures[0][1]
        )


def _promise(check: Check) -> Check:
    """Put a check on the list."""
    CHECKS[check.__name__] = check
    return check


@_promise
def batch_invariance(run: Run, net: Any, images: Tensor, tolerance: float = 1e-5) -> None:
    """An image alone, in half the batch and in the whole batch has the same result."""
    _several(images)
    with workbench(net) as copied:
        together = _results(run, copied, images, "batch_invariance")
        for index in range(len(images)):
            alone = _results(run, copied, images[index : index + 1], "batch_invariance")
            _agree(
                alone,
                together[index : index + 1],
                tolerance,
                f"batch_invariance: image {index} alone and among {len(images)} images",
            )
        for part in (slice(None, len(images) // 2), slice(len(images) // 2, None)):
            half = _results(run, copied, images[part], "batch_invariance")
            _agree(half, together[part], tolerance, "batch_invariance: half of the batch and the whole batch")


@_promise
def determinism(run: Run, net: Any, images: Tensor, tolerance: float = 1e-5) -> None:
    """Twice the same call, twice the same result: bit for bit on the CPU, else within the tolerance."""
    with workbench(net) as copied:
        first = _results(run, copied, images, "determinism").clone()
        second = _results(run, copied, images, "determinism")
    if first.device.type == "cpu":
        assert same_bits(first, second), (
            "determinism: two identical calls differ by up to "
            f"{_difference(first, second):.3g}; derive every random number from a seed argument"
        )
    else:
        # Some CUDA kernels add in whatever order threads finish.
        _agree(second, first, tolerance, "determinism: the second and the first of two identical calls")


@_promise
def order(run: Run, net: Any, images: Tensor, tolerance: float = 1e-5) -> None:
    """Results follow their images when the images change places."""
    _several(images)
    with workbench(net) as copied:
        straight = _results(run, copied, images, "order")
        forward = torch.arange(len(images), device=images.device)
        for name, places in (("reversed", forward.flip(0)), ("rotated", forward.roll(1))):
            moved = _results(run, copied, images[places], "order")
            _agree(moved, straight[places.to(straight.device)], tolerance, f"order: {name} and original images")


@_promise
def device(run: Run, net: Any, images: Tensor, tolerance: float = 1e-5) -> None:
    """Results lie on the device of the images; also on the GPU, where there is one."""
    places = {images.device.type, "cuda" if torch.cuda.is_available() else "cpu"}
    for place in sorted(places):
        with workbench(net) as copied:
            there = images.to(place)
            result = _results(run, copied.to(place), there, "device")
            assert result.device == there.device, (
                f"device: images on {there.device} gave results on {result.device}; they should stay together"
            )


@_promise
def dtype(run: Run, net: Any, images: Tensor, tolerance: float = 1e-5) -> None:
    """Results are float32, without NaN or infinity."""
    with workbench(net) as copied:
        result = _results(run, copied, images, "dtype")
    assert result.dtype == torch.float32, f"dtype: results are {result.dtype}, expected torch.float32"
    broken = int((~torch.isfinite(result)).sum())
    assert broken == 0, f"dtype: {broken} of {result.numel()} values are NaN or infinite; give them a defined value"


@_promise
def model_unchanged(run: Run, net: Any, images: Tensor, tolerance: float = 1e-5) -> None:
    """The model is bit for bit as before: weights, buffers, gradients, modes, switches, also after an error.

    Tried as the model comes; then in training mode, with every other parameter frozen and gradients from
    earlier work; then once more with an error in the middle of the work.
    """
    with workbench(net) as copied:
        before = model_state(copied)
        _results(run, copied, images, "model_unchanged")
        _unchanged(before, model_state(copied), "model_unchanged", "afterwards")
    with workbench(net) as copied:
        in_use(copied)
        before = model_state(copied)
        _results(run, copied, images, "model_unchanged")
        _unchanged(before, model_state(copied), "model_unchanged", "afterwards, having begun in training mode")
    _survives_errors(run, net, images, "model_unchanged", model_state)


@_promise
def no_hooks_left(run: Run, net: Any, images: Tensor, tolerance: float = 1e-5) -> None:
    """No hook stays behind on the model, its parameters, or all modules; also not after an error."""
    with workbench(net) as copied:
        before = hooks(copied)
        _results(run, copied, images, "no_hooks_left")
        _unchanged(before, hooks(copied), "no_hooks_left", "afterwards")
    _survives_errors(run, net, images, "no_hooks_left", hooks)


@_promise
def grad_mode(run: Run, net: Any, images: Tensor, tolerance: float = 1e-5) -> None:
    """Gradient mode is as before, results carry no graph; ``no_grad`` and frozen weights do not matter."""
    with workbench(net) as copied:
        free = _results(run, copied, images, "grad_mode")
        assert torch.is_grad_enabled(), "grad_mode: gradients were enabled before and are disabled afterwards"
        assert not free.requires_grad, "grad_mode: results require gradients; detach them"
        with torch.no_grad():
            inside = _works(run, copied, images, "grad_mode", "under torch.no_grad()")
            assert not torch.is_grad_enabled(), "grad_mode: gradients were disabled before and are enabled afterwards"
        assert not inside.requires_grad, "grad_mode: results require gradients under no_grad; detach them"
        _agree(inside, free, tolerance, "grad_mode: results inside and outside torch.no_grad()")
        module_of(copied).requires_grad_(False)
        frozen = _works(run, copied, images, "grad_mode", "on a model with frozen weights")
        _agree(frozen, free, tolerance, "grad_mode: results with frozen and with trainable weights")
    _survives_errors(
        run, net, images, "grad_mode", lambda net: {"whether gradients are enabled": torch.is_grad_enabled()}
    )


@_promise
def inputs_unchanged(run: Run, net: Any, images: Tensor, tolerance: float = 1e-5) -> None:
    """The pixels handed in keep their values, and neither ask for gradients nor collect any."""
    for wanted in (False, True):
        given = images.detach().clone().requires_grad_(wanted)
        before = given.detach().clone()
        with workbench(net) as copied:
            run(copied, given)
        assert same_bits(before, given.detach()), (
            f"inputs_unchanged: the images were changed in place, by up to {_difference(before, given.detach()):.3g}"
        )
        assert given.requires_grad == wanted, (
            f"inputs_unchanged: requires_grad of the images was {wanted} and is {given.requires_grad}; "
            "work on images.detach().clone()"
        )
        assert given.grad is None, "inputs_unchanged: the images have collected a gradient; use torch.autograd.grad"


@_promise
def random_state(run: Run, net: Any, images: Tensor, tolerance: float = 1e-5) -> None:
    """The global random numbers of torch, numpy and Python go on as if nothing had happened."""
    with workbench(net) as copied:
        # Not where a fresh seed would be, or a method that seeds anew would go unnoticed.
        torch.rand(1), random.random(), np.random.rand()  # noqa: NPY002
        before = random_states()
        _results(run, copied, images, "random_state")
        after = random_states()
    for name, state in before.items():
        assert state == after[name], (
            f"random_state: the global random state of {name} has moved; draw from a generator of your own"
        )


@_promise
def memory(run: Run, net: Any, images: Tensor, tolerance: float = 1e-5) -> None:
    """A model that itself runs out of memory above so many inputs gives the same results as without that limit."""
    with workbench(net) as copied:
        free = _results(run, copied, images, "memory")
    for most in sorted({1, (len(images) + 1) // 2}):
        with workbench(net) as copied, out_of_memory_above(module_of(copied), most) as refused:
            limited = _works(run, copied, images, "memory", f"where no more than {most} inputs fit")
        _agree(
            limited, free, tolerance, f"memory: results where {most} inputs fit at once, {refused[0]} times refused,"
        )


def _survives_errors(run: Run, net: Any, images: Tensor, name: str, look: Callable[[Any], dict[str, object]]) -> None:
    """What ``look`` sees is the same before and after work that fails, early, midway or at the end.

    The error comes from the first, a middle or the last call of a module, during the work on one image.
    """
    first = images[:1]
    with workbench(net) as copied, on_every_call(module_of(copied), None) as counted:
        _results(run, copied, first, name)
    calls = counted[0]
    for fail_at in sorted({1, (calls + 1) // 2, calls} - {0}):
        moment = f"an error in module call {fail_at} of {calls}"
        with workbench(net) as copied:
            in_use(copied)
            before = look(copied)
            swallowed = False
            with on_every_call(module_of(copied), fail_at) as counted:
                try:
                    _results(run, copied, first, name)
                except Interruption:
                    pass
                else:
                    swallowed = counted[0] >= fail_at
            assert not swallowed, f"{name}: {moment} was swallowed; let it through"
            _unchanged(before, look(copied), name, f"after {moment}")


def _several(images: Tensor) -> None:
    if images.ndim != 4 or len(images) < 2:
        raise OptionError(f"images have shape {tuple(images.shape)}; expected [N, 3, H, W] with at least two images")


def _results(run: Run, net: Any, images: Tensor, name: str) -> Tensor:
    # A copy, so that a method that writes into its images spoils no other call.
    result = run(net, images.detach().clone())
    assert isinstance(result, Tensor), f"{name}: expected a tensor, got {type(result).__name__}"
    assert result.shape[:1] == images.shape[:1], (
        f"{name}: {len(images)} images gave a result of shape {tuple(result.shape)}; expected one entry per image"
    )
    return result


def _works(run: Run, net: Any, images: Tensor, name: str, circumstance: str) -> Tensor:
    """Results where an error is a broken promise of its own."""
    try:
        return _results(run, net, images, name)
    except Exception as error:
        raise AssertionError(f"{name}: {circumstance} it raised {type(error).__name__}: {error}") from error


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


def _unchanged(before: dict[str, object], after: dict[str, object], name: str, moment: str) -> None:
    missing = object()
    changed = [key for key in {**before, **after} if before.get(key, missing) != after.get(key, missing)]
    assert not changed, f"{name}: {moment}, these are not as before: {', '.join(changed[:5])}" + (
        f" and {len(changed) - 5} more" if len(changed) > 5 else ""
    )
