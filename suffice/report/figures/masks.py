"""Inside ViT-CX: feature maps as masks, how alike they are, what showing them does, and how often pixels are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from suffice.attribution import attribute
from suffice.attribution.channels import TokenMasks, distances, stretched, token_masks
from suffice.attribution.methods.vit_cx import REPRESENTATIVE, feature_maps, impacts, usual_threshold
from suffice.attribution.tokens.attention_flow import find_block, read_attention
from suffice.draw.theme import Looks
from suffice.errors import SufficeError
from suffice.perturb import Batch, Runner, enlarge
from suffice.report.figures.charts import Marked, altair, data_of, sentence, specification
from suffice.report.figures.drawing import Drawing, named
from suffice.report.figures.intervals import interval_chart, interval_table, interval_words
from suffice.report.figures.papers import VIT_CX
from suffice.report.figures.registry import figure
from suffice.report.figures.sheets import RowOf, gray_tile, grid_sheet, map_tile, photo_tile, short_name
from suffice.vision import Classifier, open_images

if TYPE_CHECKING:
    import pyarrow

SHOWN = 6
BINS = 40


def batch_of(net: Classifier, images: Any, count: int) -> Batch:
    """The first so many images as a batch, with the classes that the model predicts, for looking inside."""
    opened = open_images(images)[:count]
    runner = Runner(net).variant("inside")
    pixels = net.prepare(opened)
    return Batch(net, pixels, net.predict(opened).targets.to(net.device), list(opened.ids), 0, runner)


def masks_of(batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """Masks of ViT-CX, [K, h, w]; which image each is of, [K]; and its first channel, [K]."""
    limit = usual_threshold(batch.net.anatomy)
    return token_masks(feature_maps(batch), batch.net.size, limit, "complete", REPRESENTATIVE["code"])


@figure(
    "vit-cx-masks",
    "Feature maps as masks",
    needs="model",
    papers=(f"{VIT_CX}, Figure 2",),
    order=70,
    images=1,
)
@torch.no_grad()
def vit_cx_masks(nets: Sequence[Classifier], images: Any) -> list[Drawing]:
    """Attention of heads, feature maps, and the masks that ViT-CX makes of these, of the first image."""
    made = []
    for net in nets:
        batch = batch_of(net, images, 1)
        features = feature_maps(batch)[0]
        masks, _, first = masks_of(batch)
        some = _spread(len(masks))
        rows = _attention_rows(batch)
        photo = photo_tile(batch.pixels[0])
        rows.append(RowOf("feature maps", [photo, *(map_tile(features[c], None, f"channel {c}") for c in first[some])]))
        shown = [photo, *(gray_tile(masks[i], f"mask {i + 1} of {len(masks)}") for i in some)]
        rows.append(RowOf("masks", shown, "clusters of them"))
        name = short_name(open_images(images)[0].name)
        made.append(
            Drawing(
                name=named(f"vit-cx-masks-{net.name}"),
                title=f"Feature maps as masks: {net.name}",
                reading="Each channel of a layer is a map over the patches. ViT-CX stretches them to masks between 0 "
                "(black, hidden) and 1 (white, shown), and merges those that are alike.",
                alt=f"{name}: {len(features)} feature maps of {net.name} become {len(masks)} masks; {len(some)} shown.",
                svg=grid_sheet(["image", *[""] * len(some)], rows, title=f"Masks of {net.name}"),
                source=f"suffice.attribution.methods.vit_cx.feature_maps and channels.token_masks, {net.name}",
            )
        )
    return made


@figure(
    "vit-cx-impacts",
    "What showing a mask does to the decision, plain and debiased",
    needs="model",
    papers=(f"{VIT_CX}, Figures 3 and 5",),
    order=71,
    images=1,
)
@torch.no_grad()
def vit_cx_impacts(nets: Sequence[Classifier], images: Any) -> list[Drawing]:
    """Masks, the image through them, and their impact by both definitions; and the map that comes of it."""
    import pyarrow as pa

    made = []
    for net in nets:
        batch = batch_of(net, images, 1)
        masks, image, first = masks_of(batch)
        token = TokenMasks(masks.to(batch.inputs.dtype))
        plain = impacts(batch, token, image, first, "plain")
        debiased = impacts(batch, token, image, first, "debiased")
        order = (debiased - plain).argsort(descending=True)
        some = order[torch.tensor(_spread(len(order)))].tolist()
        mean = torch.tensor(net.mean, device=batch.pixels.device)[:, None, None]
        large = enlarge(masks[some].float(), net.size).clamp(0, 1)
        through = [(m * batch.pixels[0] + (1 - m) * mean).clamp(0, 1) for m in large]
        found = attribute(net, open_images(images)[:1], "vit-cx")
        photo = photo_tile(batch.pixels[0], found.labels[0] if found.labels else "")
        rows = [
            RowOf("mask", [photo, *(gray_tile(masks[i], f"plain {plain[i]:.2f}") for i in some)]),
            RowOf(
                "image through it",
                [map_tile(found.maps[0], batch.pixels[0], "map of ViT-CX"),
                 *(photo_tile(p, f"debiased {debiased[i]:.2f}") for p, i in zip(through, some, strict=True))],
            ),
        ]  # fmt: skip
        table = pa.table({"mask": list(range(len(masks))), "plain": plain.tolist(), "debiased": debiased.tolist()})
        gap = float((debiased - plain).abs().mean())
        made.append(
            Drawing(
                name=named(f"vit-cx-impacts-{net.name}"),
                title=f"What showing a mask does to the decision: {net.name}",
                reading="Plain: the confidence on the image through the mask. Debiased: that over noise where the mask "
                "hides, plus what the same noise alone takes from the whole image. From left to right: from masks that "
                "the plain score underrates most to those it overrates.",
                alt=f"{len(masks)} masks of {short_name(open_images(images)[0].name)}: mean plain impact "
                f"{float(plain.mean()):.2f}, debiased {float(debiased.mean()):.2f}, mean difference in size {gap:.2f}.",
                svg=grid_sheet(
                    ["image", *(f"mask {i + 1}" for i in some)], rows, title=f"Impacts of masks, {net.name}"
                ),
                table=table,
                source=f"suffice.attribution.methods.vit_cx.impacts, {net.name}, sigma=0.1",
            )
        )
    return made


@figure(
    "vit-cx-coverage",
    "How often each pixel is shown, and the map before and after correcting for it",
    needs="model",
    papers=(f"{VIT_CX}, Figure 6",),
    order=72,
)
@torch.no_grad()
def vit_cx_coverage(nets: Sequence[Classifier], images: Any, *, count: int = 4) -> list[Drawing]:
    """Coverage frequency, the plain sum of masks by their impact, and that divided by the coverage."""
    made = []
    for net in nets:
        opened = open_images(images)[:count]
        batch = batch_of(net, opened, count)
        masks, image, _ = masks_of(batch)
        before = attribute(net, opened, "vit-cx", coverage="summed")
        after = attribute(net, opened, "vit-cx")
        rows, likeness = [], []
        for number, picture in enumerate(opened):
            coverage = enlarge(masks[image == number].mean(dim=0)[None].float(), net.size)[0]
            likeness.append([_correlation(coverage, one.resized(net.size)[number]) for one in (before, after)])
            tiles = [
                photo_tile(batch.pixels[number]),
                map_tile(coverage, batch.pixels[number]),
                map_tile(before.maps[number], batch.pixels[number], f"like coverage: {likeness[-1][0]:+.2f}"),
                map_tile(after.maps[number], batch.pixels[number], f"like coverage: {likeness[-1][1]:+.2f}"),
            ]
            rows.append(RowOf(short_name(picture.name), tiles, after.labels[number] if after.labels else ""))
        summed, corrected = np.mean(likeness, axis=0)
        columns = ["image", "coverage", "before", "after correction"]
        made.append(
            Drawing(
                name=named(f"vit-cx-coverage-{net.name}"),
                title=f"Pixel coverage and its correction: {net.name}",
                reading="Pixels that many masks show get much of everything. Before the correction a map resembles "
                "the coverage; the number is their rank correlation.",
                alt=f"Rank correlation with the coverage, mean over {len(rows)} images: before {summed:+.2f}, after "
                f"{corrected:+.2f}.",
                svg=grid_sheet(columns, rows, title=f"Coverage, {net.name}", colors="each map on its own scale"),
                source=f"suffice.attribute({net.name!r}, images, 'vit-cx', coverage='summed' and 'corrected')",
            )
        )
    return made


@figure(
    "mask-similarity",
    "How alike masks of CNNs and transformers are",
    needs="model",
    papers=(f"{VIT_CX}, Figure 4",),
    order=73,
)
@torch.no_grad()
def mask_similarity(nets: Sequence[Classifier], images: Any, *, count: int = 32) -> list[Drawing]:
    """Cosine similarities of every two masks of the first image, and their mean in each image."""
    import pyarrow as pa

    opened = open_images(images)[:count]
    pairs: list[dict[str, Any]] = []
    means: dict[str, list[float]] = {}
    families = {net.name: net.family or "" for net in nets}
    for net in nets:
        means[net.name] = []
        for number in range(len(opened)):
            batch = batch_of(net, opened[number], 1)
            channels, varies = stretched(feature_maps(batch).double(), net.size)
            own = channels[:, varies[0]]
            alike = (1 - distances(own, net.size))[0]
            upper = alike[tuple(torch.triu_indices(len(alike), len(alike), 1))].clamp(0, 1)
            means[net.name].append(float(upper.mean()))
            if number == 0:
                shares = torch.histc(upper, BINS, 0, 1) / max(len(upper), 1)
                pairs += [
                    {"model": net.name, "family": families[net.name], "similarity": (i + 0.5) / BINS, "share": float(s)}
                    for i, s in enumerate(shares)
                ]
    first = pa.Table.from_pylist(pairs)
    table = interval_table(means, families)
    words = sentence(f"{name} {values[0]:.2f}" for name, values in means.items())
    source = "1 - suffice.attribution.channels.distances of stretched feature maps; " + ", ".join(means)
    return [
        Drawing(
            name="mask-similarity-image",
            title=f"How alike the masks of one image are: {short_name(opened[0].name)}",
            reading="Cosine similarity of every two masks. Masks of transformers tend to be more alike, so that few "
            "clusters stand for many.",
            alt=f"Distribution of pairwise similarities of masks in one image; means: {words}.",
            spec=_similarity_chart(first),
            table=first,
            source=source,
        ),
        Drawing(
            name="mask-similarity",
            title=f"How alike masks are, over {len(opened)} images",
            reading="Mean similarity of every two masks of an image; dots are means over images, lines 95 % bootstrap "
            "intervals.",
            alt=f"Mean pairwise similarity of masks: {interval_words(table)}.",
            spec=interval_chart(table, "mean similarity of two masks of an image"),
            table=table,
            source=source,
        ),
    ]


def _similarity_chart(table: pyarrow.Table) -> dict[str, Any]:
    alt = altair()
    looks = Looks.of_models(dict(zip(table["model"].to_pylist(), table["family"].to_pylist(), strict=True)))
    marked = Marked("model", looks)
    base = alt.Chart(data_of(table)).encode(
        x=alt.X("similarity:Q", axis=alt.Axis(title="similarity of two masks", grid=False)),
        y=alt.Y("share:Q", stack=None, axis=alt.Axis(title="share of pairs", format=".0%")),
        color=marked.color(lines=True),
        tooltip=["model:N", alt.Tooltip("similarity:Q", format=".2f"), alt.Tooltip("share:Q", format=".1%")],
    )
    area = base.mark_area(interpolate="monotone").encode(opacity=marked.opacity(0.2))
    line = base.mark_line(interpolate="monotone").encode(strokeDash=marked.dash(), opacity=marked.opacity())
    return specification(alt.layer(area, line).add_params(marked.chosen), height=260)


def _attention_rows(batch: Batch) -> list[RowOf]:
    """Attention of the class token in the heads of the last block; none where a model has no such thing."""
    try:
        path = find_block(batch, "raw-attention", -1)
        (heads,) = read_attention(batch, path, path.rows)  # of each head, in the model's precision
    except SufficeError:
        return []
    of_heads = [path.maps(heads[:, head])[0] for head in range(min(SHOWN, heads.shape[1]))]
    tiles = [photo_tile(batch.pixels[0]), *(map_tile(m, None, f"head {i + 1}") for i, m in enumerate(of_heads))]
    return [RowOf("attention", tiles, "of the class token")]


def _spread(count: int) -> list[int]:
    """Some positions among so many, evenly from the first to the last."""
    return sorted({round(i * (count - 1) / max(SHOWN - 1, 1)) for i in range(min(SHOWN, count))})


def _correlation(one: Tensor, other: Tensor) -> float:
    from suffice.metrics.sanity import spearman

    return float(spearman(one[None], other[None])[0])
