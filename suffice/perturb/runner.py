"""The runner: the one way to put inputs through a model.

Everything asks a model one of three things: scores of many inputs, gradients, or what happened inside. The care that
all of them need is taken here once: precision, memory layout, compilation, folded batch normalization, full batches of
one shape, and fewer inputs at once when memory runs out.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar
from weakref import WeakSet

import torch
from torch import Tensor, nn

from suffice.errors import OptionError
from suffice.options import Count, check_options
from suffice.perturb.class_token import without_unread_tokens
from suffice.perturb.compilation import Compiled
from suffice.perturb.fast_precision import fast_precision
from suffice.perturb.folding import fold_if_exact, foldable
from suffice.perturb.half import at_least_float32, in_precision
from suffice.perturb.sizes import Sizes, filled, has_convolutions, size_for, sizes_of
from suffice.progress import asked
from suffice.vision.anatomy.copies import working_copy
from suffice.vision.batching import BatchLoop
from suffice.vision.classifier import Classifier
from suffice.vision.outputs import class_scores
from suffice.vision.wrap import Model, as_classifier

T = TypeVar("T")
Precision = Literal["fp32", "ieee", "tf32", "bf16", "fp16"]
AnyPrecision = Precision | Literal["auto"]
Work = Literal["scores", "inside", "gradients", "gradients inside", "relevance"]

DTYPES = {**dict.fromkeys(("fp32", "ieee", "tf32"), torch.float32), "bf16": torch.bfloat16, "fp16": torch.float16}
AUTO_BATCH = {"cuda": 512, "cpu": 32}
# Forwards with gradients keep their activations, so fewer fit than without.
AUTO_GRADIENT_BATCH = {"cuda": 128, "cpu": 16}
# Models that were seen not to work with channels-last inputs. Many a network of one's own flattens its maps with
# ``view``, which only the usual layout allows.
_CONTIGUOUS_ONLY: WeakSet[nn.Module] = WeakSet()


@dataclass
class Counters:
    """What a runner did; the basis of every benchmark.

    Attributes:
        questions: Masked images that probes were asked about.
        remembered: Of these, answered without asking the model: known from before, or asked twice at once.
        forwards: Inputs put through the model.
        backwards: Of these, with a backward pass.
        seconds: Time that probes took to answer.
    """

    questions: int = 0
    remembered: int = 0
    forwards: int = 0
    backwards: int = 0
    seconds: float = 0.0

    def count(self, inputs: int) -> None:
        """So many inputs go through the model."""
        self.forwards += inputs
        asked(inputs)

    @property
    def forwards_per_second(self) -> float:
        """Inputs per second of answering."""
        return self.forwards / self.seconds if self.seconds else 0.0


class Runner:
    """Puts inputs through a model, in the chosen precision, memory layout and compilation.

    The classifier's own module is never changed. Where another precision or layout is asked for, or batch normalization
    can be folded, the runner works on a copy, made once when it is first needed, of the weights as they are then.

    Different work needs different variants of a model; :meth:`variant` gives each, made once:

    * ``"scores"``: forwards alone. Whatever is fastest: all that was asked for, batch normalization folded into
      convolutions, and nothing computed that no answer depends on.
    * ``"inside"``: forwards of which something inside is read or replaced. Neither compiled nor folded.
    * ``"gradients"``: gradients with respect to inputs, likewise. Folded where the model is copied anyway.
    * ``"gradients inside"``: gradients at layers or attention. Neither compiled nor folded, and never a copy in fp32.
    * ``"relevance"``: relevance by rules, which divide by sums near 0: the module as it is, in fp32.

    Args:
        net: The classifier.
        batch_size: Inputs per forward, or ``"auto"``. Halved, with one warning, when memory runs out.
        precision: ``"fp32"``, ``"fp16"`` or ``"bf16"`` for the model; logits are always returned in fp32. fp16 is
            eight times finer than bf16; weights that it cannot hold are refused. ``"tf32"`` keeps all numbers in fp32
            and lets the GPU round them to 10 bits inside matrix products, which is faster.
            ``"fp32"`` does what PyTorch is set to; by default that rounds so in convolutions on GPUs. ``"ieee"`` never
            rounds. ``"auto"`` is fp32 for gradients; for forwards it is fp16 on GPUs with tensor cores, bf16 on CPUs
            with units for it, and fp32 elsewhere. Results name the one that was taken.
        compile: Compile the model with ``torch.compile``, for just one shape: incomplete batches are padded.
        fold: Fold batch normalization into convolutions, and leave out what no answer depends on.
        channels_last: Memory layout; ``"auto"`` chooses it for models with convolutions beyond the first layer, which
            run faster with it on GPUs and CPUs. A model whose first forward shows that it cannot work with it gets the
            usual layout, whatever is asked for.
        counters: Count here, rather than anew.

    Attributes:
        work: What this variant is for.
        precision: The one that this variant really has, so never ``"auto"``.
        dtype: Of the inputs it wants.
        compiled: Whether it is compiled.
        counters: What went through it and the other variants.

    Example:
        >>> from suffice.testing import AnyOf
        >>> runner = Runner(AnyOf([(5,)], grid=4).classifier(32), batch_size=2)
        >>> runner.scores(torch.rand(5, 3, 32, 32)).shape
        torch.Size([5, 2])
        >>> runner.counters.forwards
        5
    """

    def __init__(
        self,
        net: Model,
        *,
        batch_size: Count | Literal["auto"] = "auto",
        precision: AnyPrecision = "fp32",
        compile: bool = False,
        fold: bool = True,
        channels_last: bool | Literal["auto"] = "auto",
        counters: Counters | None = None,
    ) -> None:
        check_options({"batch_size": batch_size, "precision": precision}, Runner.__init__)
        self.net = as_classifier(net)
        self.device, self.work = self.net.device, "scores"
        self.counters = counters or Counters()
        self.precision: Precision = fast_precision(self.net) if precision == "auto" else precision
        # Gradients of scores near 1 are smaller than half precision holds: not without being asked for it.
        self._gradient_precision: Precision = "fp32" if precision == "auto" else precision
        self._asked = (batch_size, compile, fold, channels_last)
        self._variants: dict[str, Runner] = {"scores": self}
        self._prepare()

    @classmethod
    def of(cls, net: Model, runner: Runner | None = None, **options: Any) -> Runner:
        """The runner that was given, which must be of this model; a new one with these options where none was."""
        net = as_classifier(net)
        if runner is not None and runner.net.module is not net.module:
            raise OptionError(f"runner= is of {runner.net.name}, not of {net.name}; write runner=suffice.Runner(net).")
        return runner or cls(net, **options)

    def variant(self, work: Work) -> Runner:
        """The runner for a kind of work on the same model; made when first asked for."""
        if work not in self._variants:
            made = copy.copy(self._variants["scores"])
            made.work = work
            for name in ("module", "_forward"):  # each variant has its own
                made.__dict__.pop(name, None)
            if work == "relevance":
                made.precision = "fp32"
            elif "gradients" in work:
                made.precision = self._gradient_precision
            made._prepare()
            self._variants[work] = made
        return self._variants[work]

    def alike(self, net: Model) -> Runner:
        """A runner of other weights with the same choices, but never compiled; its forwards count here, too."""
        batch_size, _, fold, channels_last = self._asked
        how: dict[str, Any] = {"batch_size": batch_size, "fold": fold, "channels_last": channels_last}
        made = Runner(net, precision=self._variants["scores"].precision, counters=self.counters, **how)
        made._gradient_precision = self._gradient_precision
        return made

    @cached_property
    def unrounded(self) -> Runner:
        """A runner of the same model that never rounds below fp32, with counters of its own; made once."""
        return Runner(self.net, precision="ieee")

    @property
    def batch_size(self) -> int:
        """How many inputs go through the model at once."""
        return self._loop.size

    def run(self, count: int, work: Callable[[slice], T], *, cost: int = 1) -> Iterator[T]:
        """The one loop: results of all rows in their order, as many rows at once as fit; where memory runs out, fewer.

        Args:
            count: How many rows there are.
            work: From some of the rows to their result.
            cost: How many inputs a row takes.
        """
        return self._loop.run(count, work, cost=cost)

    def scores(self, pixels: Tensor) -> Tensor:
        """Scores [K, classes], float32, of any number of images [K, 3, H, W] in [0, 1]."""

        def some(rows: slice) -> Tensor:
            return self.net.scores(self.logits(self.net.normalize(pixels[rows].to(self.device))))

        return torch.cat(list(self.run(len(pixels), some)))

    @torch.no_grad()
    def logits(self, inputs: Tensor) -> Tensor:
        """Logits [B, classes] float32 of normalized inputs [B, 3, H, W], of which no more than a batch."""
        self.counters.count(len(inputs))
        with self.net.evaluating(), self.arithmetic():
            return self._through(inputs).float()

    def logits_with_graph(self, inputs: Tensor) -> Tensor:
        """The same as part of the graph where gradients are on, for a module in evaluation mode; float64 stays so.

        A compiled model takes no more than a batch.
        """
        self.counters.count(len(inputs))
        logits = self._through(inputs)
        if logits.requires_grad:
            logits.register_hook(self._count_backward)
        return logits

    @property
    def exact(self) -> bool:
        """Whether nothing is rounded to less than fp32."""
        if self.precision != "fp32" or self.dtype not in (torch.float32, torch.float64):
            return self.precision == "ieee"
        convolutions_round = self.device.type == "cuda" and torch.backends.cudnn.allow_tf32
        return torch.get_float32_matmul_precision() == "highest" and not convolutions_round

    @contextmanager
    def arithmetic(self) -> Iterator[None]:
        """Within it, matrix products are as exact as asked for; afterwards as before."""
        if self.precision not in ("tf32", "ieee"):
            yield
            return
        rounds = self.precision == "tf32"
        before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
        torch.set_float32_matmul_precision("high" if rounds else "highest")
        torch.backends.cudnn.allow_tf32 = rounds
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before[0])
            torch.backends.cudnn.allow_tf32 = before[1]

    def fused(self, function: Callable[..., T]) -> Callable[..., T]:
        """A function, compiled where the model is: once for full batches (`padded`) of each kind of arguments."""
        if not self.compiled:
            return function
        if function not in self._fused:
            self._fused[function] = Compiled(function, lambda: self.batch_size)
        return self._fused[function]

    def padded(self, rows: Tensor, size: int | None = None) -> Tensor:
        """The rows of an incomplete batch, the last repeated until it is full where the model is compiled."""
        return filled(rows, size or self.batch_size) if self.compiled else rows

    @property
    def contiguous_only(self) -> bool:
        """Whether the model was seen not to work with channels-last inputs; then it gets contiguous ones."""
        return self.net.module in _CONTIGUOUS_ONLY

    def _prepare(self) -> None:
        """Make everything that depends on the kind of work."""
        batch_size, compile, fold, channels_last = self._asked
        inside, gradients = "inside" in self.work or self.work == "relevance", "gradients" in self.work
        auto = AUTO_GRADIENT_BATCH if gradients else AUTO_BATCH
        self._loop = BatchLoop(auto.get(self.device.type, 128) if batch_size == "auto" else batch_size, self.device)
        self.compiled = compile and not inside
        # A module in fp32 is used in the precision of its own weights.
        self.dtype = self.net.dtype if DTYPES[self.precision] == torch.float32 else DTYPES[self.precision]
        wanted = _wants_channels_last(self.net) if channels_last == "auto" else channels_last
        keeps_weights = gradients and not self.compiled and self.dtype == self.net.dtype
        if self.work == "relevance":  # it goes back through the layout that models have
            wanted, keeps_weights = False, True
        elif self.work == "gradients" and keeps_weights and self.device.type == "cuda":
            wanted = False  # the backward pass through convolutions is slower with it there
        elif channels_last == "auto" and self.precision == "ieee" and self.device.type == "cuda":
            wanted = False  # so are convolutions that may not round: ResNet-50 did 3,612 images/s, 4,307 without it
        self.channels_last = wanted
        self._keeps_weights, self._folds = keeps_weights, fold and not inside
        self._fused: dict[Callable[..., Any], Callable[..., Any]] = {}
        # Whoever looks inside would see what fills a batch.
        self._sizes: Sizes = "any" if inside else sizes_of(self.net.module, self.device)

    @cached_property
    def module(self) -> nn.Module:
        """The module that runs, in its precision and layout; a copy, made when first needed, where that changes it."""
        return without_unread_tokens(self._made()) if self._folds else self._made()

    def _made(self) -> nn.Module:
        net, pairs = self.net, []
        if self._keeps_weights:
            return net.module
        if self._folds:
            noise = torch.rand(1, 3, *net.size, generator=torch.Generator().manual_seed(0))
            inputs = net.normalize(noise.to(self.device))
            pairs = foldable(net.module, inputs)
        if not (pairs or self.channels_last or self.dtype != net.dtype):
            return net.module
        copied = working_copy(net.module)
        with torch.no_grad():
            if pairs:
                fold_if_exact(copied.to(torch.promote_types(net.dtype, torch.float32)), pairs, inputs)
            if pairs or self.dtype != net.dtype:
                copied = in_precision(copied, self.dtype)
        layout = torch.channels_last if self.channels_last else torch.preserve_format
        return copied.to(memory_format=layout).requires_grad_(False)

    @cached_property
    def _forward(self) -> Callable[[Tensor], Tensor]:
        module = self.module

        def forward(inputs: Tensor) -> Tensor:
            return at_least_float32(class_scores(module(inputs)))

        return self.fused(forward)

    def _through(self, inputs: Tensor) -> Tensor:
        run, count = self._forward, len(inputs)
        size = size_for(count, self.batch_size, "full" if self.compiled else self._sizes)
        inputs = filled(inputs, size).to(self.dtype)
        if self.channels_last and not self.contiguous_only:
            try:
                return run(inputs.contiguous(memory_format=torch.channels_last))[:count]
            except RuntimeError as error:
                if "view size is not compatible" not in str(error):
                    raise
            _CONTIGUOUS_ONLY.add(self.net.module)
        if self.contiguous_only:
            if self.module is not self.net.module:
                self.module.to(memory_format=torch.contiguous_format)
            inputs = inputs.contiguous()
        return run(inputs)[:count]

    def _count_backward(self, gradient: Tensor) -> None:
        self.counters.backwards += len(gradient)


def _wants_channels_last(net: Classifier) -> bool:
    """Whether a model has convolutions enough to profit, beyond the one that cuts patches."""
    if net.device.type not in ("cuda", "cpu") or net.module in _CONTIGUOUS_ONLY:
        return False
    return has_convolutions(net.module)
