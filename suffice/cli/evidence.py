"""``suffice evidence``: what is enough for a model to decide."""

from __future__ import annotations

from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from suffice.cli import options as opt
from suffice.cli import output
from suffice.cli.groups import OUTPUT, RUN, ImageOptions, ModelOptions, flat, under
from suffice.errors import OptionError

if TYPE_CHECKING:
    from suffice.evidence import Settings

EXAMPLES = output.examples(
    "suffice evidence cat.jpg --model timm/deit_small_patch16_224 --out evidence",
    "suffice evidence photos/ --model torchvision/resnet50 --precision fp16 --compile --batch 1024 --out evidence",
    "suffice evidence cat.jpg --model timm/vit_tiny_patch16_224 --checkpoint vit.safetensors --stability --refine 14",
)

FEW = 20  # up to so many images are printed, and get figures without being asked for
LIMITS = ("certify", "max_mses", "max_size", "max_questions")  # numbers that can be none
HEADINGS = {
    "Question": ("grid", "threshold", "keeps", "baseline", "above_baseline", "min_confidence", "score"),
    "Search": (
        "beam_width", "search", "prefer_disjoint", "exhaustive", "deletion_orders", "max_mses", "max_size",
        "max_questions",
    ),
    "Certainty": ("minimal", "certify", "subset_budget", "confirm"),
    "Extras": ("contrastive", "necessary", "refine", "stability", "second_baseline"),
    RUN: ("batch", "precision", "compile"),
    OUTPUT: ("figures", "format", "layout", "hide", "numbers", "regions", "subexplanations", "overwrite", "as_json"),
}  # fmt: skip


@under(HEADINGS)
@flat
def evidence(
    images: ImageOptions,
    model: ModelOptions,
    out: Annotated[
        Path | None,
        typer.Option(
            callback=opt.writable, help="Folder for the study, graphs, and pictures; an existing one is resumed."
        ),
    ] = None,
    target: Annotated[str | None, typer.Option(help="Class to ask about; default: the predicted class.")] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="Settings to start from instead of the defaults: cvpr2024 or preprint, closest to those papers."
        ),
    ] = None,
    grid: Annotated[int | None, typer.Option(help="Cells per side of the grid; default: 7.")] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Share of the whole image's confidence (the ratio) that is enough; default: 0.9."),
    ] = None,
    keeps: Annotated[
        Literal["ratio", "top-1", "both"] | None,
        typer.Option(help="What a set of cells must keep to be enough: the ratio, the top class, or both."),
    ] = None,
    above_baseline: Annotated[
        bool, typer.Option("--above-baseline", help="Measure ratios from the baseline's own confidence up, not from 0.")
    ] = False,
    min_confidence: Annotated[
        float | None, typer.Option(help="An image gets no evidence if its confidence is below this; default: 0.01.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="What hidden cells show: blur, black, gray, noise, … or an image file.")
    ] = None,
    beam_width: Annotated[
        int | None, typer.Option(help="Sets of cells kept at each level of the search; default: 5.")
    ] = None,
    search: Annotated[
        Literal["paper", "sag"] | None,
        typer.Option(help="Cells tried at each level: all (paper), or the most salient by a seed map (sag)."),
    ] = None,
    exhaustive: Annotated[int | None, typer.Option(help="Evaluate every set of up to this many cells.")] = None,
    prefer_disjoint: Annotated[
        bool, typer.Option("--prefer-disjoint", help="Prefer sets that share few cells with each other.")
    ] = False,
    deletion_orders: Annotated[
        int | None,
        typer.Option(help="If the beam finds nothing, remove cells from the whole image in N orders; default: 4."),
    ] = None,
    max_mses: Annotated[
        str | None,
        typer.Option(help="Stop once an image has more than this many MSEs; 'none' for no limit; default: 10."),
    ] = None,
    max_size: Annotated[
        str | None, typer.Option(help="Largest set to look at, in cells; 'none' for no limit; default: 18.")
    ] = None,
    max_questions: Annotated[
        str | None,
        typer.Option(
            help="Begin no level of the search that could take an image beyond this many questions (masked images); "
            "pruning and what lies below come on top."
        ),
    ] = None,
    minimal: Annotated[
        Literal["single", "subset"] | None,
        typer.Option(
            help="What minimal means: no single cell can be removed (single), or no subset is enough (subset)."
        ),
    ] = None,
    certify: Annotated[
        str | None,
        typer.Option(
            help="Certify MSEs of up to this many cells (check all their subsets); 'none' for all; default: 6."
        ),
    ] = None,
    subset_budget: Annotated[
        int | None, typer.Option(help="Most subsets to ask about to certify the MSEs of one image; default: 20000.")
    ] = None,
    confirm: Annotated[
        Literal["doubtful", "all", "none"] | None,
        typer.Option(help="What to confirm in fp32 after a search in another precision; default: doubtful."),
    ] = None,
    stability: Annotated[
        bool, typer.Option("--stability", help="Also check whether MSEs stay sufficient under small changes.")
    ] = False,
    second_baseline: Annotated[
        str | None, typer.Option(help="Also measure the ratio of each MSE over this baseline.")
    ] = None,
    contrastive: Annotated[
        bool,
        typer.Option("--contrastive", help="Also find sets that are enough while the rest of the image is not."),
    ] = False,
    necessary: Annotated[
        bool,
        typer.Option("--necessary", help="Also find the smallest sets without which the rest is not enough."),
    ] = False,
    refine: Annotated[str | None, typer.Option(help="Also refine MSEs on finer grids, such as 14,28.")] = None,
    score: Annotated[
        Literal["softmax", "sigmoid"] | None,
        typer.Option(help="How the confidence is computed from the model's outputs; default: softmax."),
    ] = None,
    batch: Annotated[int | None, typer.Option(min=1, help=opt.MASKED_IMAGES)] = None,
    precision: Annotated[
        opt.AnyPrecision, typer.Option(help="Precision of the model; auto: one that is fast on the device.")
    ] = "fp32",
    compile: opt.Compile = False,
    figures: Annotated[
        bool | None,
        typer.Option("--figures/--no-figures", help=f"Draw graphs and pictures; default: for up to {FEW} images."),
    ] = None,
    format: opt.PictureFormat = "svg",
    layout: Annotated[
        Literal["page", "column", "slide"],
        typer.Option(help="Form of graphs: column for a column of a paper, slide for 16:9 with large type."),
    ] = "page",
    hide: Annotated[
        Literal["dim", "baseline", "fade"] | None,
        typer.Option(
            help="What hidden cells of graphs show: the baseline (dimmed or as it is) or the image; default: dim."
        ),
    ] = None,
    numbers: Annotated[
        bool | None,
        typer.Option("--numbers/--no-numbers", help="Number the cells of graphs; default: with --layout page."),
    ] = None,
    regions: Annotated[
        bool,
        typer.Option(
            "--regions/--no-regions", help="Save the regions below MSEs; without them, graphs show only MSEs."
        ),
    ] = True,
    subexplanations: Annotated[
        bool, typer.Option("--subexplanations", help="Also write a table with one row for each of those regions.")
    ] = False,
    overwrite: opt.Overwrite = False,
    as_json: opt.AsJson = False,
) -> None:
    """Find the smallest regions of an image that are enough for the model to decide, and what lies below them.

    Prints the minimal sufficient explanations (MSEs) of each image and counts of their sub-explanations; for many
    images, only a summary. With --out, everything found is saved as a study, and each image gets a folder with its
    structured attention graph (SVG, JSON, DOT) and a picture of every MSE. Ctrl-C keeps what is finished; run the same
    command again to continue.
    """
    settings = _settings(preset, locals())
    if subexplanations and (out is None or not regions):
        raise OptionError("--subexplanations needs --out, and cannot be combined with --no-regions.")

    from suffice.cli.evidence_search import KeptSearch, PassingSearch, Search
    from suffice.cli.evidence_words import print_evidence, print_summary
    from suffice.draw.files import check_format
    from suffice.evidence import EvidenceStream
    from suffice.evidence.files.provenance import search_provenance
    from suffice.evidence.files.statistics import summarize
    from suffice.evidence.files.subexplanations import write_subexplanations
    from suffice.evidence.files.table import evidence_record
    from suffice.evidence.stream import check_search
    from suffice.perturb import Runner
    from suffice.report import draw_evidence
    from suffice.study import Study
    from suffice.study.taking_up import take_up

    check_format(format)
    opened, net = images.open(), model.load()
    net = net if score is None else net.replace(score=score)
    named = opt.named_precision(precision, net)
    few = len(opened) <= FEW
    draw = out is not None and (few if figures is None else figures)
    if not draw and not (layout == "page" and hide is None and numbers is None):
        needed = "--out" if out is None else "--figures"
        raise OptionError(f"--layout, --hide, and --numbers are about graphs, which need {needed}.")
    searching: Search
    stopped = False
    if out is None:
        runner = Runner(net, batch_size=batch or "auto", precision=named, compile=compile)
        stream = EvidenceStream(net, opened, target, settings, runner, on_error=images.on_error_of(opened))
        searching = PassingSearch(stream, search_provenance(runner, settings, target))
    else:
        images.check(opened)
        check_search(net, settings)
        if target is not None:
            net.class_index(target)
        wanted = {"kind": "evidence", **_plain(settings), "regions": regions, "target": target}
        run = {"precision": named, "compile": compile, "batch": batch or "auto"}
        study = Study("evidence", images.choice(), model.choice(score=score), {"evidence": wanted}, run)
        with output.asking("Searching"):
            taken = take_up(study, out, device=model.device, overwrite=overwrite)
        searching, stopped = KeptSearch(taken, model.model), taken.stopped
        opt.note_earlier(taken.earlier, len(opened))

    printed: list[dict[str, Any]] = []
    about = searching.about
    with closing(searching.each()) as every:
        try:
            for found in every if few or draw or as_json or out is None else ():
                if out is not None and draw:
                    pixels = net.geometry(opened[found.index].decode())
                    draw_evidence(
                        found, out / "figures", pixels, format, about, layout=layout, hide=hide, numbers=numbers
                    )
                if as_json:
                    printed.append(evidence_record(found))
                elif few:
                    print_evidence(found)
        except KeyboardInterrupt:
            stopped = True
    kept = searching.table
    if as_json:
        printed.sort(key=lambda one: one["index"])  # they come as they are finished
        output.print_json({**about, "images": printed, "skipped": [vars(skip) for skip in searching.skipped]})
    elif len(opened) > 1 and kept.num_rows:
        print_summary(summarize(kept), net.name, settings)
    if out is not None:
        written = ["a study"]
        if subexplanations:
            written.append(write_subexplanations(searching.each(), out / "subexplanations.parquet", about).name)
        output.note(f"Written to {out}: {', '.join(written)}{', graphs and pictures in figures' if draw else ''}")
    if stopped:
        output.note(f"Stopped; {kept.num_rows} of {len(opened)} images are finished.")
    output.finish(searching.skipped, stopped)


def _settings(preset: str | None, given: dict[str, Any]) -> Settings:
    """The settings that the options of the command mean: a preset, with what was given changed."""
    from suffice.evidence import Settings
    from suffice.evidence import preset as named_settings

    given = {name: value for name, value in given.items() if value is not None and value is not False}
    changes = {field.name: given[field.name] for field in fields(Settings) if field.name in given}
    changes |= {name: _limit(name, changes[name]) for name in LIMITS if name in changes}
    if "refine" in changes:
        changes["refine"] = tuple(_whole("refine", part) for part in changes["refine"].split(","))
    return named_settings(preset or "default").changed(**changes)


def _plain(settings: Settings) -> dict[str, Any]:
    """All choices as a study has them: the seed is that of the study, and a file lies where it lies from anywhere."""
    plain = {name: value for name, value in settings.to_dict().items() if name != "seed"}
    for name in ("baseline", "second_baseline"):
        if plain[name] is not None and Path(plain[name]).is_file():
            plain[name] = str(Path(plain[name]).resolve())
    return plain


def _limit(name: str, text: str) -> int | None:
    return None if text == "none" else _whole(name, text, ", or none")


def _whole(name: str, text: str, other: str = "") -> int:
    try:
        return int(text)
    except ValueError:
        raise OptionError(f"--{name.replace('_', '-')} {text!r}; expected a whole number{other}.") from None
