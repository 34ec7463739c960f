"""``suffice bench``: measure speed on this machine, beside the bare model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from suffice.cli import options as opt
from suffice.cli import output
from suffice.cli.groups import ImageOptions, ModelOptions, flat

app = typer.Typer(help="Measure speed on this machine, relative to the bare model.", no_args_is_help=True)


@dataclass(frozen=True)
class ViT(ModelOptions):
    """The model to measure, by default a small transformer."""

    model: Annotated[str, typer.Option("--model", "-m", help="Model to measure.")] = "timm/vit_tiny_patch16_224"


@dataclass(frozen=True)
class ResNet(ModelOptions):
    """The model to measure, by default a small convolutional network."""

    model: Annotated[str, typer.Option("--model", "-m", help="Model to measure.")] = "timm/resnet18"


PhotoFiles = Annotated[list[str], typer.Argument(help=opt.IMAGE_FILES)]
MaskedBatch = Annotated[int, typer.Option(min=1, help=opt.MASKED_IMAGES)]
# Headings and formats of tables, in the order of the fields of a timing.
PROBE_COLUMNS = {
    "questions": "{}", "bare forwards/s": "{:.1f}", "probe forwards/s": "{:.1f}", "efficiency": "{:.3f}",
}  # fmt: skip
METHODS_COLUMNS = {
    "method": "{}", "precision": "{}", "images/s": "{:,.2f}", "forwards": "{:,.0f}", "backwards": "{:,.0f}",
    "efficiency": "{:.2f}", "peer": "{}", "its images/s": "{:,.2f}", "speed-up": "{:.2f} ×",
    "beside each": "{:.2f} ×",
}  # fmt: skip


@app.command(
    epilog=output.examples(
        "suffice bench probe --model timm/vit_tiny_patch16_224 --random-weights",
        "suffice bench probe --model timm/resnet50 --random-weights --batch 1024 --precision fp16 --compile",
    )
)
@flat
def probe(
    model: ViT,
    images: Annotated[int, typer.Option(min=1, help="Number of images to ask about.")] = 4,
    batch: MaskedBatch = 32,
    precision: opt.ModelPrecision = "fp32",
    compile: opt.Compile = False,
    batches: Annotated[int, typer.Option(min=1, help="Forward passes per timing.")] = 4,
    rounds: Annotated[int, typer.Option(min=1, help="Timings of each kind; the median counts.")] = 5,
    as_json: opt.AsJson = False,
) -> None:
    """Measure forward passes per second of the bare model and inside the probe, and their ratio."""
    import torch

    from suffice.bench import benchmark_probe

    net = model.load()
    on_gpu = net.device.type == "cuda"
    where = torch.cuda.get_device_name(net.device) if on_gpu else f"CPU, {torch.get_num_threads()} threads"
    how: dict[str, Any] = {"batch_size": batch, "precision": precision, "compile": compile}
    setting = _setting(net.name, where, **how)
    timings = []
    with output.progress(setting) as on_progress:
        for timing in benchmark_probe(net, images=images, batches=batches, rounds=rounds, **how):
            timings.append(timing)
            on_progress(len(timings), 3)
    _print_each(timings, {"setting": setting}, PROBE_COLUMNS, as_json)


@app.command(
    epilog=output.examples(
        "suffice bench evidence photos/ --model timm/vit_tiny_patch16_224 --checkpoint vit.safetensors --images 8",
        "suffice bench evidence photos/ --model timm/resnet50 --batch 1024 --precision fp16 --compile --images 500",
    )
)
@flat
def evidence(
    photos: PhotoFiles,
    model: ViT,
    images: Annotated[int, typer.Option(min=1, help=opt.FIRST_IMAGES)] = 8,
    at_once: Annotated[int | None, typer.Option(min=1, help="Images searched side by side.")] = None,
    batch: MaskedBatch = 32,
    precision: opt.ModelPrecision = "fp32",
    compile: opt.Compile = False,
    twin_images: Annotated[int, typer.Option(min=0, help="Images to search again, one question at a time.")] = 1,
    as_json: opt.AsJson = False,
) -> None:
    """Measure how fast evidence is found, beside the bare model and beside asking one question at a time."""
    from suffice.bench import benchmark_evidence

    net = model.load()
    how: dict[str, Any] = {"batch_size": batch, "precision": precision, "compile": compile}
    how |= {"images_at_once": at_once or "auto", "twin_images": twin_images}
    timing = benchmark_evidence(net, ImageOptions(photos).open(images), **how)
    _print_one(timing, {"model": net.name}, f"{net.name} · batch {batch} · {precision}", as_json)


@app.command(
    epilog=output.examples(
        "suffice bench methods --model timm/resnet18 --random-weights --methods gradient,grad-cam,rise",
        "suffice bench methods --model timm/resnet50 --random-weights --images 64 --batch 512 --precision fp16",
        "suffice bench methods photos/ --model timm/vit_base_patch16_224 --methods tis --option tis.masks=1024",
    )
)
@flat
def methods(
    model: ResNet,
    photos: Annotated[list[str] | None, typer.Argument(help="Images to explain; default: random ones.")] = None,
    names: Annotated[str | None, typer.Option("--methods", help="Methods, by commas; default: all that fit.")] = None,
    option: opt.MethodOptions = None,
    images: Annotated[int, typer.Option(min=1, help="Number of images to explain.")] = 4,
    batch: Annotated[int, typer.Option(min=1, help=opt.INPUTS)] = 32,
    precision: Annotated[opt.Precision, typer.Option(help="Precision of our methods; peers use fp32.")] = "fp32",
    compile: Annotated[bool, typer.Option("--compile", help="Compile the model for methods that allow it.")] = False,
    rounds: Annotated[int, typer.Option(min=1, help="Timings of each method; the best counts.")] = 3,
    peer_images: Annotated[int | None, typer.Option(min=1, help="Time peers on only the first N images.")] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Measure images per second of attribution methods, beside the fastest of the peers that are installed.

    Peers are Captum, TorchCAM, and pytorch-grad-cam; for RISE, ViT-CX, and TIS, which none of them has, the published
    loops.
    """
    import torch

    from suffice.attribution import list_methods
    from suffice.bench import benchmark_methods

    net = model.load()
    chosen, options = opt.chosen_methods(names or ",".join(list_methods(net=net)), option)
    if photos:
        pixels = net.prepare(ImageOptions(photos).open(images))
    else:
        pixels = torch.rand(images, 3, *net.size, generator=torch.Generator().manual_seed(0))
    how: dict[str, Any] = {"batch_size": batch, "precision": precision, "compile": compile}
    setting = _setting(net.name, f"{len(pixels)} images", **how)
    more: dict[str, Any] = {"rounds": rounds, "options": options, "peer_images": peer_images}
    timings = []
    with output.progress(setting) as on_progress, suppress(KeyboardInterrupt):  # what was timed is printed
        for timing in benchmark_methods(net, [one.name for one in chosen], pixels, **how, **more):
            timings.append(timing)
            on_progress(len(timings), len(chosen))
    stopped = len(timings) < len(chosen)
    if stopped:
        output.note(f"Stopped early, after {len(timings)} of {len(chosen)} methods.")
    _print_each(timings, {"setting": setting, "options": options}, METHODS_COLUMNS, as_json)
    output.finish((), stopped)


@app.command(
    epilog=output.examples(
        "suffice bench metrics photos/ --model timm/resnet18 --steps 224",
        "suffice bench metrics photos/ --model timm/resnet50 --images 5000 --batch 1024 --precision fp16 --compile",
    )
)
@flat
def metrics(
    photos: PhotoFiles,
    model: ResNet,
    names: Annotated[str, typer.Option("--metric", help="Metrics to measure together, separated by commas.")] = (
        "insertion,deletion"
    ),
    protocol: Annotated[str, typer.Option(help="Protocol of the metrics; see suffice score --help.")] = "default",
    steps: Annotated[int | None, typer.Option(min=1, help=opt.STEPS)] = None,
    images: Annotated[int, typer.Option(min=1, help="Number of images; if there are fewer, they are repeated.")] = 8,
    batch: MaskedBatch = 32,
    precision: opt.ModelPrecision = "fp32",
    compile: opt.Compile = False,
    as_json: opt.AsJson = False,
) -> None:
    """Measure how fast metrics are measured on random maps, beside the bare model."""
    from suffice.bench import benchmark_metrics

    net = model.load()
    opened = ImageOptions(photos).open(images)
    opened = opened[[number % len(opened) for number in range(images)]]
    how: dict[str, Any] = {"batch_size": batch, "precision": precision, "compile": compile}
    more: dict[str, Any] = {} if steps is None else {"steps": steps}
    timing = benchmark_metrics(net, opened, opt.listed(names), protocol, **how, **more)
    _print_one(timing, {"model": net.name, **how}, f"{net.name} · {names} · {protocol}", as_json)


def _setting(*words: str, batch_size: int, precision: str, compile: bool) -> str:
    return " · ".join([*words, f"batch {batch_size}", precision, *(["compiled"] if compile else [])])


def _cell(value: object, text: str) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {text.format(each)}" for name, each in value.items()) or "–"
    return "–" if value is None else text.format(value)


def _print_each(timings: Sequence[object], about: dict[str, Any], columns: Mapping[str, str], as_json: bool) -> None:
    """One line a timing, or JSON with what they are about."""
    if as_json:
        output.print_json({**about, "timings": [vars(t) for t in timings]})
        return
    formats = list(columns.values())
    rows = [[_cell(value, text) for value, text in zip(vars(t).values(), formats, strict=True)] for t in timings]
    right = [number for number, text in enumerate(formats) if text != "{}"]
    output.print_table(about["setting"], list(columns), rows, right=right)


def _print_one(timing: object, about: dict[str, Any], title: str, as_json: bool) -> None:
    """One line a quantity, or JSON with what they are about."""
    if as_json:
        output.print_json({**about, **vars(timing)})
        return
    rows = [(name.replace("_", " "), _cell(value, "{:,.3f}")) for name, value in vars(timing).items()]
    output.print_table(title, ("quantity", "value"), rows, right=(1,))
