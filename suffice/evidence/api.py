"""One call from a classifier and images to evidence."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Literal

from suffice.evidence.counting import Counting
from suffice.evidence.files.provenance import search_provenance
from suffice.evidence.result import EvidenceSet
from suffice.evidence.settings import (
    Confirm,
    Keeps,
    Limit,
    Minimal,
    Passing,
    Ratio,
    Search,
    Settings,
    settings_of,
)
from suffice.evidence.stream import EvidenceStream, Progress
from suffice.options import Amount, Count, Share
from suffice.perturb import Runner
from suffice.perturb.baselines import Baseline
from suffice.perturb.masks import Cells
from suffice.perturb.runner import AnyPrecision
from suffice.plugins import suggests_arguments
from suffice.progress import reports
from suffice.vision import Model, as_classifier
from suffice.vision.classifier import Targets
from suffice.vision.stream import OnError


@suggests_arguments
@reports("Searching")
def find_evidence(
    net: Model,
    images: Any,
    targets: Targets = None,
    *,
    grid: Count = 7,
    threshold: Ratio = 0.9,
    strict: bool = False,
    keeps: Keeps = "ratio",
    above_baseline: bool = False,
    min_confidence: Share = 0.01,
    beam_width: Count = 5,
    search: Search = "paper",
    candidates: Count = 15,
    passing: Passing = "all",
    exhaustive: Limit = 0,
    prefer_disjoint: bool = False,
    beam_noise: Amount = 0.0,
    deletion_orders: Limit = 4,
    minimal: Minimal = "subset",
    certify: Limit | None = 6,
    subset_budget: Limit = 20_000,
    confirm: Confirm = "doubtful",
    max_mses: Limit | None = 10,
    max_size: Count | None = 18,
    max_questions: Count | None = None,
    expand_at: Ratio = 0.5,
    expanded_mses: Limit | None = None,
    counting: Counting = "distinct",
    max_regions: Limit = 50_000,
    baseline: Baseline = "blur",
    second_baseline: Baseline | None = None,
    cells: Cells = "hard",
    stability: bool = False,
    contrastive: bool = False,
    necessary: bool = False,
    refine: tuple[Count, ...] = (),
    seed: int = 0,
    beam_off_by_one: bool = False,
    repeated_sets: bool = False,
    noise_defect: bool = False,
    settings: Settings | str | None = None,
    batch_size: Count | Literal["auto"] = "auto",
    precision: AnyPrecision = "fp32",
    compile: bool = False,
    runner: Runner | None = None,
    images_at_once: Count | Literal["auto"] = "auto",
    on_error: OnError = "raise",
    progress: bool = False,
    on_progress: Progress | None = None,
) -> EvidenceSet:
    """Find minimal sufficient explanations: the smallest regions that are enough for the model to decide.

    A search that takes long is better a :class:`suffice.Study`, which goes on where it ended.

    Args:
        net: The classifier; its score must be a probability (softmax or sigmoid).
        images: Anything that :func:`suffice.open_images` takes.
        targets: The classes asked about: None (predicted on the whole image), an index or label for all, or one per
            image.
        grid: Cells per side.
        threshold: A set of cells suffices when confidence on it / confidence on the whole image is at least this.
        strict: The ratio must be above the threshold, not just at it.
        keeps: What a set must keep to suffice: the ``"ratio"``, the target as the ``"top-1"`` class, or ``"both"``.
        above_baseline: Measure ratios above the baseline: (confidence − baseline's) / (whole image's − baseline's).
        min_confidence: Ratios to a confidence below this mean nothing: such an image gets no evidence, and says why.
        beam_width: Sets kept at each level.
        search: ``"paper"``: every cell outside a set is a candidate, no seed map. ``"sag"``: only the ``candidates``
            most salient cells by a seed map are, as in the implementation of structured attention graphs.
        candidates: Cells tried for each set of the beam with ``search="sag"``.
        passing: Which candidates of a level may become explanations: ``"all"`` that suffice, or only those within the
            ``"beam"``, the ``beam_width`` best.
        exhaustive: Up to this many cells every set is evaluated that contains no MSE: all MSEs so small are found, for
            sure (with ``minimal="single"`` those that contain no other). Costs at most as many questions as there are
            sets: 1,225 up to 2 of 49 cells, 19,649 up to 3.
        prefer_disjoint: Fill the beam with sets that share few cells with each other, so that different MSEs are found.
        beam_noise: Random factor by which the beam ranks ratios (standard deviation of its logarithm), drawn by
            ``seed``: another search of the same image, to see what the first one missed.
        deletion_orders: Where the beam ends without an MSE, take cells out of the whole image in this many orders;
            0 leaves such images without, and so does a search that ``max_questions`` ended.
        minimal: ``"subset"``: no MSE contains another, and what is certified has no proper subset that suffices.
            ``"single"``, the papers' reading: no single cell can go; MSEs may contain others.
        certify: With ``minimal="subset"``: certify MSEs of up to this many cells (6 have 62 proper subsets), None for
            all.
        subset_budget: Most subsets to evaluate for the certificates of one image.
        confirm: After a search in another precision, confirm in fp32 every MSE, and of the subsets that it rests on
            those that are ``"doubtful"`` (near a threshold, as far as that precision errs) or ``"all"``; what fails is
            mended. ``"none"``: report what the search says.
        max_mses: Stop after the level at which there are more MSEs than this; None for no limit.
        max_size: Do not look at sets of more cells than this; None for no limit. An image with few MSEs would be
            searched up to the whole grid, and pruning large sets is costly.
        max_questions: Do not begin a level that could take the image's questions beyond this. Pruning, certificates and
            what lies below come on top.
        expand_at: Sets below an MSE with at least this ratio are expanded.
        expanded_mses: How many MSEs, in order of discovery, to look below; None for all, 0 for none.
        counting: The reading in which sub-explanations are reported, see :meth:`Evidence.subexplanations`; all are
            computed.
        max_regions: Most regions to evaluate below the MSEs of one image; counts are marked as truncated beyond.
        baseline: What shows where cells are hidden; see :func:`suffice.perturb.make_baseline`.
        second_baseline: Also ask for the ratio of each MSE over this one: :attr:`MSE.second_ratio`.
        cells: ``"hard"`` or ``"soft"`` edges.
        stability: Also ask whether MSEs stay sufficient under small changes: :attr:`Evidence.stability`.
        contrastive: Also find sets that are enough alone, and without which the rest is not.
        necessary: Also find the smallest sets without which the rest of the image is not enough.
        refine: Finer grids, such as ``(14, 28)``, on which to take needless parts out of the MSEs.
        seed: Seed of everything random.
        beam_off_by_one: As the implementation of structured attention graphs: the beam holds one set more.
        repeated_sets: As there: a set reached in two ways is in the beam twice. Its MSEs come from both together.
        noise_defect: As there: the seed map's noise falls on the red channel only, twice as strong.
        settings: All of the above at once, or the name of a preset; see :func:`suffice.evidence.preset`.
        batch_size: Masked images per forward, or ``"auto"``; halved when memory runs out.
        precision: ``"fp32"``, ``"tf32"``, ``"fp16"``, ``"bf16"`` or ``"auto"``, see :class:`suffice.Runner`.
        compile: Compile the model; worth it for long work on a GPU.
        runner: Use this runner of the same classifier instead of the three.
        images_at_once: Images searched side by side; more fill larger batches.
        on_error: ``"raise"`` the error of an image that cannot be read, or ``"skip"`` it and record it.
        progress: Show how many questions were put to the model, how fast, and, once an image is finished, about how
            much time is left.
        on_progress: Called with (images done, images in all).

    Returns:
        Evidence of each image, in their order.

    Raises:
        OptionError: An argument that cannot be, or a choice of the search beside ``settings=``.

    Example:
        >>> from suffice.testing import AnyOf
        >>> oracle = AnyOf([(17, 24), (30,)], grid=7)
        >>> found = find_evidence(oracle.classifier(56), oracle.image(56), targets=1, baseline="black")
        >>> [mse.cells for mse in found[0].mses]
        [(30,), (17, 24)]
        >>> found[0].formula()
        '(P30) ∨ (P17 ∧ P24)'
    """
    arguments = locals()
    chosen = settings_of(settings, {field.name: arguments[field.name] for field in fields(Settings)})
    net = as_classifier(net)
    runner = Runner.of(net, runner, batch_size=batch_size, precision=precision, compile=compile)
    how: dict[str, Any] = {"images_at_once": images_at_once, "on_error": on_error, "on_progress": on_progress}
    work = EvidenceStream(net, images, targets, chosen, runner, **how)
    evidence = sorted(work, key=lambda e: e.index)
    about = search_provenance(runner, chosen, targets)
    return EvidenceSet(evidence, net.name, net.family, work.skipped, work.counters, about)
