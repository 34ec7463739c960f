"""The gallery: images chosen by rule, with evidence and maps of all models side by side."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image
from torch import Tensor

from suffice.draw import as_image, overlay
from suffice.draw.pictures import TINY, from_png
from suffice.draw.svg import number, tag
from suffice.draw.theme import family_color
from suffice.draw.thumbnails import outline
from suffice.perturb import enlarge
from suffice.report.figures.reading import good_rows
from suffice.report.page.choosing import Chosen, Seen, choose
from suffice.report.page.content import Card, Case, Tile
from suffice.report.page.wording import percent
from suffice.study import map_files
from suffice.study.plan import Shard
from suffice.study.reading import read_shard

if TYPE_CHECKING:
    import pyarrow

    from suffice.study import Study

SIDE = 144  # longest side of a picture in the gallery
QUALITY = 68
SHOWN = ("index", "target", "label", "confidence", "mses", "mse_cells", "mse_ratios", "stopped", "why", "picture")


def gallery_of(
    study: Study, said: str | None, searched: str | None, makers: Sequence[str], each: int = 2
) -> list[Case]:
    """The cases of a study.

    Args:
        study: That was run.
        said: Its table of predictions, where there is one.
        searched: Its table of evidence, where there is one.
        makers: Measurements whose maps are shown.
        each: Images of each rule.
    """
    if said is None and searched is None:
        return []
    models = [model.label for model in study.plan.models]
    seen = _seen(study, said, searched, models)
    return [_case(study, chosen, searched, makers, models) for chosen in choose(seen, models, each)]


def _seen(study: Study, said: str | None, searched: str | None, models: Sequence[str]) -> Seen:
    """What models say of all images."""
    place = {model: row for row, model in enumerate(models)}
    shape = (len(models), len(study.plan.names))
    answers = np.full(shape, -1)
    labels: dict[str, int] = {}  # models may number classes differently
    table = good_rows(study, said or str(searched), ["index", "label"])
    for model, index, label in zip(*(table[name].to_pylist() for name in ("model", "index", "label")), strict=True):
        answers[place[model], index] = labels.setdefault(label, len(labels))
    mses, largest = np.full(shape, np.nan), np.full(shape, np.nan)
    nothing = np.zeros(shape, dtype=bool)
    cells = 1 if searched is None else _grid(study, searched) ** 2
    covered = np.zeros((*shape, cells), dtype=bool)
    if searched is not None:
        found = good_rows(study, searched, ["index", "mses", "stopped", "mse_cells"])
        row = np.array([place[model] for model in found["model"].to_pylist()], dtype=int)
        index = found["index"].to_numpy()
        mses[row, index] = found["mses"].to_numpy()
        nothing[row, index] = np.array(found["stopped"].to_pylist()) == "nothing needed"
        sets = found["mse_cells"].combine_chunks()
        each = sets.flatten()
        of_set = np.repeat(np.arange(len(sets)), _lengths(sets))  # the row of each MSE, and of each of its cells
        of_cell = np.repeat(of_set, _lengths(each))
        sizes = np.full(len(sets), -1)
        np.maximum.at(sizes, of_set, _lengths(each))
        largest[row, index] = np.where(sizes < 0, np.nan, sizes)
        covered[row[of_cell], index[of_cell], each.flatten().to_numpy()] = True
    return Seen(answers, mses, largest, nothing, covered)


def _lengths(lists: pyarrow.Array) -> np.ndarray:
    """How many values each list of a column has."""
    return np.diff(lists.offsets.to_numpy())


def _case(study: Study, chosen: Chosen, searched: str | None, makers: Sequence[str], models: Sequence[str]) -> Case:
    photos: dict[str, str] = {}  # the same picture is in the page once
    cards = []
    for model in models:
        row = None if searched is None else _row(study, searched, model, chosen.index)
        picture = None if row is None or not row.get("picture") else from_png(row["picture"])
        tiles = [] if row is None else [_evidence_tile(row, picture, _grid(study, str(searched)), chosen.index, photos)]
        for maker in makers:
            tile = _map_tile(study, maker, model, chosen.index, picture)
            tiles += [] if tile is None else [tile]
        if tiles:
            color = family_color(study.plan.model(model).family)
            cards.append(Card(model, color, tiles, "" if row is None else _says(row)))
    definitions = "".join(photos.values())
    hidden = f'<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>{definitions}</defs></svg>'
    return Case(study.plan.names[chosen.index], chosen.rule, chosen.why, cards, hidden if photos else "")


def _grid(study: Study, searched: str) -> int:
    return int(study.plan.measurements[searched].settings.grid)  # type: ignore[attr-defined]


def _row(study: Study, table: str, model: str, index: int) -> dict[str, Any] | None:
    """The row of one image; None where there is none, or it has an error."""
    assert study.store is not None
    shard = Shard(table, model, index // study.plan.block)
    if not study.store.exists(shard.table):
        return None
    found = read_shard(study.store, shard, (*SHOWN, "error"))
    where = [n for n, i in enumerate(found["index"].to_pylist()) if i == index]
    rows = found.take(where[:1]).to_pylist()
    return rows[0] if rows and rows[0]["error"] is None and "mses" in rows[0] else None


def _says(row: dict[str, Any]) -> str:
    many = f"{row['mses']} MSE{'' if row['mses'] == 1 else 's'}"
    return f"{row['label']}, {percent(row['confidence'])} sure; {many}"


def _evidence_tile(row: dict[str, Any], picture: Tensor | None, side: int, index: int, photos: dict[str, str]) -> Tile:
    """The smallest MSE: its cells bright, the rest veiled; all cells of other MSEs outlined faintly."""
    if not row["mse_cells"]:
        what = "the hidden image is enough" if row["stopped"] == "nothing needed" else "no evidence"
        return Tile("", what, row["why"])
    best = min(zip(row["mse_cells"], row["mse_ratios"], strict=True), key=lambda mse: (len(mse[0]), -mse[1]))
    cells, ratio = best
    photo, aspect = _photo(picture, index, photos)
    what = f"{len(cells)} of {side**2} cells keep {percent(ratio)}"
    alt = f"{what} of the confidence in {row['label']}: cells {', '.join(map(str, cells))} of {side} × {side}."
    return Tile(_region(cells, side, photo, aspect), what, alt)


def _photo(picture: Tensor | None, index: int, photos: dict[str, str]) -> tuple[str, float]:
    """The id of a picture in the page, and its height by its width; no id where there is none."""
    if picture is None:
        return "", 1.0
    image = as_image(picture)
    data, sharp = _data(image)
    aspect = image.height / image.width
    if data not in photos:
        look = {"style": "image-rendering:pixelated"} if sharp else {}
        size = {"width": 100, "height": 100 * aspect, "preserveAspectRatio": "none"}
        photos[data] = tag("image", id=f"photo-{index}-{len(photos)}", href=data, **size, **look)
    return f"photo-{index}-{list(photos).index(data)}", aspect


def _region(cells: Sequence[int], side: int, photo: str, aspect: float) -> str:
    """Some cells of a picture bright, the rest veiled, as a small drawing that refers to the picture."""
    wide, high = 100 / side, 100 * aspect / side
    rest = [cell for cell in range(side**2) if cell not in set(cells)]
    squares = "".join(
        f"M{number(cell % side * wide)} {number(cell // side * high)}h{number(wide)}v{number(high)}h{number(-wide)}z"
        for cell in rest
    )
    border = "".join(
        f"M{number(x0 * wide)} {number(y0 * high)}L{number(x1 * wide)} {number(y1 * high)}"
        for x0, y0, x1, y1 in outline(cells, side)
    )
    back = tag("use", href=f"#{photo}") if photo else tag("rect", width=100, height=100 * aspect, fill="#5b7a9b")
    parts = [
        back,
        tag("path", d=squares, fill="#e6eaef", fill_opacity=0.86),
        tag("path", d=border, fill="none", stroke="#fff", stroke_width=2.4, stroke_linecap="square"),
        tag("path", d=border, fill="none", stroke="#d55e00", stroke_width=1.2, stroke_linecap="square"),
    ]
    return tag("svg", *parts, viewBox=f"0 0 100 {number(100 * aspect)}", aria_hidden="true")


def _map_tile(study: Study, maker: str, model: str, index: int, picture: Tensor | None) -> Tile | None:
    """The map of one image over its picture; None where there is none."""
    found = _map(study, maker, model, index)
    if found is None:
        return None
    values, kept = found
    photo = None if picture is None and kept is None else as_image(picture if picture is not None else kept)
    size = (SIDE, SIDE) if photo is None else _fitted(photo.height, photo.width)
    drawn = overlay(enlarge(values[None].float(), size)[0], photo)
    method = study.plan.measurements[maker].facts.get("method", maker)
    data, sharp = _data(drawn)
    look = ' class="sharp"' if sharp else ""
    alt = f"Map of {method} for {model}: {_where(values)}."
    size_of = f'width="{drawn.width}" height="{drawn.height}"'
    return Tile(f'<img src="{data}" alt="" {size_of} decoding="async"{look}>', method, alt)


def _map(study: Study, maker: str, model: str, index: int) -> tuple[Tensor, Tensor | None] | None:
    """The map of one image, [h, w], and the picture that is kept with it."""
    assert study.store is not None
    shard = Shard(maker, model, index // study.plan.block)
    if not study.store.exists(shard.maps):
        return None
    maps = map_files.from_bytes(study.store.read(shard.maps))
    skipped = {skip.index for skip in maps.skipped}
    place = index - study.plan.rows(shard).start
    if place in skipped:
        return None
    row = place - sum(other < place for other in skipped)
    return maps.maps[row], None if maps.pictures is None else maps.pictures[row]


def _where(values: Tensor) -> str:
    """Where a map is highest, in words."""
    row, column = divmod(int(values.argmax()), values.shape[1])
    high = ("top", "middle", "bottom")[min(3 * row // values.shape[0], 2)]
    wide = ("left", "center", "right")[min(3 * column // values.shape[1], 2)]
    return f"highest at the {high} {wide}"


def _fitted(height: int, width: int) -> tuple[int, int]:
    """Height and width of a picture in the gallery: at most :data:`SIDE`."""
    scale = min(1.0, SIDE / max(height, width))
    return max(1, round(height * scale)), max(1, round(width * scale))


def _data(image: Image.Image) -> tuple[str, bool]:
    """A picture as part of the page, small; and whether its pixels are to stay sharp."""
    sharp = max(image.size) <= TINY
    height, width = _fitted(image.height, image.width)
    small = image if (width, height) == image.size else image.resize((width, height), Image.Resampling.LANCZOS)
    content = io.BytesIO()
    small.convert("RGB").save(content, "WEBP", quality=QUALITY, method=4, lossless=sharp)
    return f"data:image/webp;base64,{base64.b64encode(content.getvalue()).decode('ascii')}", sharp
