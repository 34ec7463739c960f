"""The search: many images in lockstep through one probe.

Each image goes through phases: levels of beam search, each followed by pruning what it found; then, where asked for,
certifying; then the lattice below its MSEs. A round collects the questions of every image, whatever its phase, asks the
probe once, and hands the answers back. An image that is finished leaves its slot to the next one, so that batches stay
full from the first image to the last.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, get_args

import torch
from torch import Tensor

from suffice.evidence.beam import Beam, no_sets
from suffice.evidence.lattice import Lattice
from suffice.evidence.minimality import Certifier, Pruner, inclusion_minimal
from suffice.evidence.result import MSE, Stopped
from suffice.evidence.settings import Settings
from suffice.perturb.probe import Probe
from suffice.perturb.rows import Rows, rank_in_group

# Thresholds are compared with ratios rounded to this, so that the last bits of a float32 sum, which depend on the batch
# that a question happens to be in, do not decide about a ratio that lies on a threshold.
RESOLUTION = 1e-6


class Phase(IntEnum):
    """Where an image is in its search."""

    IDLE, LEVEL, PRUNING, CERTIFYING, BELOW, DONE = range(6)


REASONS: tuple[Stopped, ...] = get_args(Stopped)


class Searcher:
    """Searches the images of a probe, one slot each; the settings' grid, baseline and cells are those of the probe."""

    def __init__(self, probe: Probe, settings: Settings) -> None:
        self.probe, self.settings, self.grid, self.device = probe, settings, probe.grid, probe.device
        slots = len(probe)
        self.beam = Beam(self.grid, settings, slots, self.device)
        self.pruner = Pruner(self.grid, self.device)
        self.certifier = Certifier(self.grid, settings.subset_budget, slots, self.device)
        self.lattice = Lattice(self.grid, settings, slots, self.device)
        self._mses = no_sets(self.grid, self.device, rank=torch.long, certified=torch.bool)
        # Of each slot: the phase, the cells of its sets, the number of the reason why it stopped.
        self.phase, self.level, self.reason = torch.zeros(3, slots, dtype=torch.long, device=self.device)
        self.hidden = torch.zeros(slots, device=self.device)

    def admit(self, slots: Tensor, saliency: Tensor | None = None) -> None:
        """Begin the search of the images in some slots.

        Args:
            slots: [M] int64.
            saliency: With ``search="sag"``: a seed map of each, [M, side, side], high = important.
        """
        slots = slots.to(self.device)
        self.level[slots], self.reason[slots] = 0, 0
        if saliency is not None:
            salient_first = saliency.flatten(1).to(self.device).sort(dim=1, descending=True, stable=True)
            self.beam.order[slots] = salient_first.indices
        hidden = self.grid.empty(len(slots), self.device)
        self.hidden[slots] = self.probe.ask(slots, hidden)
        self.phase[slots] = Phase.LEVEL

        # Where the model says nothing that can be divided by, or says the same of nothing at all, there is no search.
        whole = self.probe.whole[slots]
        mute = ~(whole > 0) | whole.isinf()
        idle = self._suffices(self._ratio(slots, self.hidden[slots])) & ~mute
        self._keep(Rows(slot=slots, region=hidden, rank=torch.zeros_like(slots))[idle])
        self._stop(slots[mute], "no confidence")
        self._stop(slots[idle], "nothing needed")
        self.beam.begin(slots[~mute & ~idle])
        self._move_on()

    def round(self) -> dict[int, dict[str, Any]]:
        """Ask one question for all; returns the slots that are finished, and the fields of their :class:`Evidence`."""
        asked = (
            self.beam.questions(self.phase == Phase.LEVEL),
            self.pruner.questions(),
            self.certifier.questions(),
            self.lattice.questions(),
        )
        slot = torch.cat([questions.slot for questions in asked])
        ratio = self._ratio(slot, self.probe.ask(slot, torch.cat([questions.region for questions in asked])))
        level, pruned, certified, below = ratio.split([len(questions) for questions in asked])

        searching = self.phase == Phase.LEVEL
        self.level += searching.long()
        sufficient = self.beam.advance(level, self._suffices(level))
        self._keep(self.pruner.advance(self._suffices(pruned)))
        rank = (self.level[sufficient.slot] << 32) + torch.arange(len(sufficient), device=self.device)
        self.pruner.add(sufficient.but(rank=rank))
        self.certifier.advance(self._suffices(certified))
        self.lattice.advance(_rounded(below))
        self.phase[searching] = Phase.PRUNING
        self._move_on()
        return self._collect()

    @property
    def active(self) -> bool:
        """Whether there is any image that is being searched or waits to be handed out."""
        return bool((self.phase != Phase.IDLE).any())

    @property
    def free(self) -> Tensor:
        """Slots without an image to search, [F] int64."""
        return (self.phase == Phase.IDLE).nonzero().flatten()

    def _move_on(self) -> None:
        """Move images whose phase is over to the next."""
        resting = (self.phase == Phase.PRUNING) & (self._count(self.pruner.sets) == 0)
        mses, sets = self._count(self._mses), self._count(self.beam.sets)
        limit = self.settings
        # Reasons in order of precedence, the strongest last.
        if limit.max_questions is not None:
            ahead = self.probe.forwards + sets * (self.grid.cells - self.level)
            self._stop_where(resting & (ahead > limit.max_questions), "max_questions")
        if limit.max_size is not None:
            self._stop_where(resting & (self.level >= limit.max_size), "max_size")
        self._stop_where(resting & (sets == 0), "beam empty")
        if limit.max_mses is not None:
            self._stop_where(resting & (mses > limit.max_mses), "max_mses")
        self.phase[resting & (self.phase == Phase.PRUNING)] = Phase.LEVEL

        certified = (self.phase == Phase.CERTIFYING) & (self._count(self.certifier.subsets) == 0)
        for slot in certified.nonzero().flatten().tolist():
            self._make_minimal(slot)
        self._descend(certified)
        self.phase[(self.phase == Phase.BELOW) & self.lattice.finished()] = Phase.DONE

    def _count(self, rows: Rows) -> Tensor:
        """How many rows belong to each image, [slots]."""
        return torch.bincount(rows.slot, minlength=len(self.phase))

    def _stop(self, slots: Tensor, reason: Stopped) -> None:
        gone = torch.zeros_like(self.phase, dtype=torch.bool)
        gone[slots] = True
        self._stop_where(gone, reason)

    def _stop_where(self, gone: Tensor, reason: Stopped) -> None:
        """End the search of some images, bool [slots], and begin what comes after it."""
        if not gone.any():
            return
        self.reason[gone] = REASONS.index(reason)
        self.beam.drop(gone)
        fresh = gone & (self.phase <= Phase.PRUNING)
        if self.settings.minimal == "subset":
            self.phase[fresh] = Phase.CERTIFYING
            mine = self._mses[fresh[self._mses.slot]]
            self.certifier.begin(mine.slot, mine.region)
        else:
            self._descend(fresh)

    def _descend(self, ready: Tensor) -> None:
        """Begin the lattice below the MSEs of some images, bool [slots]."""
        if not ready.any():
            return
        self.phase[ready] = Phase.BELOW
        mine = self._mses[ready[self._mses.slot]].sorted_by("slot", "rank")
        if self.settings.expanded_mses is not None:
            mine = mine[rank_in_group(mine.slot) < self.settings.expanded_mses]
        self.lattice.begin(mine)

    def _make_minimal(self, slot: int) -> None:
        """Replace an image's MSEs that contain a sufficient set which certifying found by that set."""
        mine, self._mses = self._mses.split(self._mses.slot == slot)
        region = self.certifier.collect(slot)
        same = torch.full((len(region),), slot, device=self.device)
        last = Rows(slot=same, region=region, rank=torch.full_like(same, int(self.level[slot]) << 32))
        sets = Rows.cat([Rows(slot=mine.slot, region=mine.region, rank=mine.rank), last])
        sets = sets.sorted_by("region", "rank").first_of_each("region")
        sets = sets[inclusion_minimal(self.grid, sets.region)]
        self._keep(sets, certified=bool(~self.certifier.exhausted[slot]))

    def _keep(self, sets: Rows, certified: bool = True) -> None:
        """Keep minimal sets, each once for its image, by the first time it was found."""
        if not len(sets):
            return
        sets = sets.but(certified=torch.full_like(sets.slot, certified, dtype=torch.bool))
        together = Rows.cat([self._mses, sets]).sorted_by("slot", "region", "rank")
        self._mses = together.first_of_each("slot", "region")

    def _ratio(self, slot: Tensor, confidence: Tensor) -> Tensor:
        """Ratio to the whole image; a confidence that is not a number is below every threshold."""
        return torch.nan_to_num(confidence / self.probe.whole[slot], nan=-1.0, posinf=-1.0)

    def _suffices(self, ratio: Tensor) -> Tensor:
        ratio = _rounded(ratio)
        return ratio > self.settings.threshold if self.settings.strict else ratio >= self.settings.threshold

    def _collect(self) -> dict[int, dict[str, Any]]:
        """Hand out what was found in the images that are done, and free their slots."""
        done = self.phase == Phase.DONE
        slots = done.nonzero().flatten().tolist()
        if not slots:
            return {}
        mine, self._mses = self._mses.split(done[self._mses.slot])
        mine = mine.sorted_by("slot", "rank")
        ratio = _rounded(self._ratio(mine.slot, self.probe.ask(mine.slot, mine.region)))  # remembered
        mses = self._by_slot(done, mine.but(ratio=ratio))
        below = self._by_slot(done, self.lattice.collect(done))
        columns = (self.hidden, self.probe.forwards, self.level, self.reason, self.lattice.truncated)
        facts = zip(*(c[done].tolist() for c in columns), strict=True)
        self.phase[done] = Phase.IDLE
        return {
            slot: {
                "mses": tuple(map(MSE, self.grid.to_cells(m.region), m.ratio.tolist(), m.certified.tolist())),
                "regions": b.region,
                "ratios": b.ratio,
                "baseline_confidence": hidden,
                "questions": questions,
                "levels": level,
                "stopped": REASONS[reason],
                "truncated": truncated,
            }
            for slot, m, b, (hidden, questions, level, reason, truncated) in zip(slots, mses, below, facts, strict=True)
        }

    def _by_slot(self, done: Tensor, rows: Rows) -> list[Rows]:
        """Rows that belong to the slots that are done, cut by slot, on the CPU."""
        order = rows.slot.sort(stable=True).indices
        lengths = self._count(rows)[done].tolist()
        # Parts are copied: a view of one image's rows would keep those of all the others in memory.
        cut = {name: [p.clone() for p in c[order].cpu().split(lengths)] for name, c in rows.columns.items()}
        return [Rows(**dict(zip(cut, parts, strict=True))) for parts in zip(*cut.values(), strict=True)]


def _rounded(ratio: Tensor) -> Tensor:
    return (ratio / RESOLUTION).round() * RESOLUTION
