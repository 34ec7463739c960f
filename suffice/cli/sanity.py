"""``suffice sanity``: whether maps depend on what a model has learned."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from suffice.cli import output
from suffice.cli.options import (
    AsJson,
    Batch,
    Checkpoint,
    Device,
    FirstImages,
    ImageFiles,
    MethodNames,
    MethodOptions,
    ModelName,
    RandomWeights,
    Seed,
    chosen_methods,
    images_of,
    load_model,
)
from suffice.errors import MissingExtra, OptionError

EXAMPLES = """
Examples:

[green]suffice sanity scenes:test[:50] --model zoo/deit --method rollout,cgw2,tis --out sanity[/green]

[green]suffice sanity photos/ --model timm/resnet50 --method gradient,grad-cam --check independent --how permute[/green]

[green]suffice sanity scenes:test[:50] --model zoo/resnet --method grad-cam --check data
  --permuted-model trained/resnet-permuted-seed0.safetensors[/green]
"""


class Check(str, Enum):
    """What is randomized."""

    cascading = "cascading"
    independent = "independent"
    data = "data"


class How(str, Enum):
    """How weights are randomized."""

    reinitialize = "reinitialize"
    permute = "permute"


def sanity(
    images: ImageFiles,
    model: ModelName,
    method: MethodNames,
    check: Annotated[
        Check, typer.Option(help="Randomize from the output down, one layer at a time, or the training labels.")
    ] = Check.cascading,
    how: Annotated[How, typer.Option(help="Weights as before training, or the trained ones shuffled.")] = (
        How.reinitialize
    ),
    permuted_model: Annotated[
        str | None,
        typer.Option(help="For --check data: weights (or a model) from suffice train --permute-labels."),
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="How many times random weights are drawn.")] = 1,
    option: MethodOptions = None,
    count: FirstImages = None,
    out: Annotated[Path | None, typer.Option(help="Folder for table, CSV, Parquet and figures.")] = None,
    seed: Seed = 0,
    checkpoint: Checkpoint = None,
    random_weights: RandomWeights = False,
    device: Device = None,
    batch: Batch = None,
    as_json: AsJson = False,
) -> None:
    """Randomize a model and see whether the maps of several methods change.

    The table has the similarity to the maps of the trained model after all layers are randomized (--check independent:
    of the layer that matters least), what maps of different images have in common anyway, and a verdict.
    """
    from suffice.metrics.sanity import data_randomization, sanity_check
    from suffice.metrics.sanity.report import HEADINGS, RULE

    if (check is Check.data) != (permuted_model is not None):
        raise OptionError("--check data needs --permuted-model, and no other check takes it.")
    if check is Check.data and (draws > 1 or how is not How.reinitialize):
        raise OptionError("--check data draws no random weights, so it takes neither --draws nor --how.")
    opened = images_of(images, count)
    methods, options = chosen_methods(method, option)
    net = load_model(model, checkpoint, random_weights, device)
    shared: dict[str, Any] = {"options": options, "seed": seed, "batch_size": batch or "auto"}
    with output.progress("Explaining") as on_progress:
        if permuted_model is not None:
            weights = Path(permuted_model)
            named = weights.is_file() or weights.suffix in (".safetensors", ".pth", ".pt")
            other = load_model(model if named else permuted_model, weights if named else None, False, device)
            found = data_randomization(net, other, opened, methods, on_progress=on_progress, **shared)
        else:
            layers: Literal["cascading", "independent"] = "independent" if check is Check.independent else "cascading"
            found = sanity_check(
                net, opened, methods, check=layers, how=how.value, draws=draws, on_progress=on_progress, **shared
            )
    written = _write(found, out) if out is not None else ""
    if as_json:
        output.print_json(found.to_json())
    else:
        title = f"{found.model}, {found.images} images, {check.value}, {found.how}"
        output.print_table(title, HEADINGS, list(found.cells()), right=range(1, 5))
        output.note(RULE)
        for note in found.notes():
            output.note(note)
    incompatible = [m.name for m in methods if m.incompatibility(net) is not None]
    if incompatible:
        output.note(f"Left out, as they do not fit {net.name}: {', '.join(incompatible)}.")
    if written:
        output.note(written)


def _write(found: Any, out: Path) -> str:
    files = list(found.write(out))
    try:
        files += found.draw(out)
        lacking = ""
    except MissingExtra as error:
        lacking = f" {error}"
    return f"Written to {out}: {', '.join(file.name for file in files)}.{lacking}"
