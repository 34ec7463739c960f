"""Hitting sets: sets of elements that have one in common with every set of a family.

What sufficient sets are to "enough", their hitting sets are to "needed": where showing more never hurts, the image
without some cells is not enough exactly when these hit every sufficient set.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from suffice.errors import OptionError


def minimal_hitting_sets(
    sets: Sequence[Collection[int]], *, size: int | None = None, limit: int | None = None
) -> list[tuple[int, ...]]:
    """The hitting sets of a family from which no element can go, smallest first, then by their elements.

    The search is that of Murakami and Uno (MMCS, 2014): elements are added only while each one that is there already
    still hits a set that no other hits, so that nothing is built that is not minimal, and nothing twice. Exact, so
    exponential in the worst case.

    Args:
        sets: The family.
        size: Only those of at most so many elements, which is much faster.
        limit: Stop after so many, in no particular order.

    Raises:
        OptionError: ``size`` is negative, or ``limit`` is not positive.

    Example:
        >>> minimal_hitting_sets([(1, 2), (2, 3), (4,)])
        [(2, 4), (1, 3, 4)]
        >>> minimal_hitting_sets([(1, 2), (2, 3), (4,)], size=2)
        [(2, 4)]
        >>> minimal_hitting_sets([(1, 2), ()])  # nothing hits a set without elements
        []
    """
    if (size is not None and size < 0) or (limit is not None and limit < 1):
        raise OptionError(f"size={size}, limit={limit}; size can be 0 or more, limit 1 or more, and both None.")
    found = []
    for hitting in _Search(sets, size).found():
        found.append(hitting)
        if len(found) == limit:
            break
    return sorted(found, key=lambda s: (len(s), s))


def smallest_hitting_sets(sets: Sequence[Collection[int]], *, limit: int | None = None) -> list[tuple[int, ...]]:
    """The hitting sets with the fewest elements, all of them or the first so many; see :func:`minimal_hitting_sets`.

    Example:
        >>> smallest_hitting_sets([(1, 2, 5), (2, 3), (3, 4, 5)])
        [(1, 3), (2, 3), (2, 4), (2, 5), (3, 5)]
    """
    if not all(sets):
        return []
    size = _packed([_as_bits(s) for s in sets])
    while not (found := minimal_hitting_sets(sets, size=size, limit=limit)):
        size += 1
    return found


class _Search:
    """Elements are bits of whole numbers, and so are the sets of the family, by their place in it."""

    def __init__(self, sets: Sequence[Collection[int]], size: int | None) -> None:
        # Small sets first: they leave the fewest choices, and bound best how many elements are still needed.
        self.sets = sorted({_as_bits(s) for s in sets}, key=lambda bits: (bits.bit_count(), bits))
        every = sorted({element for s in sets for element in s})
        self.hits = {e: sum(1 << i for i, s in enumerate(self.sets) if s >> e & 1) for e in every}
        self.size = len(every) if size is None else size

    def found(self) -> Iterator[tuple[int, ...]]:
        """All minimal hitting sets."""
        candidates = _as_bits(self.hits)
        yield from self._extended({}, (1 << len(self.sets)) - 1, candidates)

    def _extended(self, alone: dict[int, int], missed: int, candidates: int) -> Iterator[tuple[int, ...]]:
        """Those that have some elements and more of the candidates.

        Args:
            alone: Element → the sets that it alone hits.
            missed: The sets that none of them hits.
            candidates: What may be added.
        """
        if not missed:
            yield tuple(sorted(alone))
            return
        open_sets = [self.sets[i] & candidates for i in _ones(missed)]
        if len(alone) + _packed(open_sets) > self.size:
            return
        choices = min(open_sets, key=int.bit_count)
        candidates &= ~choices
        for element in _ones(choices):
            hits = self.hits[element]
            kept = {other: sets & ~hits for other, sets in alone.items()}
            if all(kept.values()):
                yield from self._extended(kept | {element: missed & hits}, missed & ~hits, candidates)
                candidates |= 1 << element  # the others may be joined by it; where it is needless, so it is with them


def _packed(sets: Sequence[int]) -> int:
    """How many of some sets, as bits, lie apart, taken greedily: no fewer elements hit them all."""
    count = taken = 0
    for bits in sets:
        if not bits & taken:
            taken |= bits
            count += 1
    return count


def _as_bits(elements: Collection[int]) -> int:
    return sum(1 << element for element in set(elements))


def _ones(bits: int) -> Iterator[int]:
    """Positions of the bits that are set, ascending."""
    while bits:
        bit = bits & -bits
        yield bit.bit_length() - 1
        bits ^= bit
