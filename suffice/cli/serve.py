"""``suffice serve``: the explorer, on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suffice.cli import options as opt
from suffice.cli import output

EXAMPLES = output.examples(
    "suffice serve",
    "suffice serve --model timm/resnet50 --model timm/deit_small_patch16_224 --image photos/",
    "suffice serve --model timm/resnet50 --checkpoint mine.safetensors --model timm/resnet50 --checkpoint -",
    "suffice serve runs/first --model 'zoo/*'",
)


def serve(
    run: Annotated[
        Path | None, typer.Argument(help="Folder of a study, to explore its tables, figures, images, and models.")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", help="Model, such as timm/resnet50; repeat for several.")
    ] = None,
    checkpoint: Annotated[
        list[str] | None,
        typer.Option(help="Weights file for the --model before it, or - for the published weights; one per --model."),
    ] = None,
    image: Annotated[
        list[str] | None, typer.Option("--image", "-i", help="Image, folder, list, or scenes:…; repeat for several.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but the loopback address needs --i-know.")
    ] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port; default: 8765, or a free one if it is taken.")
    ] = None,
    i_know: Annotated[
        bool,
        typer.Option("--i-know", help="I know that anyone who has the link can use the models and see the images."),
    ] = False,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = False,
    device: opt.Device = None,
    max_pixels: Annotated[int | None, typer.Option(min=1, help=opt.MAX_PIXELS)] = None,
) -> None:
    """Hide and show parts of an image on a web page, and see at once what each model says.

    Without arguments, four networks of the zoo look at scenes. The printed link contains a token; without it, the page
    does not answer. Ctrl-C stops the server.
    """
    from suffice.explorer.opening import open_explorer
    from suffice.explorer.server import check_host
    from suffice.explorer.server import serve as start

    check_host(host, i_know)
    explorer = open_explorer(
        run,
        model or (),
        image or (),
        checkpoints=checkpoint or (),
        device=device,
        max_pixels=max_pixels,
        say=output.note,
    )

    def started(link: str) -> None:
        output.note(f"Open {link}", "Press Ctrl-C to stop.")

    start(explorer, host=host, port=port, i_know=i_know, open_browser=browser, on_start=started)
