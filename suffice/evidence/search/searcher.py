"""The search: many images in lockstep through one probe.

Each image goes through phases: levels of beam search, each followed by pruning what it found; deletion from the whole
image, where they found nothing; confirming in fp32, where they were asked in another precision; certifying; then the
lattice below its MSEs. A round collects the questions of every image, whatever its phase, asks the probe once, and
hands the answers back. An image that is finished leaves its slot to the next one, so that batches stay full from the
first image to the last.
"""

from __future__ import annotations

from enum import IntEnum
from itertools import islice
from typing import Any, get_args

import torch
from torch import Tensor

from suffice.evidence.result import MSE, Stopped, Way
from suffice.evidence.search.beam import Beam, no_sets
from suffice.evidence.search.confirmation import Confirmation, Doubt, Mending
from suffice.evidence.search.criterion import Answers, Criterion
from suffice.evidence.search.deletion import Deletion
from suffice.evidence.search.lattice import Lattice
from suffice.evidence.search.minimality import Certifier, Pruner, contains_any, is_among
from suffice.evidence.search.reading_out import REASONS, cut_by_slot, evidence_fields, records
from suffice.evidence.settings import Settings
from suffice.evidence.thresholds import rounded
from suffice.perturb.probe import Probe
from suffice.perturb.rows import Rows, group_sizes, rank_in_group, unique


class Phase(IntEnum):
    """Where an image is in its search."""

    IDLE, LEVEL, PRUNING, DELETING, CONFIRMING, CERTIFYING, BELOW, DONE = range(8)


WAYS: tuple[Way, ...] = get_args(Way)
# What asks questions, in the order in which a round asks them.
ASKING = ("levels", "pruning", "deletion", "mending", "mending", "mending", "certifying", "below")
NAMES = tuple(dict.fromkeys(ASKING))
BITS = 26  # of the rank of a set: its level, then the questions asked when it was found, then its order there


class Searcher:
    """Searches the images of a probe, one slot each; the settings' grid, baseline and cells are those of the probe.

    ``exact`` is a probe in fp32 with the same images, by which results are confirmed; None where ``probe`` is exact.
    """

    def __init__(self, probe: Probe, settings: Settings, exact: Probe | None = None) -> None:
        self.probe, self.settings, self.grid, self.device = probe, settings, probe.grid, probe.device
        slots, grid = len(probe), probe.grid
        self.oracle = Confirmation(Criterion(probe, settings), None if exact is None else Criterion(exact, settings))
        self.beam = Beam(grid, settings, slots, self.device)
        self.pruner, self.mender = Pruner(grid, self.device), Pruner(grid, self.device)
        self.deletion, self.mending = Deletion(grid, self.device), Mending(grid, self.device)
        self.certifier = Certifier(grid, settings.subset_budget, slots, self.device)
        self.lattice = Lattice(grid, settings, slots, self.device)
        self._mses = no_sets(grid, self.device, rank=torch.long, certified=torch.bool)
        self._unconfirmed = self._mses
        # Of each slot: the phase, the cells of its sets, the number of the reason why it stopped, MSEs mended.
        self.phase, self.level, self.reason, self.mended = torch.zeros(4, slots, dtype=torch.long, device=self.device)
        self.deleted = torch.zeros(slots, dtype=torch.bool, device=self.device)
        self._turn, self._admitted = torch.zeros_like(self.phase), 0  # which image each is, from 1 on
        self.active = 0  # images that are being searched
        self.spent = torch.zeros(len(NAMES), slots, dtype=torch.long, device=self.device)  # new questions, by who asks

    def admit(self, slots: Tensor, saliency: Tensor | None = None, seeds: Tensor | None = None) -> None:
        """Begin the search of the images in some slots.

        Args:
            slots: [M] int64.
            saliency: With ``search="sag"``: a seed map of each, [M, side, side], high = important.
            seeds: With ``beam_noise``: a seed of each, [M] int64.
        """
        slots = slots.to(self.device)
        for column in (
            self.level,
            self.reason,
            self.mended,
            self.deleted,
            self.lattice.truncated,
        ):
            column[slots] = 0
        self.spent[:, slots] = 0
        if saliency is not None:
            salient_first = saliency.flatten(1).to(self.device).sort(dim=1, descending=True, stable=True)
            self.beam.order[slots] = salient_first.indices
        if seeds is not None:
            self.beam.seeds[slots] = seeds.to(self.device)
        self.oracle.admit(slots)
        self.phase[slots] = Phase.LEVEL
        self._turn[slots] = torch.arange(len(slots), device=self.device) + self._admitted + 1
        self._admitted, self.active = self._admitted + len(slots), self.active + len(slots)

        # Where ratios to the whole image mean nothing, or nothing at all is enough, there is no search.
        sure, chosen = self.oracle.sure, self.settings
        whole, hidden = sure.probe.whole[slots], self.grid.empty(len(slots), self.device)
        unheard = ~whole.isfinite()
        mute = ~unheard & ~((whole > 0) & (whole >= chosen.min_confidence))
        fails, idle = torch.zeros_like(mute), sure.ask(slots, hidden).suffices
        if chosen.keeps != "ratio" or chosen.strict:
            fails = ~(unheard | mute | sure.ask(slots, self.grid.full(len(slots), self.device)).suffices)
        reasons: dict[Stopped, Tensor] = {"not a number": unheard, "no confidence": mute, "whole fails": fails}
        for reason, which in reasons.items():
            idle &= ~which
            self._end(slots[which], reason)
        self._keep(Rows(slot=slots, region=hidden, rank=torch.zeros_like(slots))[idle], certified=True)
        self._end(slots[idle], "nothing needed")
        slots = slots[self.phase[slots] == Phase.LEVEL]
        if chosen.max_questions is not None:
            beyond = self._ahead(torch.ones_like(self.level))[slots] > chosen.max_questions
            self._end(slots[beyond], "max_questions")
            slots = slots[~beyond]
        self.beam.begin(slots)
        self._move_on()

    def round(self) -> dict[int, dict[str, Any]]:
        """Ask one question for all; returns the slots that are finished, and the fields of their :class:`Evidence`."""
        searching, chosen = self.phase == Phase.LEVEL, self.settings
        whole_level = searching & (self.level < chosen.exhaustive)  # sets of this size are all asked about
        candidates = self.beam.questions(searching, whole_level)
        if chosen.exhaustive:
            contains = contains_any(self.grid, candidates, self._mses) & whole_level[candidates.slot]
            candidates = self.beam.leave_out(contains)
        asked: list[tuple[Rows, Doubt]] = [
            (candidates, "search"),
            (self.pruner.questions(), "search"),
            (self.deletion.questions(), "search"),
            (self.mending.questions(), "search"),
            (self.mending.checks, "always"),
            (self.mender.questions(), "result"),
            (self.certifier.questions(), "result"),
            (self.lattice.questions(), "counts"),
        ]
        # Levels may wait for other images to fill a batch, first those of the images that came last.
        final, waits = whole_level[candidates.slot], self._turn[candidates.slot] if self.active > 1 else None
        parts = self.oracle.ask(asked, final if chosen.exhaustive else None, later=waits)
        begins = (NAMES.index(name) * len(self.phase) for name in ASKING)
        place = torch.cat([questions.slot + begin for (questions, _), begin in zip(asked, begins, strict=True)])
        self.spent.view(-1).scatter_add_(0, place, torch.cat([answers.new for answers in parts]).long())
        level, pruned, deleted, grown, checked, mended, certified, below = parts

        if level.waits is not None:
            held = torch.zeros_like(self.phase).scatter_reduce_(0, candidates.slot, level.waits.long(), "amax").bool()
            going = self.beam.hold(held)
            searching, level = searching & ~held, Answers(level.ratio[going], level.suffices[going], level.new[going])
        self.level += searching.long()
        sufficient = self.beam.advance(level.ratio, level.suffices, searching & (self.level < chosen.exhaustive))
        self._keep(self.pruner.advance(pruned.suffices))
        # What suffices at a level that was asked about as a whole is minimal: all smaller sets fail there.
        minimal, larger = sufficient.but(rank=self._rank(sufficient.slot)).split(whole_level[sufficient.slot])
        self._keep(minimal)
        self.pruner.add(larger)
        self.pruner.add(self.deletion.advance(deleted.suffices))
        self._keep(self.mender.advance(mended.suffices))
        self.mender.add(self.mending.advance(checked.suffices, grown.ratio))
        self.certifier.advance(certified.suffices)
        self.lattice.advance(rounded(below.ratio))
        self.phase[searching] = Phase.PRUNING
        self._move_on()
        return self._collect()

    def _move_on(self) -> None:
        """Move images whose phase is over to the next."""
        pruned = self._count(self.pruner.sets) == 0
        resting = (self.phase == Phase.PRUNING) & pruned
        mses, sets = self._count(self._mses), self._count(self.beam.sets)
        limit = self.settings
        ends: list[tuple[Stopped, Tensor]] = []  # in order of precedence, the strongest first
        if limit.max_mses is not None:
            ends.append(("max_mses", (mses > limit.max_mses) & (self.level >= limit.exhaustive)))
        ends.append(("beam empty", sets == 0))
        if limit.max_size is not None:
            ends.append(("max_size", self.level >= limit.max_size))
        if limit.max_questions is not None:
            ends.append(("max_questions", self._ahead(sets) > limit.max_questions))
        left = resting
        for reason, which in ends:
            self._end_where(left & which, reason)
            left = left & ~which
        self.phase[resting & (self.phase == Phase.PRUNING)] = Phase.LEVEL

        self._confirm((self.phase == Phase.DELETING) & pruned & (self._count(self.deletion.sets) == 0))
        waiting = sum(self._count(rows) for rows in (self.mending.checks, self.mending.growing, self.mender.sets))
        self._certify((self.phase == Phase.CONFIRMING) & (waiting == 0))
        self._descend((self.phase == Phase.CERTIFYING) & (self._count(self.certifier.subsets) == 0))
        self.phase[(self.phase == Phase.BELOW) & self.lattice.finished()] = Phase.DONE

    def _end(self, slots: Tensor, reason: Stopped) -> None:
        """End the search of some images [M] that cannot have any but the empty explanation."""
        self.reason[slots] = REASONS.index(reason)
        self.phase[slots] = Phase.BELOW

    def _end_where(self, gone: Tensor, reason: Stopped) -> None:
        """End the beam search of some images, bool [slots], for a reason."""
        if not gone.any():
            return
        self.reason[gone] = REASONS.index(reason)
        self.beam.drop(gone)
        empty = gone & (self._count(self._mses) == 0)
        if self.settings.deletion_orders and reason != "max_questions":
            self._delete(empty)
            gone = gone & ~empty
        self._confirm(gone)

    def _ahead(self, sets: Tensor) -> Tensor:
        """How many questions an image can have been asked after the next level, from as many sets; both [slots]."""
        return self.probe.forwards + sets * (self.grid.cells - self.level)

    def _delete(self, empty: Tensor) -> None:
        """Search some images, bool [slots], from the top, in several orders."""
        slots = empty.nonzero().flatten()
        if not len(slots):
            return
        self.phase[slots], self.deleted[slots] = Phase.DELETING, True
        cells, orders = self.grid.cells, self.settings.deletion_orders
        # First the cells that say least alone; then by chance, the same for every image.
        each = torch.arange(cells, device=self.device).repeat(len(slots))
        alone = self.oracle.fast.ask(slots.repeat_interleave(cells), self.grid.single(each))
        self.spent[NAMES.index("deletion"), slots] += alone.new.view(-1, cells).sum(dim=1)
        random = torch.Generator().manual_seed(self.settings.seed)
        for number in range(orders):
            shuffled = torch.randperm(cells, generator=random).to(self.device).expand(len(slots), -1)
            order = shuffled if number else alone.ratio.view(-1, cells).sort(dim=1, stable=True).indices
            rank = self._rank(slots) + number * len(slots)
            self.deletion.add(slots, self.grid.full(len(slots), self.device), order, rank)

    def _confirm(self, ready: Tensor) -> None:
        """Begin to confirm the MSEs of some images, bool [slots], where they were not asked for exactly."""
        if self.oracle.exact is None:
            self._certify(ready)
        elif ready.any():
            self.phase[ready] = Phase.CONFIRMING
            mine, self._mses = self._mses.split(ready[self._mses.slot])
            self._unconfirmed = Rows.cat([self._unconfirmed, mine])
            self.mending.checks = Rows.cat([self.mending.checks, mine])

    def _certify(self, ready: Tensor) -> None:
        """Begin to certify the MSEs of some images, bool [slots]."""
        if not ready.any():
            return
        before, self._unconfirmed = self._unconfirmed.split(ready[self._unconfirmed.slot])
        if len(before):
            self.mended += self._count(before[~is_among(before, self._mses)])
        self.phase[ready] = Phase.CERTIFYING
        if self.settings.minimal == "subset":
            mine = self._mses[ready[self._mses.slot]]
            mine = mine[self._to_certify(mine)]
            self.certifier.begin(mine.slot, mine.region)

    def _to_certify(self, sets: Rows) -> Tensor:
        most = self.settings.certify
        return self.grid.count(sets.region) <= (self.grid.cells if most is None else most)

    def _descend(self, ready: Tensor) -> None:
        """Begin the lattice below the MSEs of some images, bool [slots], with what certifying has found."""
        if not ready.any():
            return
        if self.settings.minimal == "subset":
            smaller, cut = self.certifier.collect(ready)
            self._keep(smaller.but(rank=self._rank(smaller.slot)))
            certified = ready[self._mses.slot] & self._to_certify(self._mses)
            certified &= ~is_among(self._mses, cut)
            self._mses = self._mses.but(certified=self._mses.certified | certified)
        self.phase[ready] = Phase.BELOW
        mine = self._mses[ready[self._mses.slot]].sorted_by("slot", "rank")
        if self.settings.expanded_mses is not None:
            mine = mine[rank_in_group(mine.slot) < self.settings.expanded_mses]
        self.lattice.begin(mine)

    def _keep(self, sets: Rows, certified: bool = False) -> None:
        """Keep minimal sets, each once for its image, by the first time it was found."""
        if not len(sets):
            return
        sets = sets.but(certified=torch.full_like(sets.slot, certified, dtype=torch.bool))
        together = Rows.cat([self._mses, sets]).sorted_by("rank")
        together = together[unique(*self.grid.keys(together.slot, together.region))[0]]
        if self.settings.minimal == "subset":
            together = together[~contains_any(self.grid, together, together)]
        self._mses = together

    def _rank(self, slot: Tensor) -> Tensor:
        """Ranks of sets that are found now in some slots, [K], in this order."""
        number = torch.arange(len(slot), device=self.device)
        return (((self.level[slot] << BITS) + self.probe.forwards[slot]) << BITS) + number

    def _count(self, rows: Rows) -> Tensor:
        """How many rows belong to each image, [slots]."""
        return group_sizes(rows.slot, len(self.phase))

    def _collect(self) -> dict[int, dict[str, Any]]:
        """Hand out what was found in the images that are done, and free their slots."""
        done = self.phase == Phase.DONE
        slots = done.nonzero().flatten().tolist()
        if not slots:
            return {}
        sure = self.oracle.sure
        mses, below = self._explanations(done), cut_by_slot(self.lattice.collect(done), done)
        columns = {
            "confidence": sure.probe.whole,
            "baseline_confidence": sure.hidden,
            "questions": self.probe.forwards,
            "levels": self.level,
            "mended": self.mended,
            "truncated": self.lattice.truncated,
            "stopped": self.reason,
        }
        spent_on = dict(zip(NAMES, self.spent, strict=True)) | {"confirming": self.oracle.spent}
        facts, spent = records(columns, done), records(spent_on, done)
        self.phase[done] = Phase.IDLE
        self.active -= len(slots)
        fields = map(evidence_fields, mses, below, facts, spent)
        return dict(zip(slots, fields, strict=True))

    def _explanations(self, done: Tensor) -> list[tuple[MSE, ...]]:
        """Hand out and forget the MSEs of each of the slots that are done."""
        mine, self._mses = self._mses.split(done[self._mses.slot])
        mine = mine.sorted_by("slot", "rank")
        ratio = rounded(self.oracle.sure.ask(mine.slot, mine.region).ratio)  # remembered
        asked, way = mine.rank >> BITS & (1 << BITS) - 1, self.deleted[mine.slot].long()
        margins = self.oracle.sure.margins(ratio)
        columns = (column.tolist() for column in (ratio, mine.certified, way, asked))
        rows = zip(self.grid.to_cells(mine.region), margins, *columns, strict=True)
        mses = (
            MSE(cells, ratio, certified, margin, WAYS[way], asked)
            for cells, margin, ratio, certified, way, asked in rows
        )
        return [tuple(islice(mses, number)) for number in self._count(mine)[done].tolist()]
