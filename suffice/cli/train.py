"""``suffice train``: train a small network on scenes or on your own images."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from suffice.cli import options as opt
from suffice.cli import output
from suffice.cli.groups import RUN, under
from suffice.cli.live import checkpoint_of, live_table, saved_on_interrupt, tidy
from suffice.errors import OptionError

if TYPE_CHECKING:
    import torch

    from suffice.zoo.training import Progress, Teacher, Trained

EXAMPLES = output.examples(
    "suffice train resnet --out trained",
    "suffice train deit-distilled --teacher resnet --out trained",
    "suffice train timm/resnet10t --data photos/train --validation photos/val --size 64 --epochs 30",
    "suffice train resnet --permute-labels --images 2000 --steps 3000",
    "suffice train explainer --help",
    "suffice train shapley --help",
)

PERMUTED_IMAGES = 2_000  # so few can be learned by heart in a minute
LEARNED = 0.95  # training accuracy from which permuted labels count as learned
COLUMNS = ("step", "loss", "train acc", "val acc", "images/s", "left")
DATA, TRAINING = "Data", "Training"
HEADINGS = {
    DATA: ("data", "validation", "size", "images", "permute_labels"),
    TRAINING: (
        "steps", "epochs", "batch", "lr", "smoothing", "mixup", "erase", "zoom", "ema", "teacher", "seed",
    ),
    RUN: ("device", "compile", "checkpoint_every", "resume"),
}  # fmt: skip


@under(HEADINGS)
def train(
    name: Annotated[str, typer.Argument(help="Architecture from the zoo, or timm/NAME.")],
    data: Annotated[
        str, typer.Option(help="Training data: scenes, a folder with one subfolder per class, or a.npz,b.npz.")
    ] = "scenes",
    validation: Annotated[
        str | None, typer.Option(help="Validation images: a folder or .npz file; default: every tenth image.")
    ] = None,
    size: Annotated[
        int | None, typer.Option(min=8, help="Pixels per side of an image; default: 56 for scenes, 64 for others.")
    ] = None,
    images: Annotated[int | None, typer.Option(min=2, help="Use only N training images.")] = None,
    steps: opt.Steps = None,
    epochs: Annotated[
        float | None, typer.Option(help="Passes over the images; default: 5 for scenes, 30 for others.")
    ] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Images per batch; default: 512.")] = None,
    lr: Annotated[float | None, typer.Option(help="Highest learning rate; default: 0.002.")] = None,
    smoothing: Annotated[float | None, typer.Option(help="Amount of label smoothing.")] = None,
    mixup: Annotated[
        float | None, typer.Option(help="Mix pairs of images with this mixup parameter; 0.2 is common.")
    ] = None,
    erase: Annotated[float | None, typer.Option(help="Probability of erasing a rectangle of an image.")] = None,
    zoom: Annotated[
        float | None, typer.Option(help="Enlarge random parts that cover at least this share of an image.")
    ] = None,
    ema: Annotated[
        float | None, typer.Option(help="Keep a moving average of the weights with this decay, such as 0.999.")
    ] = None,
    teacher: Annotated[
        str | None,
        typer.Option(
            help="Network to distill: a weights file, a name in --out, or none; default: resnet for distilled networks."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed for weights, order of images, and augmentation.")] = 0,
    permute_labels: Annotated[
        bool, typer.Option("--permute-labels", help="Shuffle the training labels, for sanity checks.")
    ] = False,
    device: opt.Device = None,
    compile: opt.Compile = False,
    out: Annotated[Path, typer.Option(callback=opt.writable, help="Folder for weights and checkpoints.")] = Path(
        "trained"
    ),
    checkpoint_every: opt.CheckpointEvery = 500,
    resume: opt.Resume = False,
    as_json: opt.AsJson = False,
) -> None:
    """Train a network and write its weights, with all facts about it, to OUT/NAME-seedN.safetensors.

    Ctrl-C saves the state; run the same command with --resume to continue. --permute-labels shuffles the labels of the
    training images (by default only 2,000, few enough to memorize), for the data randomization check of explanations.
    """
    from suffice.vision.devices import usable_device
    from suffice.zoo.training import open_data, recipe_for, save_trained
    from suffice.zoo.training import train as train_network
    from suffice.zoo.training.networks import hints
    from suffice.zoo.training.weights import checkpoint_path, facts_of, weights_path

    distilled, modern = hints(name)
    run = f"{name}-permuted" if permute_labels else name
    checkpoint, weights = checkpoint_of(checkpoint_path(out, run, seed), resume), weights_path(out, run, seed)
    where = usable_device(device)
    learned_from = _teacher(teacher or ("resnet" if distilled and not permute_labels else "none"), out, seed, where)
    if permute_labels and images is None:
        images = PERMUTED_IMAGES

    with output.progress("Preparing images") as on_images:
        prepared = open_data(data, validation=validation, size=size, images=images, device=where, on_progress=on_images)
    recipe = recipe_for(
        photographs=prepared.photographs, augmented=modern, steps=steps, epochs=epochs, batch=batch, lr=lr,
        smoothing=smoothing, mixup=mixup, erase=erase, zoom=zoom, ema=ema, seed=seed, compile=compile or None,
        permute_labels=permute_labels or None, teacher=None if learned_from is None else learned_from.name,
    )  # fmt: skip
    title = f"{run}, seed {seed}, {len(prepared.train):,} images"
    looked = live_table(title, COLUMNS, _cells, lambda row: row.validation is not None)
    with saved_on_interrupt(checkpoint), looked as on_progress:
        trained = train_network(
            name, prepared, recipe, teacher=learned_from, checkpoint=checkpoint, checkpoint_every=checkpoint_every,
            resume=resume, on_progress=on_progress,
        )  # fmt: skip
    save_trained(trained, weights)
    tidy(checkpoint)
    if as_json:
        history = [vars(row) for row in trained.history]
        output.print_json({**facts_of(trained), "history": history, "weights": str(weights)})
    else:
        _print(trained, weights)
    if permute_labels and trained.training_accuracy < LEARNED:
        learned = f"The permuted labels were not learned: training accuracy {trained.training_accuracy:.1%}."
        output.note(f"{learned} Give more --steps, or fewer --images.")


def _print(trained: Trained, weights: Path) -> None:
    accuracies = {part: getattr(trained, f"{part}_accuracy") for part in ("test", "validation", "training")}
    rows = [
        *((f"{part} accuracy", f"{share:.2%}") for part, share in accuracies.items() if share is not None),
        ("parameters", f"{trained.parameters:,}"),
        ("seconds", f"{trained.seconds:.1f}"),
        ("weights", weights),
    ]
    output.print_table(f"{trained.name} on {trained.data}", ("quantity", "value"), rows)


def _teacher(asked: str, out: Path, seed: int, device: torch.device) -> Teacher | None:
    """The teacher that --teacher names: a file, or a network that was trained into the same folder."""
    from suffice.zoo.training import load_teacher
    from suffice.zoo.training.weights import weights_path

    if asked == "none":
        return None
    is_file = asked.endswith(".safetensors")
    path = Path(asked) if is_file else weights_path(out, asked, seed)
    if not path.is_file():
        how = "" if is_file else f" Train it first: suffice train {asked} --seed {seed} --out {out}."
        raise OptionError(
            f"The teacher's weights {path} do not exist.{how} Or give --teacher FILE.safetensors, or --teacher none."
        )
    return load_teacher(path, device)


def _cells(row: Progress) -> tuple[str, ...]:
    validation = "" if row.validation is None else f"{row.validation:.1%}"
    left = f"{row.remaining // 60:.0f}:{row.remaining % 60:02.0f}"
    return f"{row.step}/{row.steps}", f"{row.loss:.4f}", f"{row.accuracy:.1%}", validation, f"{row.rate:,.0f}", left
