"""The tour: the whole job on small trained networks, and what its numbers say."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from suffice.compare import paired_ratio
from suffice.evidence import EvidenceSet, Settings, find_evidence
from suffice.evidence.files.statistics import Statistic
from suffice.evidence.files.table import count_column
from suffice.progress import plan
from suffice.vision import Classifier, Images

LEVELS = (0.8, 0.7, 0.6, 0.5)
COLUMNS = ("mses", "mean_size", *(count_column("distinct", level) for level in LEVELS))
SETTINGS = Settings(beam_width=3, max_size=10)  # a narrow beam: the demo is to be short

# (what differs, network with it, network without it)
CONTRASTS = (
    ("batch instead of layer normalization in ConvNeXt", "convnext-3-bn", "convnext-3"),
    ("batch instead of layer normalization in Swin", "swin-4-bn", "swin-4"),
    ("group instead of layer normalization in ConvNeXt", "convnext-3-gn", "convnext-3"),
    ("group instead of layer normalization in Swin", "swin-4-gn", "swin-4"),
    ("a kernel of 3 instead of 7 in ConvNeXt", "convnext-3", "convnext"),
    ("a window of 4 instead of 7 in Swin", "swin-4", "swin"),
    ("distillation from a CNN in DeiT", "deit-distilled", "deit"),
    ("distillation from a CNN in PiT", "pit-distilled", "pit"),
)


@dataclass(frozen=True)
class Visit:
    """What was found in one network."""

    name: str  # without zoo/
    family: str
    right: float  # share of the images that it classifies rightly
    evidence: EvidenceSet
    statistics: dict[str, Statistic]  # by column


def visits(
    nets: Sequence[Classifier],
    images: Images,
    settings: Settings = SETTINGS,
    on_progress: Callable[[int, int], None] | None = None,
) -> Iterator[Visit]:
    """Search the same labeled images with every network; ``on_progress`` gets (image searches done, in all)."""
    plan("evidence", len(nets) * len(images), steady=False)
    for number, net in enumerate(nets):

        def report(done: int, _: int, before: int = number * len(images)) -> None:
            if on_progress is not None:
                on_progress(before + done, len(nets) * len(images))

        found = find_evidence(net, images, settings=settings, batch_size=64, on_progress=report)
        right = [e.target == label for e, label in zip(found, images.labels, strict=True)]
        statistics = found.summary().statistics
        yield Visit(net.name.partition("/")[2] or net.name, net.family, sum(right) / len(right), found, statistics)


def table_rows(found: Sequence[Visit]) -> list[tuple[str, ...]]:
    """Rows of the table: network, family, share right, then mean ± standard error of each column."""
    rows = []
    for visit in found:
        numbers = [visit.statistics[column] for column in COLUMNS]
        places = [2 if s.mean < 100 else 0 for s in numbers]
        cells = [f"{s.mean:.{p}f} ± {s.standard_error:.{p}f}" for s, p in zip(numbers, places, strict=True)]
        rows.append((visit.name, visit.family, f"{visit.right:.0%}", *cells))
    return rows


HEADINGS = ("network", "family", "right", "MSEs", "cells", *(f"sub-expl. ≥ {level:.0%}" for level in LEVELS))


def sentences(found: Sequence[Visit], level: float = 0.7) -> list[str]:
    """What the numbers show, and what they do not, one sentence a finding.

    They speak of these networks, not of their kinds: another training run of the same kind may have several times as
    many sub-explanations. A difference counts if p times the number of contrasts is below 0.05.
    """
    by_name = {visit.name: visit for visit in found}
    contrasts = [c for c in CONTRASTS if c[1] in by_name and c[2] in by_name]
    lines = []
    for what, changed, plain in contrasts:
        both = (by_name[changed].evidence, by_name[plain].evidence)
        ratio = paired_ratio(*([e.subexplanations("distinct")[level] for e in evidence] for evidence in both))
        how_many = "fewer" if ratio.ratio < 1 else "more"
        seen = (
            f"this {changed} has {how_many} sub-explanations at ≥ {level:.0%} than this {plain}"
            if ratio.p * len(contrasts) < 0.05
            else f"no difference between these two can be told from chance at ≥ {level:.0%}"
        )
        lines.append(f"{what[0].upper()}{what[1:]}: {seen}: {ratio}.")
    fewest, most = (extreme(found, key=lambda v: v.statistics["mses"].mean) for extreme in (min, max))
    lines.append(
        f"{most.name} has the most alternative ways to decide ({most.statistics['mses'].mean:.1f} MSEs an image), "
        f"{fewest.name} the fewest ({fewest.statistics['mses'].mean:.1f})."
    )
    return lines


def write_table(found: Sequence[Visit], path: Path) -> None:
    """Write means and standard errors as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["network", "family", "right", *(f"{c}{end}" for c in COLUMNS for end in ("", "_error"))])
        for visit in found:
            numbers = [n for c in COLUMNS for n in (visit.statistics[c].mean, visit.statistics[c].standard_error)]
            writer.writerow([visit.name, visit.family, visit.right, *numbers])
