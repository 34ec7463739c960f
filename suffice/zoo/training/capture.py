"""A training step that is recorded once on a GPU and replayed from then on.

Small networks leave a GPU waiting: telling it what to do takes many times longer than doing it. A recorded step is told
in one word.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import Generator, Tensor

WARM_UP = 3  # steps before recording: memory is allocated, kernels are chosen, compilers have run


class CapturedStep:
    """Calls a step; from the fourth call on a GPU, replays the recording of it.

    What changes from step to step must come in through the arguments, be drawn from a generator, or be changed in
    place: numbers of Python are part of the recording.

    Args:
        step: Takes tensors that keep their shapes, changes things in place, and never waits for the device.
        device: Where it runs; on any but a GPU it is called as it is.
        generators: Generators on that device that it draws from, beside the default one.

    Example:
        >>> total = torch.zeros(2)
        >>> step = CapturedStep(total.add_, torch.device("cpu"))
        >>> step(torch.ones(2)), step(torch.ones(2))
        (None, None)
        >>> total
        tensor([2., 2.])
    """

    def __init__(
        self, step: Callable[..., object], device: torch.device, generators: tuple[Generator, ...] = ()
    ) -> None:
        self._step = step
        self._generators = generators
        self._calls = 0
        self._inputs: tuple[Tensor, ...] = ()
        self._graph: torch.cuda.CUDAGraph | None = None
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def __call__(self, *inputs: Tensor) -> None:
        """Do the step once."""
        self._calls += 1
        if self._stream is None:
            self._step(*inputs)
        elif self._calls <= WARM_UP:
            self._aside(lambda: self._step(*inputs))
        else:
            if self._graph is None:
                self._record(inputs)
            if self._graph is not None:
                for kept, new in zip(self._inputs, inputs, strict=True):
                    kept.copy_(new)
                self._graph.replay()
            else:  # it could not be recorded, as a warning says
                self._step(*inputs)

    def _aside(self, do: Callable[[], object]) -> None:
        """Do something on the stream that is recorded later, as CUDA asks of warm-ups."""
        assert self._stream is not None
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            do()
        torch.cuda.current_stream().wait_stream(self._stream)

    def _record(self, inputs: tuple[Tensor, ...]) -> None:
        """Record the step without doing it."""
        self._inputs = tuple(value.clone() for value in inputs)
        graph = torch.cuda.CUDAGraph()
        for generator in self._generators:
            graph.register_generator_state(generator)
        try:
            with torch.cuda.graph(graph, stream=self._stream):
                self._step(*self._inputs)
        except RuntimeError as error:
            self._stream = None
            first = (str(error).strip().splitlines() or [""])[0]
            warnings.warn(f"The training step cannot be recorded, so training is slower: {first}", stacklevel=4)
            return
        self._graph = graph
