"""Findings in sentences: what significant differences allow to be said, and what the data could not tell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from suffice.report.page.comparing import ALPHA, Comparison, Pair, Size
from suffice.report.page.content import Finding, Source
from suffice.report.page.wording import counted, interval, listed, p_value, places_for, short, signed
from suffice.study.choices import Contrast

MOST = 10  # sentences
TWICE = 2.0  # from here on, a ratio is said as "times as many"
Trace = Callable[[Comparison, Pair], Source]


def findings_of(
    comparisons: Sequence[Comparison],
    trace: Trace | None = None,
    most: int = MOST,
    contrasts: Sequence[Contrast] = (),
) -> list[Finding]:
    """Sentences about the differences that are significant after correction.

    Of each quantity: the comparisons that a study was made for, or, where it names none, variants of one model (one
    name begins with the other's); and the two ends of the ranking. What other trainings may not show is not among them;
    see :func:`untold_of`.

    Args:
        comparisons: One a quantity.
        trace: From a comparison and a pair to where the numbers come from.
        most: Sentences; those of the largest effects are kept, in the order of the quantities.
        contrasts: The comparisons that the study was made for.
    """
    said = [(n, c, pair) for n, c in enumerate(comparisons) for pair in _worth_saying(c, contrasts) if _holds(c, pair)]
    sized = [(n, c, pair, size) for n, c, pair in said if _away(c, size := c.size(pair))]
    kept = sorted(sized, key=lambda row: (-_rank(row[1], row[2]), -abs(row[3].effect)))[:most]
    kept.sort(key=lambda row: row[0])
    return [
        Finding(sentence(c, pair, size), evidence(c, pair, size), c.quantity.question, trace and trace(c, pair))
        for _, c, pair, size in kept
    ]


def untold_of(comparisons: Sequence[Comparison], contrasts: Sequence[Contrast] = ()) -> list[str]:
    """What the data could not tell, a line a quantity, and one more where other trainings may say something else."""
    lines = []
    for c in comparisons:
        pairs = c.named(contrasts) or c.pairs
        unclear = [pair for pair in pairs if not pair.clear]
        if unclear:
            lines.append(_unclear(c, unclear, len(pairs)))
        lines += _lost_over_trainings(c, [pair for pair in pairs if pair.clear])
    return lines


def sentence(c: Comparison, pair: Pair, size: Size) -> str:
    """A difference as a sentence, with its interval."""
    one, first, second = c.quantity, pair.first, pair.second
    if not one.counts:
        said, ends = _difference(c, pair, size)
    elif size.value >= TWICE:
        said, ends = f"{first} has {size.value:.1f} times as many {one.noun} as {second}", (size.low, size.high, 1)
    elif size.value >= 1:
        places = _places_of_percent(share := 100 * (size.value - 1))
        said = f"{first} has {share:.{places}f} % more {one.noun} than {second}"
        ends = (100 * (size.low - 1), 100 * (size.high - 1), places)
    else:
        places = _places_of_percent(share := 100 * (1 - size.value))
        said = f"{first} has {share:.{places}f} % fewer {one.noun} than {second}"
        ends = (100 * (1 - size.high), 100 * (1 - size.low), places)
    said = _capital(said) if said.startswith("the ") else said  # but names stay as they are
    asked = f"{_capital(pair.question)}: " if pair.question and pair.first not in pair.question else ""
    return f"{asked}{said} {interval(*ends)}{'' if asked else _place(c, pair)}."


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
    parts = [f"{p_value(pair.adjusted)} over {counted(pair.images, 'image')}, effect size {signed(size.effect)}"]
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


def _worth_saying(c: Comparison, contrasts: Sequence[Contrast]) -> list[Pair]:
    named = c.named(contrasts)
    others = [] if named else [c.pair(*names) for names in variants(c.names)]
    pairs = [pair for pair in (*named, *others) if pair is not None and pair.clear]
    if len(c.order) >= 2:
        ends = c.pair(c.order[0], c.order[-1])
        if ends is not None and ends.clear and {ends.first, ends.second} not in [{p.first, p.second} for p in pairs]:
            pairs.append(ends)
    return pairs


def _rank(c: Comparison, pair: Pair) -> int:
    """What a study was made for comes first, then variants of one model: what differs between them is known."""
    return 2 if pair.question else int((pair.first, pair.second) in variants(c.names))


def _away(c: Comparison, size: Size) -> bool:
    """Whether the interval, too, leaves out that there is no difference."""
    none = 1.0 if c.quantity.counts else 0.0
    return not size.low <= none <= size.high


def _holds(c: Comparison, pair: Pair) -> bool:
    over = c.over_trainings(pair)
    return over is None or over[0] < ALPHA


def _unclear(c: Comparison, unclear: Sequence[Pair], tests: int) -> str:
    what, within = f"{_capital(c.quantity.noun)}: ", _within(c, unclear)
    few = [f"{pair.first} – {pair.second}" for pair in unclear]
    pairs = f"{tests} comparisons that the study was made for" if unclear[0].question else counted(tests, "pair")
    if tests == 1:
        return f"{what}{unclear[0].first} and {unclear[0].second} cannot be told apart; {within}."
    many = f"none of the {pairs}" if len(unclear) == tests else f"{len(unclear)} of the {pairs}"
    which = "can" if len(unclear) == tests else "cannot"
    rest = f" and {len(few) - 3} more" if len(few) > 3 else ""
    named = "" if len(unclear) == tests else f" ({', '.join(few[:3])}{rest})"
    return f"{what}{many} {which} be told apart{named}; {within}."


def _within(c: Comparison, unclear: Sequence[Pair]) -> str:
    """How far apart they could still be."""
    reach = c.reach(unclear)
    if reach == 0:
        return "all values are the same here, which does not say that they are in other images"
    if c.quantity.counts:
        factor = math.exp(reach)
        return f"if there is a difference, it is less than a factor of about {factor:.{places_for(factor - 1)}f}"
    unit = " percentage points" if c.quantity.scale == 100 else ""
    return f"if there is a difference, it is less than about {short(reach, 2)}{unit}"


def _lost_over_trainings(c: Comparison, clear: Sequence[Pair]) -> list[str]:
    lost = [(pair, over) for pair in clear if (over := c.over_trainings(pair)) is not None and over[0] >= ALPHA]
    if not lost:
        return []
    names = listed([f"{pair.first} and {pair.second} ({p_value(over[0])})" for pair, over in lost], 3)
    return [
        f"{_capital(c.quantity.noun)}: these trainings of {names} differ, but other trainings may not: over so few "
        "seeds it could be chance."
    ]


def _places_of_percent(share: float) -> int:
    """Decimals of a percentage: none, but where it would read as 0 or as 100."""
    return 0 if 1 <= share <= 99 else places_for(share, 100 - share)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
