"""Record what layers put out, the attention they compute, and gradients of a score at both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from suffice.errors import AnatomyError, OptionError
from suffice.vision.anatomy.attention import AttentionCapture
from suffice.vision.anatomy.preserve import preserved
from suffice.vision.anatomy.structure import layer_of
from suffice.vision.anatomy.trace import find_modules, first_tensor


@dataclass(frozen=True)
class Gradients:
    """Gradients of a score, by name and shaped like what was recorded."""

    activations: dict[str, Tensor]
    attention: dict[str, Tensor]


@dataclass
class Recording:
    """What was seen in the latest forward pass.

    Attributes:
        activations: Output of each layer asked for, or its input; the first tensor if there are several.
        attention: Attention of each module asked for, after softmax, [N, heads, queries, keys]; [N*windows,
            heads, queries, keys] where attention is windowed.
        with_gradients: Whether ``gradients`` can be asked for.
    """

    activations: dict[str, Tensor] = field(default_factory=dict)
    attention: dict[str, Tensor] = field(default_factory=dict)
    with_gradients: bool = False

    def gradients(self, score: Tensor, retain_graph: bool = False) -> Gradients:
        """Gradients of a score with respect to everything recorded.

        Images in a batch do not see each other in evaluation mode, so the sum of one logit an image has, for
        each image, the gradient of its own logit. Where a layer's output is computed but not used for the
        score, as the patch tokens of PiT's last stage, the gradient is zero.

        Args:
            score: What to differentiate, made inside ``record(..., gradients=True)``; its elements are summed.
            retain_graph: Keep the graph for another call.
        """
        if not self.with_gradients:
            raise OptionError("this recording has no gradients; write record(..., gradients=True)")
        recorded = [*self.activations.values(), *self.attention.values()]
        found: Sequence[Tensor | None] = ()
        if score.requires_grad:
            found = torch.autograd.grad(score.sum(), recorded, retain_graph=retain_graph, allow_unused=True)
        if all(gradient is None for gradient in found):
            raise AnatomyError(
                "the score does not depend on anything recorded; it must come from the latest forward pass "
                f"made inside record(...), which saw {[*self.activations, *self.attention] or 'nothing'}"
            )
        gradients = (torch.zeros_like(x) if slope is None else slope for x, slope in zip(recorded, found, strict=True))
        # One after the other: the activations come first.
        return Gradients(
            activations={name: next(gradients) for name in self.activations},
            attention={name: next(gradients) for name in self.attention},
        )


@contextmanager
def record(
    module: nn.Module, activations: Sequence[str] = (), attention: Sequence[str] = (), gradients: bool = False
) -> Iterator[Recording]:
    """Record layers and attention of the forward passes made inside the context.

    Inside, the model is in evaluation mode. Without gradients, autograd is off; with them, it is on whatever
    the surroundings say, parameters are frozen, and the graph starts at the first layer recorded. Outputs are
    those of the model alone. Afterwards the model is as it was before, also after an exception.

    Args:
        module: The model.
        activations: Names of layers whose outputs to keep, as in ``module.named_modules()``; ``"NAME:input"`` keeps
            what the layer is given.
        attention: Names of modules whose attention to keep, such as ``describe(module, size).attention``.
        gradients: Whether gradients will be asked for.

    Yields:
        The recording, filled by each forward pass; a later pass replaces an earlier one.

    Raises:
        AnatomyError: If a name does not exist, if a layer runs several times in one pass, or, on leaving, if
            something asked for was never seen.

    Example:
        >>> net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 2))
        >>> with record(net, activations=["0"], gradients=True) as seen:
        ...     logits = net(torch.ones(5, 3))
        ...     slopes = seen.gradients(logits[:, 1])
        >>> seen.activations["0"].shape, slopes.activations["0"].shape
        (torch.Size([5, 4]), torch.Size([5, 4]))
    """
    seen = Recording(with_gradients=gradients)
    recorder = _Recorder(seen)
    layers = {name: find_modules(module, [layer_of(name)])[layer_of(name)] for name in activations}
    attention_modules = find_modules(module, attention)
    with ExitStack() as stack:
        stack.enter_context(preserved(module, frozen=gradients))
        if gradients:
            stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.set_grad_enabled(gradients))

        def attach(handle: Any) -> None:
            stack.callback(handle.remove)

        attach(module.register_forward_pre_hook(recorder.start, prepend=True))
        for name, layer in layers.items():
            if layer_of(name) == name:
                attach(layer.register_forward_hook(partial(recorder.keep_output, name)))
            else:
                attach(layer.register_forward_pre_hook(partial(recorder.keep_input, name), with_kwargs=True))
        if attention_modules:
            capture = AttentionCapture(recorder.keep_attention)
            for name, layer in attention_modules.items():
                attach(layer.register_forward_pre_hook(partial(capture.entering, name), with_kwargs=True))
                attach(layer.register_forward_hook(lambda *_: capture.leaving(), always_call=True))
            stack.enter_context(capture)
        attach(module.register_forward_hook(recorder.stop, always_call=True))
        yield seen
    _check_complete(module, seen, activations, attention)


class _Recorder:
    """Keeps what the hooks see, and tells a layer that runs twice in one forward pass from one that runs in two."""

    def __init__(self, seen: Recording) -> None:
        self.seen = seen
        self._done: set[str] = set()
        self._inside = False

    def start(self, *_: Any) -> None:
        self._done.clear()
        self._inside = True

    def stop(self, *_: Any) -> None:
        self._inside = False

    def _note(self, what: str) -> None:
        if self._inside and what in self._done:
            advice = "ask for a layer that runs once, such as the one that contains it"
            raise AnatomyError(f"{what} runs several times in one forward pass; {advice}")
        self._done.add(what)

    def _start_of_graph(self, tensor: Tensor) -> Tensor:
        """The tensor as something to differentiate by, even when nothing before it needs gradients."""
        return tensor.detach().requires_grad_() if self.seen.with_gradients and not tensor.requires_grad else tensor

    def keep_output(self, name: str, _layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> Any:
        found = first_tensor(output)
        if found is None:
            raise AnatomyError(f"layer {name!r} puts out {type(output).__name__} without a tensor in it")
        self._note(f"layer {name!r}")
        memory = found.untyped_storage().data_ptr()
        if any(isinstance(x, Tensor) and x.untyped_storage().data_ptr() == memory for x in inputs):
            # Identity and in-place layers hand on memory that others may still write to.
            found = found.clone()
        self.seen.activations[name] = kept = self._start_of_graph(found)
        # A copy goes on: what follows may work in place, which must not reach what was recorded.
        return _with_first_tensor(output, kept.clone())

    def keep_input(self, name: str, _layer: nn.Module, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        found = first_tensor((inputs, kwargs))
        if found is None:
            raise AnatomyError(f"layer {layer_of(name)!r} is given no tensor")
        self._note(f"layer {name!r}")
        # Others hold this memory too, and may write to it.
        self.seen.activations[name] = kept = self._start_of_graph(found.clone())
        return _with_first_tensor((inputs, kwargs), kept.clone())

    def keep_attention(self, name: str, weights: Tensor) -> Tensor:
        self._note(f"attention {name!r}")
        self.seen.attention[name] = kept = self._start_of_graph(weights)
        return kept


def _with_first_tensor(output: Any, tensor: Tensor) -> Any:
    """The output with its first tensor replaced."""
    if isinstance(output, Tensor):
        return tensor
    if isinstance(output, dict):  # model outputs of transformers are of this kind too
        output = copy(output)
        key = next(key for key, value in output.items() if first_tensor(value) is not None)
        output[key] = _with_first_tensor(output[key], tensor)
        return output
    where = next(i for i, value in enumerate(output) if first_tensor(value) is not None)
    items = [*output[:where], _with_first_tensor(output[where], tensor), *output[where + 1 :]]
    return output._make(items) if hasattr(output, "_make") else type(output)(items)


def _check_complete(module: nn.Module, seen: Recording, activations: Sequence[str], attention: Sequence[str]) -> None:
    if missing := [name for name in activations if name not in seen.activations]:
        advice = "run the model inside it, or ask for layers that its forward pass calls"
        raise AnatomyError(f"layers {missing} of {type(module).__name__} did not run inside record(...); {advice}")
    if missing := [name for name in attention if name not in seen.attention]:
        raise AnatomyError(
            f"no attention was seen in {missing} of {type(module).__name__}: either they did not run inside "
            "record(...), or they compute attention without softmax or scaled_dot_product_attention (flash "
            "and flex kernels do); for transformers models load with attn_implementation='sdpa' or 'eager'"
        )
