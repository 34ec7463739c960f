"""A model at the bench: its probes, kept ready, and what it answers."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, NamedTuple

from torch import Tensor

from suffice.attribution import list_methods
from suffice.draw import to_png
from suffice.errors import OptionError
from suffice.explorer.pictures import Kept, Pictures
from suffice.explorer.reading import Question
from suffice.perturb import Probe, Runner, make_baseline
from suffice.vision import Classifier

ENOUGH = 0.9  # ratio from which on a region is enough
SLOW = {"i-gos", "igos+", "igos++", "rise", "kernel-shap", "lime", "tis", "vit-cx", "score-cam", "deep-shap", "eea"}
PROBES = 48  # kept for each model
REMEMBERED = 1 << 12  # answers of a model at the bench
FOR_SEARCHES = 1 << 16  # answers of a probe


class Seen(NamedTuple):
    """An image as a model sees it."""

    pixels: Tensor  # [1, 3, H, W]
    scores: Tensor  # on the whole image, [1, classes]


class Said(NamedTuple):
    """What a model said of a region."""

    confidence: float  # in the target
    winner: int
    highest: float  # confidence in the winner


class Desk:
    """One copy of a model with its runner and its probes; for one thread.

    Args:
        net: The classifier.
        pictures: The images.
    """

    def __init__(self, net: Classifier, pictures: Pictures) -> None:
        self.net, self.pictures = net, pictures
        self.runner = Runner(net)
        self._seen: Kept[Seen] = Kept(PROBES)
        self._probes: Kept[Probe] = Kept(PROBES)
        self._said: Kept[Said] = Kept(REMEMBERED)
        self.kept: Kept[Any] = Kept(PROBES)  # evidence and maps that were found

    def see(self, image: str) -> Seen:
        """An image as the model sees it, and what it makes of the whole of it."""

        def look() -> Seen:
            pixels = self.net.prepare(self.pictures[image])
            return Seen(pixels, self.runner.scores(pixels))

        return self._seen.get_or(image, look)

    def probe(self, asked: Question) -> Probe:
        """The probe of an image, baseline, grid and class; there is one for all questions about them."""
        seen = self.see(asked.image)
        target = int(self.net.targets(asked.target, seen.scores)[0])

        def make() -> Probe:
            return Probe(
                self.net,
                seen.pixels,
                target,
                baseline=asked.baseline,
                grid=asked.grid,
                runner=self.runner,
                remember=FOR_SEARCHES,
                whole=seen.scores,
            )

        return self._probes.get_or((asked.image, asked.baseline, asked.grid, target), make)

    def answer(self, asked: Question) -> dict[str, Any]:
        """What the model says of a region; ``says`` is the class that wins where the target does not."""
        probe = self.probe(asked)
        region, target, whole = probe.grid.from_cells([asked.cells]), int(probe.targets[0]), float(probe.whole[0])
        key = (asked.image, asked.baseline, asked.grid, target, region.numpy().tobytes())
        said = self._said.get_or(key, lambda: _said(probe.scores(0, region)[0], target))
        ratio = said.confidence / whole if whole > 0 else 0.0
        wins = said.winner == target
        winner = {"target": said.winner, "label": self.label(said.winner), "confidence": said.highest}
        return {
            "confidence": said.confidence,
            "whole": whole,
            "ratio": ratio,
            "enough": ratio >= ENOUGH - 1e-6,
            "target": target,
            "label": self.label(target),
            "wins": wins,
            "says": None if wins else winner,
        }

    def top(self, image: str, count: int = 5) -> list[dict[str, Any]]:
        """The classes that the model finds most likely on the whole image; ``asked`` is what to ask for each as."""
        scores, classes = self.see(image).scores[0].topk(min(count, self.see(image).scores.shape[1]))
        return [
            {"target": target, "label": self.label(target), "asked": self.asked(target), "confidence": score}
            for target, score in zip(classes.tolist(), scores.tolist(), strict=True)
        ]

    def views(self, image: str, baseline: str) -> dict[str, Any]:
        """What the model sees, and what shows where cells are hidden, as the bytes of PNG files."""
        pixels, hidden = self.see(image).pixels, self.hidden(image, baseline)
        return {"shown": to_png(pixels[0].cpu()), "hidden": to_png(hidden[0].cpu())}

    def label(self, target: int) -> str:
        """The name of a class, or its index as text."""
        return self.net.labels[target] if self.net.labels else str(target)

    def asked(self, target: int) -> str:
        """What names a class and no other: its label, or its index where others have that label, too."""
        label = self.label(target)
        try:
            return label if self.net.class_index(label) == target else str(target)
        except OptionError:
            return str(target)

    def hidden(self, image: str, baseline: str) -> Tensor:
        """What shows where all is hidden, [1, 3, H, W]."""
        pixels = self.see(image).pixels
        make = partial(make_baseline, baseline, pixels, mean=self.net.mean)
        return self.kept.get_or(("hidden", image, baseline), make)


class Seat:
    """A model at the bench: a desk for quick questions, and one with a copy of the model for long work.

    Attributes:
        name: By which the page knows it; the names of all seats differ.
        quick: For the thread of quick questions.
        slow: For the thread of long work: hooks and gradients of methods touch a module of their own.
        methods: Names of the attribution methods that fit, and whether they take long.
        device: Where the model is, as text.
    """

    def __init__(self, net: Classifier, name: str, pictures: Pictures) -> None:
        self.net, self.name, self.device = net, name, str(net.device)
        # Both before any thread runs the model: looking at its anatomy hangs hooks into it, and a copy would take them.
        self.methods = fitting_methods(net)
        self.quick = Desk(net, pictures)
        self.slow = Desk(net.with_module(copy.deepcopy(net.module)), pictures)

    @property
    def about(self) -> dict[str, Any]:
        """What the page has to know of it."""
        height, width = self.net.size
        return {"name": self.name, "family": self.net.family, "height": height, "width": width, "device": self.device}


def _said(scores: Tensor, target: int) -> Said:
    """What scores [classes] say of a target."""
    highest, winner = scores.max(dim=0)
    return Said(float(scores[target]), int(winner), float(highest))


def fitting_methods(net: Classifier) -> list[dict[str, Any]]:
    """Names of the attribution methods that fit a model, and whether they take long."""
    return [{"name": name, "slow": name in SLOW} for name in list_methods(net=net)]


def seats_of(nets: list[Classifier], pictures: Pictures) -> dict[str, Seat]:
    """Seats by name; models of one name get numbers."""
    seats: dict[str, Seat] = {}
    for net in nets:
        name, number = net.name, 2
        while name in seats:
            name, number = f"{net.name} ({number})", number + 1
        seats[name] = Seat(net, name, pictures)
    return seats
