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
        Path | None, typer.Argument(help="Folder of a study: its tables, figures, images and models.")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", help="Model, by any name that load takes; repeat for several.")
    ] = None,
    checkpoint: Annotated[
        list[str] | None,
        typer.Option(help="Weights of the --model before it; repeat with it, - for the published ones."),
    ] = None,
    image: Annotated[
        list[str] | None, typer.Option("--image", "-i", help="Image, folder, list or scenes:…; repeat for several.")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; others than loopback need --i-know.")] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port; default 8765, or a free one where it is taken.")
    ] = None,
    i_know: Annotated[
        bool, typer.Option("--i-know", help="That whoever gets hold of the link can use models and see images.")
    ] = False,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = False,
    device: opt.Device = None,
    max_pixels: Annotated[int | None, typer.Option(min=1, help="Refuse to decode larger images.")] = None,
) -> None:
    """Hide and show parts of an image on a page, and see at once what each model says.

    Without anything, four networks of the zoo look at scenes. The link that is printed has a token, without which the
    page does not answer. Ctrl-C ends it.
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
        output.note(f"Open {link}", "Ctrl-C ends it.")

    start(explorer, host=host, port=port, i_know=i_know, open_browser=browser, on_start=started)
