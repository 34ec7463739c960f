"""What the picture of a graph says in words: what was found, why no more, how it was made, and the formula."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

from suffice.draw.thumbnails import Hide
from suffice.draw.words import counted, grouped, percent, text_width, wrap

if TYPE_CHECKING:
    from suffice.evidence.graph.graph import Graph, Node
    from suffice.evidence.result import MSE, Evidence

Words = list[tuple[str, bool]]  # each with whether it is about something that is drawn

HIDDEN = {
    "dim": "hidden cells show the baseline, dimmed",
    "baseline": "hidden cells show the baseline",
    "fade": "hidden cells show the picture, faded",
}


def summary(graph: Graph, short: bool = False) -> str:
    """How many MSEs there are, and how many are drawn."""
    found = len(graph.evidence.mses)
    thing = "MSE" if short else "minimal sufficient explanation"
    drawn = f", {grouped(found - graph.hidden_mses)} drawn" if graph.hidden_mses else ""
    return (counted(found, thing) if found else f"no {thing}") + drawn


def notice(graph: Graph) -> list[str]:
    """Why there is no graph to see, or none worth the name; no lines where there is one."""
    evidence = graph.evidence
    if any(not graph.nodes[root].cells for root in graph.roots):
        return ["Nothing is needed", evidence.why]
    if graph.nodes:
        return []
    if not evidence.meaningful:
        return ["Nothing to explain", evidence.why]
    reached = f"No region of up to {counted(evidence.levels, 'cell')} that the search looked at is enough"
    return ["No sufficient explanation found", f"{reached}: {_criterion(evidence)}.", evidence.why]


def facts(graph: Graph, hide: Hide | None, short: bool = False) -> list[str]:
    """How the picture was made; ``short`` has only what one must know to read it."""
    evidence, side = graph.evidence, graph.evidence.grid.side
    alone = f"{percent(evidence.baseline_confidence)} confidence"
    if isfinite(evidence.baseline_ratio):
        alone += f", ratio {percent(evidence.baseline_ratio)}"
    stable = evidence.stability
    said = [
        f"grid {side} × {side}" + (", soft cells" if evidence.settings.cells == "soft" else ""),
        f"enough: {_criterion(evidence)}",
        f"baseline {evidence.settings.to_dict()['baseline']}, alone: {alone}",
        HIDDEN[hide] if hide and graph.nodes else "",
        "" if stable is None else f"stable under small changes: {percent(stable)}",
        "evaluation below the MSEs ended by its budget, counts are lower bounds" if evidence.truncated else "",
    ]
    if not short:
        said += [
            f"followed above {percent(graph.expand_at)}, best {graph.children} below each" if graph.edges else "",
            "" if graph.merge else "equal regions drawn apart",
            f"{counted(evidence.questions, 'masked image')} asked",
            f"{counted(evidence.mended, 'MSE')} mended in fp32" if evidence.mended else "",
        ]
    return [fact for fact in said if fact]


def remark(node: Node) -> str:
    """What is missing below a node."""
    if node.hidden_children:
        return f"+{grouped(node.hidden_children)} more"
    return "not asked" if node.unevaluated_children == len(node.cells) > 0 else ""


def about_mse(mse: MSE, number: int) -> str:
    """All that is known of an MSE but its cells, in a line."""
    said = [
        f"MSE {number + 1}: {mse.minimality}",
        "" if mse.margin is None else f"{mse.margin:.3f} above the threshold",
        "found by deletion from the whole image" if mse.found == "deletion" else "",
        f"found within {counted(mse.asked, 'question')}" if mse.asked else "",
        "" if mse.second_ratio is None else f"ratio {mse.second_ratio:.3f} over the second baseline",
        *(f"ratio {ratio:.3f} under {change}" for change, ratio in (mse.under or {}).items()),
    ]
    return ", ".join(part for part in said if part)


def formula_lines(graph: Graph, size: float, room: float, most: int = 2) -> list[Words]:
    """The formula in at most so many lines, of words; the MSEs drawn come first, and those left out are counted."""
    mses = graph.evidence.mses
    drawn = [graph.nodes[root].mse for root in graph.roots]
    drawn += sorted({node.mse for node in graph.nodes if node.mse is not None}.difference(drawn))
    order = drawn + [number for number in range(len(mses)) if number not in set(drawn)]
    terms = [mses[number].cells for number in order if number is not None]
    if not terms:
        return [[("⊥", True)]]
    # No more terms than this can ever fit, so that there is no need to try with thousands.
    fits = min(len(terms), int(most * room / text_width("(P0)", size)) + 1)
    for count in range(fits, 0, -1):
        words = [(w, i < len(drawn)) for i, cells in enumerate(terms[:count]) for w in _term(cells, i > 0)]
        lines = _broken(words, len(terms) - count, size, room)
        if len(lines) <= most:
            return lines
    return _broken([(f"({counted(len(terms[0]), 'cell')})", True)], len(terms) - 1, size, room)


def _term(cells: Sequence[int], follows: bool) -> list[str]:
    """The words of a term: an operator stays with what follows it, and neither end of a term stands alone."""
    first, *others = [f"P{cell}" for cell in cells] or ["⊤"]
    words = [first, *(f"∧\u00a0{other}" for other in others)]
    if cells:
        words[0], words[-1] = f"({words[0]}", f"{words[-1]})" if others else f"({words[0]})"
    if follows:
        words[0] = f"∨\u00a0{words[0]}"
    return ["\u00a0".join(words[:2]), *words[2:-2], "\u00a0".join(words[-2:])] if len(words) > 3 else words


def _broken(words: Words, left_out: int, size: float, room: float) -> list[Words]:
    words = words + ([(f"…\u00a0and\u00a0{grouped(left_out)}\u00a0more", False)] if left_out else [])
    return [[words[i] for i in line] for line in wrap([word for word, _ in words], size, room)]


def _criterion(evidence: Evidence) -> str:
    chosen = evidence.settings
    kind = "ratio above the baseline's" if chosen.above_baseline else "a ratio"
    ratio = f"{kind} {'>' if chosen.strict else '≥'} {percent(chosen.threshold)}"
    return {"ratio": ratio, "top-1": "it stays the first class", "both": f"{ratio}, and it stays the first class"}[
        chosen.keeps
    ]
