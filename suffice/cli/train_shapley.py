"""``suffice train shapley``: train networks that give Shapley values of another, on images of your own."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from suffice.cli import options as opt
from suffice.cli import output
from suffice.cli.groups import RUN, ModelOptions
from suffice.cli.live import checkpoint_of, live_table, saved_on_interrupt, tidy
from suffice.cli.train import DATA, TRAINING

if TYPE_CHECKING:
    from suffice.attribution.learned import ShapleyProgress

EXAMPLES = output.examples(
    "suffice train shapley --model zoo/deit --images 'scenes:train[:2000]' --out explainers",
    "suffice train shapley --model timm/vit_tiny_patch16_224 --images photos --never held-out --steps 20000",
)
COLUMNS = ("network", "step", "loss", "val loss", "explained", "images/s", "left")
HEADINGS = {
    DATA: ("never", "on_error", "alters"),
    TRAINING: (
        "surrogate_steps", "steps", "images_per_batch", "sets", "surrogate_lr", "lr", "baseline", "grid", "seed",
    ),
    RUN: ("precision", "checkpoint_every", "resume"),
}  # fmt: skip


def train_shapley(
    model: ModelOptions,
    images: opt.TrainingImages,
    explainer: Annotated[
        str | None,
        typer.Option("--explainer", help="Model whose copy learns the values; default: the surrogate."),
    ] = None,
    never: opt.Never = None,
    on_error: opt.OnError = "skip",
    surrogate_steps: Annotated[
        int | None,
        typer.Option(min=0, help="Batches to train the surrogate; 0 uses the model itself; default: 400."),
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Batches to train the explainer; default: 2000.")] = None,
    images_per_batch: opt.TrainingBatch = None,
    sets: Annotated[int | None, typer.Option(min=2, help="Sets of cells per image; default: 16.")] = None,
    surrogate_lr: Annotated[float | None, typer.Option(help="Learning rate of the surrogate.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate of the explainer.")] = None,
    baseline: Annotated[str | None, typer.Option(help="What hidden cells show; default: gray.")] = None,
    grid: Annotated[
        int | None, typer.Option(min=2, help="Rows and columns of cells; default: those of the last layer.")
    ] = None,
    alters: opt.Alters = False,
    precision: Annotated[
        opt.Precision, typer.Option(help="Precision in which the surrogate is asked; bf16 also trains in it.")
    ] = "fp32",
    seed: opt.Seed = 0,
    out: Annotated[Path, typer.Option(callback=opt.writable, help="Folder for the file and checkpoints.")] = Path(
        "explainers"
    ),
    checkpoint_every: opt.CheckpointEvery = 100,
    resume: opt.Resume = False,
    as_json: opt.AsJson = False,
) -> None:
    """Train networks that give a model's Shapley values, and write them to OUT/MODEL-shapley.safetensors.

    The file is for the method vit-shapley: --option explainer=FILE. First, a surrogate learns to say about images with
    hidden cells what the model says about whole ones. Then an explainer learns values whose sums are what the surrogate
    says. The model itself is not changed. A tenth of the images is held out to monitor training: "explained" is how
    much better the values tell the score of a set than its size does. Ctrl-C saves the state; run the same command with
    --resume to continue.
    """
    from suffice.attribution.learned import ShapleyRecipe, open_explainer_images, save_shapley
    from suffice.attribution.learned import train_shapley as train
    from suffice.attribution.learned.shapley_files import shapley_facts
    from suffice.perturb import Runner
    from suffice.vision import load

    by = "" if explainer is None else f"-by-{explainer.replace('/', '-')}"
    name = f"{model.model.replace('/', '-')}-shapley{by}"
    file, checkpoint = out / f"{name}.safetensors", checkpoint_of(out / name / "last.pt", resume)
    given = {
        "surrogate_steps": surrogate_steps, "steps": steps, "batch": images_per_batch, "sets": sets,
        "surrogate_lr": surrogate_lr, "lr": lr, "baseline": baseline, "grid": grid,
        "alters": alters, "seed": seed,
    }  # fmt: skip
    recipe = ShapleyRecipe(**{key: value for key, value in given.items() if value is not None})  # type: ignore[arg-type]
    net = model.load()
    trunk = None if explainer is None else load(explainer, device=net.device)
    with output.progress("Preparing images") as on_images:
        prepared = open_explainer_images(
            Runner(net), images[0] if len(images) == 1 else images,
            never=(never[0] if len(never) == 1 else never) if never else None, name=" ".join(images),
            on_error=on_error, on_progress=on_images,
        )  # fmt: skip
    title = f"Shapley values of {net.name}, {len(prepared.train):,} images"
    rows: list[ShapleyProgress] = []
    with saved_on_interrupt(checkpoint), live_table(title, COLUMNS, _cells, lambda _: True) as on_progress:

        def keep(row: ShapleyProgress) -> None:
            rows.append(row)
            on_progress(row)

        learned = train(
            net, prepared, recipe, trunk=trunk, precision=precision, checkpoint=checkpoint,
            checkpoint_every=checkpoint_every, resume=resume, on_progress=keep,
        )  # fmt: skip
    save_shapley(learned, file)
    tidy(checkpoint)
    if as_json:
        history = [asdict(row) for row in rows]
        skipped = [vars(skip) for skip in prepared.skipped]
        output.print_json({**shapley_facts(learned), "history": history, "file": str(file), "skipped": skipped})
        output.finish(prepared.skipped)
        return
    surrogate, explained = learned.validation["surrogate"], learned.validation["explained"]
    output.print_table(
        title,
        ("quantity", "value"),
        [
            ("surrogate, divergence on held-out images", "not trained" if surrogate is None else f"{surrogate:.4f}"),
            ("explainer, loss on held-out images", f"{learned.validation['explainer']:.4f}"),
            ("explained", f"{explained:.1%}"),
            ("images left out", f"{prepared.left_out:,}"),
            ("file", file),
        ],
    )
    output.finish(prepared.skipped)


def _cells(row: ShapleyProgress) -> tuple[str, ...]:
    left = f"{row.remaining // 60:.0f}:{row.remaining % 60:02.0f}"
    explained = "" if row.explained is None else f"{row.explained:.1%}"
    step = f"{row.step}/{row.steps}"
    return row.part, step, f"{row.loss:.4f}", f"{row.validation:.4f}", explained, f"{row.rate:,.0f}", left
