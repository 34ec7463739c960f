"""Attribution maps for the page, and the curves that judge them."""

from __future__ import annotations

import base64
from typing import Any

import torch

from suffice.attribution import Attribution, attribute
from suffice.explorer.reading import Question
from suffice.explorer.seats import Desk
from suffice.metrics import measure

STEPS = 50  # of a curve


def find_map(desk: Desk, asked: Question, method: str) -> Attribution:
    """The map of an image by a method."""
    seen = desk.see(asked.image)
    target = int(desk.net.targets(asked.target, seen.scores)[0])
    return attribute(desk.net, seen.pixels, method, target, runner=desk.runner)


def map_message(found: Attribution) -> dict[str, Any]:
    """A map for the page: ``height``, ``width``, and its ``values`` as little-endian float32 in base64."""
    values = found.maps[0].float().cpu().contiguous()
    return {
        "label": found.labels[0],
        "height": values.shape[0],
        "width": values.shape[1],
        "values": base64.b64encode(values.numpy().astype("<f4").tobytes()).decode(),
    }


def find_curves(desk: Desk, asked: Question, found: Attribution) -> dict[str, Any]:
    """Insertion and deletion of a map over the baseline of the bench: shares shown or hidden, confidences, areas."""
    pixels = desk.see(asked.image).pixels
    scores = measure(
        desk.net,
        pixels,
        found.maps.to(pixels.device),
        ["insertion", "deletion"],
        targets=int(found.targets[0]),
        runner=desk.runner,
        baseline=asked.baseline,
        steps=STEPS,
    )
    drawn = {}
    for name in ("insertion", "deletion"):
        curves = scores[name].curves
        assert curves is not None
        y = curves.y[0].tolist()
        x = torch.as_tensor(curves.x).flatten().tolist()
        drawn[name] = {"x": x, "y": y, "area": float(scores[name].values[0])}
    return drawn
