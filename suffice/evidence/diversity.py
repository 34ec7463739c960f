"""Diversity: the largest family of sets that overlap little.

Sets are the vertices of a graph, and two are joined where they share few enough elements, so the largest family is a
maximum clique. The search is branch and bound over bit sets with a coloring bound: vertices of one color are joined
to none of their own color, so a clique has at most one of each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from suffice.errors import OptionError

# networkx.max_weight_clique was measured beside this: it gives some clique of the same size, not the first by index,
# and takes 3 times as long for 60 sets around one object (43 ms at overlap=2), 9 times for 200 (1.2 s).


def largest_diverse_family(sets: Sequence[Collection[int]], overlap: int) -> list[int]:
    """The largest family of sets of which any two share at most ``overlap`` elements.

    Among families of the same size it is the first by index: the one whose ascending list of indices is
    lexicographically smallest. Equal sets count as different members, where they are small enough to overlap so little.

    Exact, so exponential in the worst case. Sixty sets of cells take about 10 ms, two hundred around one object 0.1 s.
    Sets spread evenly over the grid are the hard case: of those with 8 of 49 cells, at ``overlap=2``, 100 take 0.2 s,
    140 some seconds, and 200 many minutes.

    Args:
        sets: Such as the cells of each minimal sufficient explanation.
        overlap: Most elements that two members may share.

    Returns:
        Indices of the members, ascending.

    Raises:
        OptionError: ``overlap`` is negative.

    Example:
        >>> largest_diverse_family([(0, 1, 2), (2, 3), (0, 4), (1, 5)], overlap=0)
        [1, 2, 3]
        >>> largest_diverse_family([(0, 1, 2), (2, 3), (0, 4), (1, 5)], overlap=1)
        [0, 1, 2, 3]
    """
    if overlap < 0:
        raise OptionError(f"overlap={overlap}; it can be 0 or more, the number of elements that two sets may share.")
    joined = _joined(sets, overlap)
    order = _densest_first(joined)
    position = {vertex: rank for rank, vertex in enumerate(order)}
    graph = [sum(1 << position[other] for other in _elements(joined[vertex])) for vertex in order]
    everything = (1 << len(sets)) - 1

    known = _largest_clique(graph, everything, at_least=1)
    # Indices in ascending order: each is taken if a family of the full size still goes with it. The family known
    # to exist answers most of these questions without another search.
    family: list[int] = []
    candidates, size = everything, known.bit_count()
    for index in range(len(sets)):
        vertex = position[index]
        if len(family) == size:
            break
        if not candidates >> vertex & 1:
            continue
        with_it = candidates & graph[vertex]
        if not known >> vertex & 1:
            lacking = size - len(family) - 1
            rest = _largest_clique(graph, with_it, at_least=lacking) if lacking else 0
            if rest.bit_count() < lacking:
                candidates ^= 1 << vertex
                continue
            known = rest
        family.append(index)
        candidates = with_it
    return family


def _joined(sets: Sequence[Collection[int]], overlap: int) -> list[int]:
    """For each set, which others go with it, as bits."""
    bit = {element: i for i, element in enumerate(sorted({element for members in sets for element in members}))}
    members_as_bits = [sum(1 << bit[element] for element in set(members)) for members in sets]
    joined = [0] * len(sets)
    for i, one in enumerate(members_as_bits):
        for j in range(i):
            if (one & members_as_bits[j]).bit_count() <= overlap:
                joined[i] |= 1 << j
                joined[j] |= 1 << i
    return joined


def _densest_first(joined: list[int]) -> list[int]:
    """Vertices so that each, when those after it are gone, has the fewest neighbors left: colors go farthest."""
    degree = {vertex: bits.bit_count() for vertex, bits in enumerate(joined)}
    order = []
    while degree:
        vertex = min(degree, key=lambda v: (degree[v], v))
        del degree[vertex]
        order.append(vertex)
        for other in _elements(joined[vertex]):
            if other in degree:
                degree[other] -= 1
    return order[::-1]


def _largest_clique(graph: list[int], candidates: int, at_least: int) -> int:
    """The largest clique among candidates, as bits; no bits where none has ``at_least`` vertices."""
    strangers = [~(bits | 1 << vertex) for vertex, bits in enumerate(graph)]
    best, best_size = 0, at_least - 1
    # A stack of its own instead of recursion, as deep as the clique is large: which clique, the candidates that are
    # joined to all of it, and those that are still to be added to it.
    stack = [(0, candidates, _promising(strangers, candidates, best_size))]
    while stack:
        clique, candidates, waiting = stack.pop()
        size = len(stack)
        if not waiting or size + waiting[-1][1] <= best_size:
            continue  # those that wait behind it have fewer colors still
        vertex, _ = waiting.pop()
        stack.append((clique, candidates ^ 1 << vertex, waiting))
        clique, candidates, size = clique | 1 << vertex, candidates & graph[vertex], size + 1
        if size > best_size:
            best, best_size = clique, size
        if candidates:
            stack.append((clique, candidates, _promising(strangers, candidates, best_size - size)))
    return best


def _promising(strangers: list[int], candidates: int, to_beat: int) -> list[tuple[int, int]]:
    """Candidates that a clique with more than ``to_beat`` of them must draw from, by greedy coloring.

    Returns:
        (vertex, number of colors among it and those before it), fewest colors first.
    """
    found: list[tuple[int, int]] = []
    colors = 0
    while candidates:
        alike, free = 0, candidates
        while free:
            bit = free & -free
            alike |= bit
            free &= strangers[bit.bit_length() - 1]
        candidates ^= alike
        colors += 1
        if colors > to_beat:
            found += [(vertex, colors) for vertex in _elements(alike)]
    return found


def _elements(bits: int) -> Iterator[int]:
    """Positions of the bits that are set, ascending."""
    while bits:
        bit = bits & -bits
        yield bit.bit_length() - 1
        bits ^= bit
