"""Findings in sentences: what significant differences allow to be said, and what the data could not tell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from suffice.report.page.comparing import ALPHA, Comparison, Pair, Size
from suffice.report.page.content import Finding, Source
from suffice.report.page.wording import counted, interval, listed, p_value, places_for, short

MOST = 10  # sentences
TWICE = 2.0  # from here on, a ratio is said as "times as many"
Trace = Callable[[Comparison, Pair], Source]


def findings_of(comparisons: Sequence[Comparison], trace: Trace | None = None, most: int = MOST) -> list[Finding]:
    """Sentences about the differences that are significant after correction.

    Of each quantity: variants of one model (one name begins with the other's), and the two ends of the ranking. What
    other trainings may not show is not among them; see :func:`untold_of`.

    Args:
        comparisons: One a quantity.
        trace: From a comparison and a pair to where the numbers come from.
        most: Sentences; those of the largest effects are kept, in the order of the quantities.
    """
    said = [(n, c, pair) for n, c in enumerate(comparisons) for pair in _worth_saying(c) if _holds(c, pair)]
    sized = [(n, c, pair, c.size(pair)) for n, c, pair in said]
    kept = sorted(sized, key=lambda row: (-_rank(row[1], row[2]), -abs(row[3].effect)))[:most]
    kept.sort(key=lambda row: row[0])
    return [
        Finding(sentence(c, pair, size), evidence(c, pair, size), c.quantity.question, trace and trace(c, pair))
        for _, c, pair, size in kept
    ]


def untold_of(comparisons: Sequence[Comparison]) -> list[str]:
    """What the data could not tell, a line a quantity at most."""
    lines = []
    for c in comparisons:
        unclear = [pair for pair in c.pairs if not pair.clear]
        if unclear:
            lines.append(_unclear(c, unclear))
        lines += _lost_over_trainings(c)
    return lines


def sentence(c: Comparison, pair: Pair, size: Size) -> str:
    """A difference as a sentence, with its interval."""
    one, first, second = c.quantity, pair.first, pair.second
    if not one.counts:
        said, ends = _difference(c, pair, size)
    elif size.value >= TWICE:
        said, ends = f"{first} has {size.value:.1f} times as many {one.noun} as {second}", (size.low, size.high, 1)
    elif size.value >= 1:
        said = f"{first} has {100 * (size.value - 1):.0f} % more {one.noun} than {second}"
        ends = (100 * (size.low - 1), 100 * (size.high - 1), 0)
    else:
        said = f"{first} has {100 * (1 - size.value):.0f} % fewer {one.noun} than {second}"
        ends = (100 * (1 - size.high), 100 * (1 - size.low), 0)
    return f"{said} {interval(*ends)}{_place(c, pair)}."


def _difference(c: Comparison, pair: Pair, size: Size) -> tuple[str, tuple[float, float, int]]:
    """A difference without its interval, and the interval, in the direction that the words have."""
    places = places_for(size.value)
    low, high = (size.low, size.high) if size.value >= 0 else (-size.high, -size.low)
    more = c.quantity.ways[0] if size.value >= 0 else c.quantity.ways[1]
    by = f"{abs(size.value):.{places}f}"
    said = c.quantity.says.format(first=pair.first, second=pair.second, by=by, more=more, noun=c.quantity.noun)
    return said, (low, high, places)


def _place(c: Comparison, pair: Pair) -> str:
    """That two are the ends of a ranking, where there are more."""
    if len(c.order) < 3 or {pair.first, pair.second} != {c.order[0], c.order[-1]}:
        return ""
    return f": {' and '.join(c.quantity.ends)} of {len(c.order)}"


def evidence(c: Comparison, pair: Pair, size: Size) -> str:
    """Test, effect size and numbers behind a sentence."""
    parts = [f"{p_value(pair.adjusted)} over {counted(pair.images, 'image')}, effect size {size.effect:+.2f}"]
    over = c.over_trainings(pair)
    if over is not None:
        parts.append(f"over {over[1]} seeds {p_value(over[0])}")
    return "; ".join(parts)


def variants(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of names of which one begins with the other: a variant, and what it is one of.

    Example:
        >>> list(variants(["zoo/convnext-3", "zoo/convnext-3-bn", "zoo/deit", "zoo/resnet"]))
        [('zoo/convnext-3-bn', 'zoo/convnext-3')]
    """
    for one, other in combinations(names, 2):
        plain, changed = sorted((one, other), key=len)
        if changed.startswith(plain) and not changed[len(plain)].isalnum():
            yield changed, plain


def _worth_saying(c: Comparison) -> list[Pair]:
    pairs = [found for names in variants(c.names) if (found := c.pair(*names)) is not None and found.clear]
    if len(c.order) >= 2:
        ends = c.pair(c.order[0], c.order[-1])
        if ends is not None and ends.clear and {ends.first, ends.second} not in [{p.first, p.second} for p in pairs]:
            pairs.append(ends)
    return pairs


def _rank(c: Comparison, pair: Pair) -> int:
    """Variants of one model come first: what differs between them is known."""
    return int((pair.first, pair.second) in variants(c.names))


def _holds(c: Comparison, pair: Pair) -> bool:
    over = c.over_trainings(pair)
    return over is None or over[0] < ALPHA


def _unclear(c: Comparison, unclear: Sequence[Pair]) -> str:
    what = f"{_capital(c.quantity.noun)}: "
    few = [f"{pair.first} and {pair.second}" for pair in unclear]
    if len(unclear) == len(c.pairs):
        which = "none of the pairs differ" if len(c.pairs) > 1 else f"{few[0]} do not differ"
        return f"{what}{which} significantly."
    many = f"{len(unclear)} of {counted(len(c.pairs), 'pair')} cannot be told apart"
    return f"{what}{many} ({listed(few, 3)}); {_within(c, unclear)}."


def _within(c: Comparison, unclear: Sequence[Pair]) -> str:
    """How far apart they could still be."""
    reach = c.reach(unclear[:50])
    if c.quantity.counts:
        return f"if there is a difference, it is less than a factor of {math.exp(reach):.2g}"
    unit = " percentage points" if c.quantity.scale == 100 else ""
    return f"if there is a difference, it is less than {short(reach, 2)}{unit}"


def _lost_over_trainings(c: Comparison) -> list[str]:
    lost = [(pair, over) for pair in c.clear if (over := c.over_trainings(pair)) is not None and over[0] >= ALPHA]
    if not lost:
        return []
    names = listed([f"{pair.first} and {pair.second} ({p_value(over[0])})" for pair, over in lost], 3)
    return [
        f"{_capital(c.quantity.noun)}: these trainings of {names} differ, but other trainings may not: over so few "
        "seeds it could be chance."
    ]


def _percents(low: float, high: float) -> str:
    return f"[{100 * low:.0f}, {100 * high:.0f}]"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
