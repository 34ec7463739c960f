"""The picture that README.md opens with: what is enough for a real network to see a cat.

    python benchmarks/readme_picture.py --checkpoint vit_tiny_patch16_224.safetensors

Without --checkpoint the weights are downloaded. The photograph lies beside the picture, in docs/_static; where it is
from, and why it may be there, is in docs/_static/SOURCES.txt.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import suffice
from suffice.vision.stream import stream

FOLDER = Path(__file__).parents[1] / "docs" / "_static"
PHOTOGRAPH, PICTURE = FOLDER / "chelsea.jpg", FOLDER / "chelsea-graph.svg"


def main() -> None:
    """Search, draw, and say what to write below the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", help="weights of timm's vit_tiny_patch16_224")
    parser.add_argument("--out", type=Path, default=PICTURE)
    chosen = parser.parse_args()

    net = suffice.load("timm/vit_tiny_patch16_224", checkpoint=chosen.checkpoint)
    images = suffice.open_images(PHOTOGRAPH)
    found = replace(suffice.find_evidence(net, images, prefer_disjoint=True)[0], name=PHOTOGRAPH.name)
    seen = next(iter(stream(images, net.geometry))).pixels[0]
    found.graph(roots=2, overlap=2, children=2).save(chosen.out, picture=seen, layout="slide")
    print(f"{found.label}, {found.confidence:.3f}; {found.why}")
    for mse in found.mses:
        print(f"{mse.cells}: ratio {mse.ratio:.3f}, {mse.minimality}, found by {mse.found}")


if __name__ == "__main__":
    main()
