"""Evidence of an image as files: its graph, and a picture of every explanation."""

from __future__ import annotations

from pathlib import Path

from suffice.draw import region_picture
from suffice.draw.pictures import Drawable
from suffice.evidence import Evidence


def draw_evidence(evidence: Evidence, folder: str | Path, picture: Drawable | None = None) -> list[Path]:
    """Write the structured attention graph of an image (SVG, JSON, DOT) and a picture of every MSE (PNG).

    Args:
        evidence: Of one image.
        folder: Where to; files are named after the image and its position.
        picture: The image as the model saw it; default: the small copy that evidence keeps.
    """
    stem = Path(folder) / f"{evidence.index:05d}-{Path(evidence.name).stem}"
    stem.parent.mkdir(parents=True, exist_ok=True)
    graph, shown = evidence.graph(), evidence.picture if picture is None else picture
    texts = {".svg": graph.to_svg(shown), ".json": graph.to_json(), ".dot": graph.to_dot()}
    files = []
    for suffix, text in texts.items():
        files.append(stem.with_name(stem.name + suffix))
        files[-1].write_text(text, encoding="utf-8")
    for number, mse in enumerate(evidence.mses if shown is not None else (), start=1):
        files.append(stem.with_name(f"{stem.name}-mse-{number:02d}.png"))
        region_picture(shown, evidence.grid, mse.cells).save(files[-1])
    return files
