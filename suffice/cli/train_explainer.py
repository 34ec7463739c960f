"""``suffice train explainer``: train a network that explains another, on images of your own."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from suffice.cli import options as opt
from suffice.cli import output
from suffice.cli import train as train_network
from suffice.cli.groups import RUN, ModelOptions, flat, under
from suffice.cli.live import checkpoint_of, live_table, saved_on_interrupt, tidy
from suffice.cli.train_shapley import EXAMPLES as SHAPLEY_EXAMPLES
from suffice.cli.train_shapley import HEADINGS as SHAPLEY_HEADINGS
from suffice.cli.train_shapley import train_shapley

if TYPE_CHECKING:
    from suffice.attribution.learned import ExplainerProgress

EXAMPLES = output.examples(
    "suffice train explainer --model zoo/vgg --images 'scenes:train[:1000]' --out explainers",
    "suffice train explainer --model timm/resnet50 --images photos --never held-out --steps 2000",
    "suffice train explainer --model zoo/vgg --images 'scenes:train[:1000]' --explainer zoo/deit",
)
COLUMNS = ("step", "loss", "val loss", "confidence", "kept", "images/s", "left")

HEADINGS = {
    train_network.DATA: ("never", "on_error", "alters"),
    train_network.TRAINING: (
        "explains", "mask_weight", "mask_loss", "trains", "steps", "epochs", "images_per_batch", "lr", "seed",
    ),
    RUN: ("precision", "checkpoint_every", "resume"),
}  # fmt: skip
NETWORK = "network"  # what is trained where it is not said

Explains = Literal["predicted", "label"]
MaskLoss = Literal["bce", "bce-of-logit", "l1"]
Trains = Literal["all", "head"]


def train_explainer(
    model: ModelOptions,
    images: opt.TrainingImages,
    explainer: Annotated[
        str | None, typer.Option("--explainer", help="Model whose copy learns to explain; default: the model itself.")
    ] = None,
    never: opt.Never = None,
    on_error: opt.OnError = "skip",
    explains: Annotated[
        Explains, typer.Option(help="Class whose confidence masks must keep: the predicted one or the label.")
    ] = "predicted",
    mask_weight: Annotated[
        float | None, typer.Option(min=0, help="Weight of the penalty on the size of masks; default: 5.")
    ] = None,
    mask_loss: Annotated[MaskLoss | None, typer.Option(help="Form of that penalty; default: bce.")] = None,
    trains: Annotated[Trains | None, typer.Option(help="Which part to train; default: all.")] = None,
    alters: opt.Alters = False,
    steps: opt.Steps = None,
    epochs: Annotated[float | None, typer.Option(help="Passes over the images; default: 4.")] = None,
    images_per_batch: opt.TrainingBatch = None,
    lr: Annotated[float | None, typer.Option(help="Highest learning rate.")] = None,
    seed: Annotated[int, typer.Option(help="Seed for the head's weights and the order of images.")] = 0,
    precision: opt.ModelPrecision = "fp32",
    out: Annotated[Path, typer.Option(callback=opt.writable, help="Folder for the explainer and checkpoints.")] = Path(
        "explainers"
    ),
    checkpoint_every: opt.CheckpointEvery = 100,
    resume: opt.Resume = False,
    as_json: opt.AsJson = False,
) -> None:
    """Train an explainer of a model and write it to OUT/MODEL.safetensors, for the method eea: --option explainer=FILE.

    The explainer looks at an image and keeps as little of it as the model needs to decide as before; the model itself
    is not changed. A tenth of the images is held out to monitor training. Ctrl-C saves the state; run the same command
    with --resume to continue.
    """
    from suffice.attribution.learned import ExplainerRecipe, open_explainer_images, save_explainer
    from suffice.attribution.learned import train_explainer as train
    from suffice.attribution.learned.files import explainer_facts
    from suffice.perturb import Runner
    from suffice.vision import load

    name = model.model.replace("/", "-") + ("" if explainer is None else f"-by-{explainer.replace('/', '-')}")
    weights, checkpoint = out / f"{name}.safetensors", checkpoint_of(out / name / "last.pt", resume)
    net = model.load()
    given = {
        "explains": explains, "mask_weight": mask_weight, "mask_loss": mask_loss, "trains": trains, "steps": steps,
        "alters": alters, "epochs": epochs, "batch": images_per_batch, "lr": lr, "seed": seed,
    }  # fmt: skip
    chosen: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    recipe = ExplainerRecipe(**chosen)
    trunk = None if explainer is None else load(explainer, device=net.device)
    with output.progress("Preparing images") as on_images:
        prepared = open_explainer_images(
            Runner(net, precision=precision), images[0] if len(images) == 1 else images, explains=explains,
            never=(never[0] if len(never) == 1 else never) if never else None, name=" ".join(images),
            on_error=on_error, on_progress=on_images,
        )  # fmt: skip
    title = f"Explainer of {net.name}{'' if trunk is None else f' by {trunk.name}'}, {len(prepared.train):,} images"
    with saved_on_interrupt(checkpoint), live_table(title, COLUMNS, _cells, _looked) as on_progress:
        trained = train(
            net, prepared, recipe, trunk=trunk, precision=precision, checkpoint=checkpoint,
            checkpoint_every=checkpoint_every, resume=resume, on_progress=on_progress,
        )  # fmt: skip
    save_explainer(trained, weights)
    tidy(checkpoint)
    if as_json:
        history = [asdict(row) for row in trained.history]
        skipped = [vars(skip) for skip in prepared.skipped]
        output.print_json({**explainer_facts(trained), "history": history, "file": str(weights), "skipped": skipped})
        output.finish(prepared.skipped)
        return
    last = trained.history[-1]
    rows = [
        ("confidence kept", f"{last.confidence:.3f}"),
        ("share of the image kept", f"{last.kept:.1%}"),
        ("loss on held-out images", f"{last.validation:.4f}"),
        ("images", ", ".join(f"{v:,} {k}" for k, v in trained.images.items() if k != "name")),
        ("seconds", f"{trained.seconds:.1f}"),
        ("explainer", weights),
    ]
    output.print_table(title, ("quantity", "value"), rows)
    output.finish(prepared.skipped)


def _cells(row: ExplainerProgress) -> tuple[str, ...]:
    left = f"{row.remaining // 60:.0f}:{row.remaining % 60:02.0f}"
    looked = ("", "", "")
    if row.validation is not None and row.confidence is not None and row.kept is not None:
        looked = f"{row.validation:.4f}", f"{row.confidence:.3f}", f"{row.kept:.1%}"
    return f"{row.step}/{row.steps}", f"{row.loss:.4f}", *looked, f"{row.rate:,.0f}", left


def _looked(row: ExplainerProgress) -> bool:
    return row.validation is not None


class _Train(TyperGroup):
    """``suffice train NAME`` trains a network; what else there is to train is called by its own name."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in self.commands:
            args = [NETWORK, *args]
        return super().parse_args(ctx, args)


train_app = typer.Typer(cls=_Train, help="Train a small network, or an explainer of a model.")
train_app.command(NETWORK, epilog=train_network.EXAMPLES)(train_network.train)
train_app.command("explainer", epilog=EXAMPLES)(under(HEADINGS)(flat(train_explainer)))
train_app.command("shapley", epilog=SHAPLEY_EXAMPLES)(under(SHAPLEY_HEADINGS)(flat(train_shapley)))
