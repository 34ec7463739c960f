"""The search written literally, one question at a time: what tests and benchmarks hold the fast one against."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from suffice.evidence.search.beam import TIE
from suffice.evidence.settings import Settings
from suffice.perturb.baselines import make_baseline
from suffice.perturb.masks import cell_of_pixel
from suffice.vision.classifier import Classifier

Cells = frozenset[int]


def search_one_at_a_time(ratio: Callable[[Cells], float], settings: Settings) -> list[Cells]:
    """Beam search over Python sets, without remembering anything.

    Args:
        ratio: Ratio of a set of cells.
        settings: Of which ``grid``, ``threshold``, ``beam_width``, ``passing``, ``max_mses``, ``max_size``,
            ``minimal`` (``"subset"``: no set contains another) and ``repeated_sets`` are heeded.

    Returns:
        MSEs in order of discovery.
    """

    def suffices(cells: Cells) -> bool:
        return round(ratio(cells), 6) >= settings.threshold

    everything = range(settings.grid**2)
    if suffices(frozenset()):
        return [frozenset()]
    beam, found = [frozenset[int]()], list[Cells]()
    for level in range(1, len(everything) + 1):
        candidates = [s | {c} for s in beam for c in everything if c not in s]
        if not settings.repeated_sets:
            candidates = list(set(candidates))
        scored = _best_first([(ratio(s), s) for s in candidates])
        if settings.passing == "beam":
            scored = scored[: settings.width]
        for r, s in scored:
            if round(r, 6) >= settings.threshold:
                minimal = _prune(s, suffices)
                if minimal not in found:
                    found.append(minimal)
        if settings.minimal == "subset":
            found = [s for s in found if not any(other < s for other in found)]
        beam = [s for r, s in scored if round(r, 6) < settings.threshold][: settings.width]
        enough = settings.max_mses is not None and len(found) > settings.max_mses
        if enough or not beam or level == settings.max_size:
            break
    return found


def _best_first(scored: list[tuple[float, Cells]]) -> list[tuple[float, Cells]]:
    """By ratio, highest first; neighbors that are nearly equal are ties and go by their cells."""
    ordered, ties = [], list[tuple[float, Cells]]()
    for pair in sorted(scored, key=lambda pair: -pair[0]):
        if ties and ties[-1][0] - pair[0] > TIE * abs(ties[-1][0]):
            ordered += sorted(ties, key=lambda p: sum(1 << c for c in p[1]))
            ties = []
        ties.append(pair)
    return ordered + sorted(ties, key=lambda p: sum(1 << c for c in p[1]))


def _prune(cells: Cells, suffices: Callable[[Cells], bool]) -> Cells:
    """Pass over the cells, row-major, and take out what is not needed, until a pass takes out nothing."""
    current = set(cells)
    removed = True
    while removed:
        removed = False
        for cell in sorted(current):
            if suffices(frozenset(current - {cell})):
                current.remove(cell)
                removed = True
    return frozenset(current)


class OneAtATime:
    """The ratio of sets of cells of one image, each by a forward of its own, as the first implementations asked.

    Args:
        net: The classifier.
        pixels: The image, [3, H, W] in [0, 1].
        settings: Of which ``grid`` and ``baseline`` are heeded.
    """

    def __init__(self, net: Classifier, pixels: Tensor, settings: Settings) -> None:
        self.net, self.grid = net, settings.grid
        self.pixels = pixels[None].to(net.device)
        self.baseline = make_baseline(settings.baseline, self.pixels, mean=net.mean)
        self.forwards = 0
        scores = self._scores(self.pixels)
        self.target = int(scores.argmax())
        self.whole = float(scores[0, self.target])

    def __call__(self, cells: Cells) -> float:
        """Ratio of a set of cells."""
        shown = torch.zeros(self.grid**2)
        shown[list(cells)] = 1
        rows, columns = (cell_of_pixel(length, self.grid) for length in self.net.size)
        mask = shown.view(self.grid, self.grid)[rows][:, columns].to(self.net.device)
        scores = self._scores(self.pixels * mask + self.baseline * (1 - mask))
        return float(scores[0, self.target]) / self.whole

    @torch.no_grad()
    def _scores(self, pixels: Tensor) -> Tensor:
        self.forwards += 1
        return self.net(pixels).cpu()
