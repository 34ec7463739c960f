"""``suffice bench``: measure speed on this machine, beside the bare model."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

import typer

from suffice.cli import output
from suffice.cli.options import (
    AsJson,
    Checkpoint,
    Compile,
    Device,
    ImageFiles,
    MethodOptions,
    ModelName,
    ModelPrecision,
    Precision,
    RandomWeights,
    chosen_methods,
    images_of,
    load_model,
)

app = typer.Typer(help="Measure speed on this machine, as ratios against the bare model.", no_args_is_help=True)

EXAMPLES = """
Examples:

[green]suffice bench probe --model timm/vit_tiny_patch16_224 --random-weights[/green]

[green]suffice bench probe --model timm/resnet50 --random-weights --batch 1024 --precision bf16 --compile[/green]
"""

EVIDENCE_EXAMPLES = """
Examples:

[green]suffice bench evidence photos/ --model timm/vit_tiny_patch16_224 --checkpoint vit.safetensors --images 8[/green]

[green]suffice bench evidence photos/ --model timm/resnet50 --batch 1024 --precision bf16 --compile --images 500[/green]
"""


METHODS_EXAMPLES = """
Examples:

[green]suffice bench methods --model timm/resnet18 --random-weights --methods gradient,grad-cam,rise[/green]

[green]suffice bench methods --model timm/resnet50 --random-weights --images 64 --batch 512 --precision fp16[/green]

[green]suffice bench methods photos/ --model timm/vit_base_patch16_224 --methods tis --option tis.masks=1024[/green]
"""

METRICS_EXAMPLES = """
Examples:

[green]suffice bench metrics photos/ --model timm/resnet18 --steps 224[/green]

[green]suffice bench metrics photos/ --model timm/resnet50 --images 5000 --batch 1024 --precision fp16 --compile[/green]
"""


@app.callback()
def _bench() -> None: ...


@app.command("probe", epilog=EXAMPLES)
def probe(
    model: ModelName = "timm/vit_tiny_patch16_224",
    images: Annotated[int, typer.Option(min=1, help="Images that the questions are about.")] = 4,
    batch: Annotated[int, typer.Option(min=1, help="Masked images per forward.")] = 32,
    precision: ModelPrecision = Precision.fp32,
    compile: Compile = False,
    batches: Annotated[int, typer.Option(min=1, help="Forwards per timing.")] = 4,
    rounds: Annotated[int, typer.Option(min=1, help="Timings of each kind; the median counts.")] = 5,
    checkpoint: Checkpoint = None,
    random_weights: RandomWeights = False,
    device: Device = None,
    as_json: AsJson = False,
) -> None:
    """Forwards per second of the bare model and inside the probe, and their ratio."""
    import torch

    from suffice.bench import benchmark_probe

    net = load_model(model, checkpoint, random_weights, device)
    where = (
        torch.cuda.get_device_name(net.device)
        if net.device.type == "cuda"
        else f"CPU, {torch.get_num_threads()} threads"
    )
    setting = f"{net.name} · {where} · batch {batch} · {precision.value}{' · compiled' if compile else ''}"
    timings = []
    with output.progress(setting) as on_progress:
        for timing in benchmark_probe(
            net,
            images=images,
            batch_size=batch,
            precision=precision.value,
            compile=compile,
            batches=batches,
            rounds=rounds,
        ):
            timings.append(timing)
            on_progress(len(timings), 3)
    if as_json:
        output.print_json({"setting": setting, "timings": [vars(t) for t in timings]})
        return
    rows = [(t.questions, f"{t.bare:.1f}", f"{t.probe:.1f}", f"{t.efficiency:.3f}") for t in timings]
    output.print_table(
        setting, ("questions", "bare forwards/s", "probe forwards/s", "efficiency"), rows, right=(1, 2, 3)
    )


@app.command("evidence", epilog=EVIDENCE_EXAMPLES)
def evidence(
    photos: ImageFiles,
    model: ModelName = "timm/vit_tiny_patch16_224",
    images: Annotated[int, typer.Option(min=1, help="Use the first so many images.")] = 8,
    at_once: Annotated[int | None, typer.Option(min=1, help="Images searched side by side.")] = None,
    batch: Annotated[int, typer.Option(min=1, help="Masked images per forward.")] = 32,
    precision: ModelPrecision = Precision.fp32,
    compile: Compile = False,
    twin_images: Annotated[int, typer.Option(min=0, help="Images to search one question at a time, too.")] = 1,
    checkpoint: Checkpoint = None,
    random_weights: RandomWeights = False,
    device: Device = None,
    as_json: AsJson = False,
) -> None:
    """Speed of finding evidence, beside the bare model and beside asking one question at a time."""
    from suffice.bench import benchmark_evidence

    net = load_model(model, checkpoint, random_weights, device)
    timing = benchmark_evidence(
        net,
        images_of(photos, images),
        batch_size=batch,
        precision=precision.value,
        compile=compile,
        images_at_once=at_once or "auto",
        twin_images=twin_images,
    )
    if as_json:
        output.print_json({"model": net.name, **vars(timing)})
        return
    rows = [(name.replace("_", " "), "–" if v is None else f"{v:,.3f}") for name, v in vars(timing).items()]
    output.print_table(f"{net.name} · batch {batch} · {precision.value}", ("quantity", "value"), rows, right=(1,))


@app.command("methods", epilog=METHODS_EXAMPLES)
def methods(
    photos: Annotated[list[str] | None, typer.Argument(help="Images to explain; default: random ones.")] = None,
    model: ModelName = "timm/resnet18",
    names: Annotated[str | None, typer.Option("--methods", help="Separated by commas; default: all that fit.")] = None,
    option: MethodOptions = None,
    images: Annotated[int, typer.Option(min=1, help="How many images to explain.")] = 4,
    batch: Annotated[int, typer.Option(min=1, help="Inputs per forward.")] = 32,
    precision: Annotated[Precision, typer.Option(help="Of the model in our methods; peers have fp32.")] = (
        Precision.fp32
    ),
    compile: Annotated[bool, typer.Option("--compile", help="Compile the model where a method allows it.")] = False,
    rounds: Annotated[int, typer.Option(min=1, help="Timings of each; the best counts.")] = 3,
    peer_images: Annotated[int | None, typer.Option(min=1, help="Time peers on the first so many only.")] = None,
    checkpoint: Checkpoint = None,
    random_weights: RandomWeights = False,
    device: Device = None,
    as_json: AsJson = False,
) -> None:
    """Images per second of attribution methods, beside the fastest of the peers that are installed.

    Peers are Captum, TorchCAM and pytorch-grad-cam; for RISE, which none of them has, its published loop.
    """
    import torch

    from suffice.attribution import list_methods
    from suffice.bench import benchmark_methods

    net = load_model(model, checkpoint, random_weights, device)
    chosen, options = chosen_methods(names or ",".join(list_methods(net=net)), option)
    if photos:
        pixels = net.prepare(images_of(photos, images))
    else:
        pixels = torch.rand(images, 3, *net.size, generator=torch.Generator().manual_seed(0))
    timings = []
    setting = f"{net.name} · {len(pixels)} images · batch {batch} · {precision.value}{' · compiled' if compile else ''}"
    with output.progress(setting) as on_progress, suppress(KeyboardInterrupt):  # what was timed is printed
        for timing in benchmark_methods(
            net,
            [one.name for one in chosen],
            pixels,
            batch_size=batch,
            precision=precision.value,
            compile=compile,
            rounds=rounds,
            options=options,
            peer_images=peer_images,
        ):
            timings.append(timing)
            on_progress(len(timings), len(chosen))
    if len(timings) < len(chosen):
        output.note(f"Stopped early, after {len(timings)} of {len(chosen)} methods.")
    if as_json:
        output.print_json({"setting": setting, "options": options, "timings": [vars(t) for t in timings]})
        return
    rows = [
        (
            t.method,
            t.precision,
            f"{t.images_per_second:,.2f}",
            f"{t.forwards:,.0f}",
            f"{t.backwards:,.0f}",
            _or_dash(t.efficiency, "{:.2f}"),
            t.peer or "–",
            _or_dash(t.peer_images_per_second, "{:,.2f}"),
            _or_dash(t.speed_up, "{:.2f} ×"),
        )
        for t in timings
    ]
    columns = (
        "method",
        "precision",
        "images/s",
        "forwards",
        "backwards",
        "efficiency",
        "peer",
        "its images/s",
        "speed-up",
    )
    output.print_table(setting, columns, rows, right=(2, 3, 4, 5, 7, 8))


@app.command("metrics", epilog=METRICS_EXAMPLES)
def metrics(
    photos: ImageFiles,
    model: ModelName = "timm/resnet18",
    names: Annotated[str, typer.Option("--metric", help="Measured together; separated by commas.")] = (
        "insertion,deletion"
    ),
    protocol: Annotated[str, typer.Option(help="Every choice behind them; see suffice score --help.")] = "default",
    steps: Annotated[int | None, typer.Option(min=1, help="Of curves; default: as the protocol has it.")] = None,
    images: Annotated[int, typer.Option(min=1, help="Use so many images, the given ones over again if need be.")] = 8,
    batch: Annotated[int, typer.Option(min=1, help="Masked images per forward.")] = 32,
    precision: ModelPrecision = Precision.fp32,
    compile: Compile = False,
    checkpoint: Checkpoint = None,
    random_weights: RandomWeights = False,
    device: Device = None,
    as_json: AsJson = False,
) -> None:
    """Speed of measuring random maps, beside the bare model."""
    from suffice.bench import benchmark_metrics

    net = load_model(model, checkpoint, random_weights, device)
    opened = images_of(photos, images)
    opened = opened[[number % len(opened) for number in range(images)]]
    how: dict[str, Any] = {"batch_size": batch, "precision": precision.value, "compile": compile}
    more: dict[str, Any] = {} if steps is None else {"steps": steps}
    timing = benchmark_metrics(net, opened, [name.strip() for name in names.split(",")], protocol, **how, **more)
    if as_json:
        output.print_json({"model": net.name, **how, **vars(timing)})
        return
    rows = [(name.replace("_", " "), f"{value:,.3f}") for name, value in vars(timing).items()]
    output.print_table(f"{net.name} · {names} · {protocol}", ("quantity", "value"), rows, right=(1,))


def _or_dash(value: float | None, text: str) -> str:
    return "–" if value is None else text.format(value)
