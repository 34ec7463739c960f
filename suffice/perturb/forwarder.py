"""The forwarder: puts batches of one fixed shape through a model, as fast as the bare model goes."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, TypeVar
from weakref import WeakSet

import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from suffice.errors import OptionError, SufficeWarning
from suffice.vision.anatomy.preserve import preserved
from suffice.vision.classifier import Classifier
from suffice.vision.outputs import class_scores

Result = TypeVar("Result")
Layout = bool | Literal["auto", "inputs"]
Precision = Literal["fp32", "tf32", "bf16", "fp16"]
DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
AUTO_BATCH = {"cuda": 512, "cpu": 32}
# Models that were seen not to work with channels-last inputs. Many a network of one's own flattens its maps with
# ``view``, which only the usual layout allows.
_CONTIGUOUS_ONLY: WeakSet[torch.nn.Module] = WeakSet()


class Forwarder:
    """Logits of batches, in the chosen precision, memory layout and compilation.

    The classifier's own module is never changed. Where another precision or layout is asked for, the forwarder works
    on a copy, made once, of the weights as they are then.

    Args:
        net: The classifier.
        batch_size: Inputs per forward, or ``"auto"``. Halved, with one warning, when memory runs out.
        precision: ``"fp32"``, ``"bf16"`` or ``"fp16"`` for the model; logits are always returned in fp32. ``"tf32"``
            keeps all numbers in fp32 and lets the GPU round them to 10 bits inside matrix products, which is faster.
        channels_last: Memory layout; ``"auto"`` chooses it for models with convolutions beyond the first layer, which
            run faster with it on GPUs and CPUs. ``"inputs"`` is the same for inputs alone, which is nearly as fast for
            most and saves the copy of the weights. A model whose first forward shows that it cannot work with it gets
            the usual layout, whatever is asked for; see ``contiguous_only``.
        compile: Compile the model with ``torch.compile``, for just one shape: incomplete batches must be padded.
    """

    def __init__(
        self,
        net: Classifier,
        *,
        batch_size: int | Literal["auto"] = "auto",
        precision: Precision = "fp32",
        channels_last: Layout = "auto",
        compile: bool = False,
    ) -> None:
        if precision not in DTYPES:
            raise OptionError(f"precision={precision!r}; it can be {', '.join(DTYPES)}.")
        if batch_size != "auto" and (not isinstance(batch_size, int) or batch_size < 1):
            raise OptionError(f"batch_size={batch_size!r}; it can be 'auto' or a whole number from 1 on.")
        self.net = net
        self.device = net.device
        self.batch_size = AUTO_BATCH.get(self.device.type, 128) if batch_size == "auto" else batch_size
        self.precision = precision
        self.compiled = compile
        self.channels_last = _wants_channels_last(net) if isinstance(channels_last, str) else channels_last

        # A module in fp32 is used in the precision of its own weights.
        self.dtype = net.dtype if DTYPES[precision] == torch.float32 else DTYPES[precision]
        self.module = net.module
        if (self.channels_last and channels_last != "inputs") or self.dtype != net.dtype:
            layout = torch.channels_last if self.channels_last else torch.preserve_format
            self.module = _in_precision(net.module, self.dtype).to(memory_format=layout).eval().requires_grad_(False)
        self._run = self.fused(self._logits)
        self._run_in_graph = self.fused(self._logits_in_graph)
        self._warned = False

    @torch.no_grad()
    def logits(self, inputs: Tensor) -> Tensor:
        """Logits of one batch.

        Args:
            inputs: Normalized, [B, 3, H, W], of this forwarder's dtype; B is at most the batch size, and just that
                where the model is compiled.

        Returns:
            [B, classes] float32.
        """
        with self.net.evaluating(), self.arithmetic():
            return self._through(self._run, inputs)

    def logits_in_graph(self, inputs: Tensor) -> Tensor:
        """Logits of one batch, part of the graph where gradients are on, for a module in evaluation mode.

        Args:
            inputs: Normalized, [B, 3, H, W], of any dtype and layout; B is at most the batch size where the model is
                compiled.

        Returns:
            [B, classes] float32, or float64 of a module in float64.
        """
        return self._through(self._run_in_graph, self.laid_out(self.padded(inputs)))[: len(inputs)]

    @contextmanager
    def arithmetic(self) -> Iterator[None]:
        """Within it, matrix products are as exact as asked for; afterwards as before."""
        if self.precision != "tf32":
            yield
            return
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)

    def laid_out(self, inputs: Tensor) -> Tensor:
        """Inputs [B, 3, H, W] in the precision and memory layout of the module."""
        inputs = inputs.to(self.dtype)
        return inputs.contiguous(memory_format=torch.channels_last) if self.channels_last else inputs

    def fused(self, function: Callable[..., Result]) -> Callable[..., Result]:
        """A function, compiled where the model is; it is then best called with one shape only, see :meth:`padded`."""
        return torch.compile(function, dynamic=False) if self.compiled else function

    def padded(self, rows: Tensor) -> Tensor:
        """The rows of an incomplete batch, the last repeated until it is full where the model is compiled."""
        missing = self.batch_size - len(rows) if self.compiled else 0
        return torch.cat([rows, rows[-1:].expand(missing, *rows.shape[1:])]) if missing > 0 else rows

    def make_room(self, error: Exception) -> None:
        """Halve the batch after running out of memory, or raise the error where that cannot help."""
        if not _is_out_of_memory(error) or self.batch_size == 1:
            raise error
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        if not self._warned:
            warnings.warn(
                f"Out of memory at batch size {self.batch_size}; going on with smaller batches.",
                SufficeWarning,
                stacklevel=4,
            )
            self._warned = True
        self.batch_size //= 2

    @property
    def contiguous_only(self) -> bool:
        """Whether the model was seen not to work with channels-last inputs; then it gets contiguous ones."""
        return self.net.module in _CONTIGUOUS_ONLY

    def _through(self, run: Callable[[Tensor], Tensor], inputs: Tensor) -> Tensor:
        if not self.contiguous_only:
            try:
                return run(inputs)
            except RuntimeError as error:
                if not self.channels_last or "view size is not compatible" not in str(error):
                    raise
            _CONTIGUOUS_ONLY.add(self.net.module)
        if self.module is not self.net.module:
            self.module.to(memory_format=torch.contiguous_format)
        return run(inputs.contiguous())

    def _logits(self, inputs: Tensor) -> Tensor:
        return class_scores(self.module(inputs)).float()

    def _logits_in_graph(self, inputs: Tensor) -> Tensor:
        logits = class_scores(self.module(inputs))
        return logits.to(torch.promote_types(logits.dtype, torch.float32))


def _in_precision(module: torch.nn.Module, dtype: torch.dtype) -> torch.nn.Module:
    """A copy of a module with its numbers in another precision, those of batch normalization as they are.

    Variances cost nothing to keep, lose most by rounding, and can exceed what fp16 holds.
    """
    with preserved(module):
        module.eval()  # a network that caches what it computed, as LeViT does, lets go of it here and can be copied
        converted = copy.deepcopy(module).to(dtype=dtype)
    for name, part in module.named_modules():
        if isinstance(part, _BatchNorm):
            numbers = converted.get_submodule(name)
            for key, value in part.state_dict(keep_vars=True).items():
                getattr(numbers, key).data = value.detach().clone()
    for name, value in (*converted.named_parameters(), *converted.named_buffers()):
        if not value.isfinite().all() and module.state_dict(keep_vars=True).get(name, value).isfinite().all():
            raise OptionError(f"{name} of the model has numbers too large for {dtype}; use precision='bf16' or 'fp32'.")
    return converted


def _wants_channels_last(net: Classifier) -> bool:
    """Whether a model has convolutions enough to profit, beyond the one that cuts patches."""
    if net.device.type not in ("cuda", "cpu") or net.module in _CONTIGUOUS_ONLY:
        return False
    return sum(isinstance(part, torch.nn.Conv2d) for part in net.module.modules()) > 1


def _is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, torch.cuda.OutOfMemoryError) or "can't allocate memory" in str(error)
