"""The steps in which the two networks of learned Shapley values are trained, told of, saved and taken up again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from suffice.attribution.learned.checkpoint import write_checkpoint
from suffice.errors import OptionError
from suffice.zoo.training.interrupt import finishing_steps

ROWS = 10  # looks at the images held out, for each of the two networks
Part = Literal["surrogate", "explainer"]


@dataclass(frozen=True)
class ShapleyProgress:
    """Where a training stands.

    Attributes:
        part: Which of the two networks is trained.
        step: Steps done of it.
        steps: Steps in all of it.
        loss: Mean loss on training batches since the last row.
        validation: The same loss on images held out.
        explained: On them, the share that the values explain of the variance of what the surrogate says of sets less
            what it says of their complements; None for the surrogate itself. What it says of both together no values
            can tell, since values of a set and of its complement add up to that of the whole.
        rate: Training images per second.
        remaining: Seconds left for this network, by that rate.
    """

    part: Part
    step: int
    steps: int
    loss: float
    validation: float
    explained: float | None
    rate: float
    remaining: float


OnProgress = Callable[[ShapleyProgress], None]
Look = Callable[[], tuple[float, float | None]]


class ShapleyRun:
    """The steps of both networks, one after the other, each a function of their weights and the generator's state.

    Args:
        path: Where the state is saved.
        every: Steps between two savings.
        about: What the state is about.
        found: The state to go on from.
        generator: Whose state belongs to it.
        report: Told how it goes.
    """

    def __init__(
        self,
        path: Path | None,
        every: int,
        about: dict[str, str],
        found: dict[str, Any] | None,
        generator: torch.Generator,
        report: OnProgress,
    ) -> None:
        self.path, self.every, self.about, self.found = path, every, about, found
        self.generator, self.report = generator, report
        self.state: dict[str, Any] = {} if found is None else {"parts": found["parts"]}

    def __call__(
        self,
        part: Part,
        steps: int,
        batch: int,
        module: nn.Module,
        optimizer: torch.optim.Optimizer,
        loss_of_step: Callable[[], Tensor],
        look: Look,
        *,
        clip: float | None = None,
    ) -> list[ShapleyProgress]:
        """Train one of the networks; the rate rises in the first tenth of the steps and falls in all, along lines."""
        parameters: list[Tensor] = optimizer.param_groups[0]["params"]
        highest, rows, losses = optimizer.param_groups[0]["lr"], list[ShapleyProgress](), list[float]()
        first = self._restore(part, module, optimizer, rows, losses)
        began = time.perf_counter()
        with finishing_steps() as interrupted:
            for step in range(first, steps):
                for group in optimizer.param_groups:
                    group["lr"] = highest * min(1.0, 10 * (step + 1) / steps) * (1 - step / steps)
                with torch.enable_grad():
                    loss = loss_of_step()
                    slopes = torch.autograd.grad(loss, parameters, allow_unused=True)
                for parameter, slope in zip(parameters, slopes, strict=True):
                    parameter.grad = slope
                if clip is not None:
                    nn.utils.clip_grad_norm_(parameters, clip)
                optimizer.step()
                losses.append(float(loss.detach()))
                if not math.isfinite(losses[-1]):
                    raise OptionError(
                        f"The loss of the {part} is {losses[-1]} after step {step + 1} of {steps}: training diverged. "
                        f"Try a lower learning rate than {highest:g}."
                    )
                if (step + 1) % max(1, steps // ROWS) == 0 or step + 1 == steps:
                    each = (time.perf_counter() - began) / (step + 1 - first)
                    facts = (sum(losses) / len(losses), *look(), batch / each, each * (steps - step - 1))
                    rows.append(ShapleyProgress(part, step + 1, steps, *facts))
                    self.report(rows[-1])
                    losses.clear()
                stop = interrupted()
                if stop or (step + 1) % self.every == 0 or step + 1 == steps:
                    self._save(part, step + 1, module, optimizer, rows, losses)
                if stop:
                    raise KeyboardInterrupt
        return rows

    def _save(self, part: Part, step: int, module: nn.Module, optimizer: Any, rows: list[Any], losses: Any) -> None:
        if self.path is None:
            return
        own = {"step": step, "module": module.state_dict(), "rows": [asdict(row) for row in rows], "losses": losses}
        own["optimizer"] = optimizer.state_dict()
        self.state = {"parts": {**self.state.get("parts", {}), part: own}, "generator": self.generator.get_state()}
        write_checkpoint(self.path, {"about": self.about, **self.state})

    def _restore(self, part: Part, module: nn.Module, optimizer: Any, rows: list[Any], losses: list[float]) -> int:
        """Steps that are done already, after their state was taken up."""
        if self.found is None or part not in self.found["parts"]:
            return 0
        own = self.found["parts"][part]
        module.load_state_dict(own["module"])
        optimizer.load_state_dict(own["optimizer"])
        rows += [ShapleyProgress(**row) for row in own["rows"]]
        losses += own["losses"]
        self.generator.set_state(self.found["generator"].cpu())
        return int(own["step"])
