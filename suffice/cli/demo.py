"""``suffice demo``: see it work, without a network, a GPU or a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suffice.cli import options as opt
from suffice.cli import output

EXAMPLES = output.examples(
    "suffice demo",
    "suffice demo --images 200 --out thorough",
    "suffice demo --networks resnet,deit --images 8",
)


def demo(
    out: Annotated[Path, typer.Option(callback=opt.writable, help="Folder for the study and its report.")] = Path(
        "suffice-demo"
    ),
    images: Annotated[
        int | None, typer.Option(min=2, help="Number of scenes; more tell you more, but take longer.")
    ] = None,
    networks: Annotated[str | None, typer.Option(help="Networks of the zoo, as a,b,c; default: all.")] = None,
    open_it: Annotated[bool, typer.Option("--open", help=opt.OPEN_REPORT)] = False,
) -> None:
    """Run the built-in study and write its report: what is enough for seventeen small networks to decide?

    The networks come with the package; they are modeled on those of the papers and were trained on scenes, small
    pictures made by rule. Takes about three minutes on two cores; if interrupted, run it again to continue.
    """
    from suffice.report import make_report
    from suffice.report.demo import demo_study, run_on_all_cores

    chosen = opt.listed(networks or "")
    study = demo_study(images=images, networks=chosen)
    count = len(chosen) or "seventeen"
    output.note(
        f"Asking {count} small networks what is enough for them to decide. Scenes show creatures of 16 kinds; any two "
        "of a creature's five parts tell its kind."
    )
    trouble: list[str] = []
    with output.progress("Parts of the study") as report:
        done = run_on_all_cores(study, out, on_progress=report, on_trouble=trouble.append)
    with output.asking("Making the report"):
        made = make_report(done)
        page = made.save(out / "report.html")
    output.note(*trouble)
    for finding in made.page.findings:
        output.note(f"• {finding.text} ({finding.shown})")
    output.note(
        "A few scenes and one training run of each network are enough to see how it works, not to settle a question.\n"
        f"\nThe report:  {page}\n"
        f"Explore it:  suffice serve {out / 'run'}\n"
        "Your images: suffice evidence PHOTO.jpg --model timm/deit_small_patch16_224 --out evidence\n"
        "             suffice explain PHOTO.jpg --model timm/resnet50 --method grad-cam,rise,igos++ --score"
    )
    print(page)
    if open_it:
        typer.launch(str(page))
