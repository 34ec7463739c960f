"""Structured attention graphs for other programs: JSON, Graphviz, networkx.

Keys of the JSON, which do not change without a new number in ``format``:

* ``format``: ``"suffice.graph/3"``.
* ``name``, ``index``, ``image_id``, ``label``, ``target``, ``confidence``, ``baseline_confidence``: the image and the
  class.
* ``grid``: cells a side. Cells are counted row by row from 0.
* ``mses``: of all MSEs of the image ``cells``, ``ratio``, ``certified``, ``margin``, ``found``, ``asked``,
  ``second_ratio``, ``under`` and ``stays`` (small change → ratio, and whether it suffices); null where it was not
  asked. ``formula``: their cells as text.
* ``contrastive``, ``necessary``, ``refined``: further sets of the image, null or empty where they were not asked.
* ``nodes``: ``id``, ``cells``, ``ratio``, ``confidence``, ``is_mse``, ``mse`` (number among the MSEs, or null),
  ``hidden_children``, ``unevaluated_children``.
* ``edges``: ``parent``, ``child`` (ids), ``removed`` (a cell), ``drop`` (ratio of the parent - ratio of the child).
* ``roots``: ids of the nodes at which the graph begins.
* ``hidden``: number of cells, as text → evaluated regions of that size below a root that are not drawn.
* ``levels``, ``stopped``, ``truncated``, ``questions``, ``spent``, ``mended``: about the search. ``why``: what ended
  it, in a sentence. ``settings``: its choices.
* ``expand_at``, ``children``, ``merge``: choices of the graph.

Numbers that are not finite are null.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from math import isfinite, nan
from typing import TYPE_CHECKING, Any

import torch

from suffice.draw.words import counted, grouped, percent, printable
from suffice.errors import OptionError
from suffice.evidence.graph.words import about_mse
from suffice.evidence.settings import Settings
from suffice.perturb.regions import Grid

if TYPE_CHECKING:
    import networkx

    from suffice.evidence.graph.graph import Graph
    from suffice.evidence.result import MSE

FORMAT = "suffice.graph/3"
_IMAGE = ("name", "index", "image_id", "label", "target", "confidence", "baseline_confidence")
_SEARCH = ("levels", "stopped", "truncated", "questions", "spent", "mended")
_GRAPH = ("roots", "hidden", "expand_at", "children", "merge")
_NUMBERS = ("ratio", "confidence", "drop", "baseline_confidence")  # null is not-a-number here, and None elsewhere


def to_json(graph: Graph) -> str:
    """The graph as JSON, keys in a fixed order."""
    evidence = graph.evidence
    record: dict[str, Any] = {
        "format": FORMAT,
        **{name: getattr(evidence, name) for name in _IMAGE},
        "grid": evidence.grid.side,
        "mses": [asdict(mse) for mse in evidence.mses],
        "formula": evidence.formula(),
        "contrastive": None if evidence.contrastive is None else [asdict(mse) for mse in evidence.contrastive],
        "necessary": evidence.necessary,
        "refined": {side: [asdict(mse) for mse in mses] for side, mses in evidence.refined.items()},
        "nodes": [asdict(node) | {"is_mse": node.is_mse} for node in graph.nodes],
        "edges": [asdict(edge) for edge in graph.edges],
        **{name: getattr(graph, name) for name in _GRAPH},
        **{name: getattr(evidence, name) for name in _SEARCH},
        "why": evidence.why,
        "settings": evidence.settings.to_dict(),
    }
    return json.dumps(_finite(record), allow_nan=False, indent=1)


def from_json(text: str) -> Graph:
    """The graph that :func:`to_json` wrote; its evidence has the regions of the nodes alone, and no picture."""
    from suffice.evidence.graph.graph import Edge, Graph, Node
    from suffice.evidence.result import Evidence

    record = json.loads(text)
    seen = record.get("format") if isinstance(record, dict) else None
    if seen != FORMAT:
        raise OptionError(
            f"This is not a graph: its format is {seen!r}; expected {FORMAT!r}, as Graph.to_json() writes."
        )
    nodes = tuple(Node(**_restored(node, but="is_mse")) for node in record["nodes"])
    grid = Grid(record["grid"])
    evidence = Evidence(
        **_restored({name: record[name] for name in (*_IMAGE, *_SEARCH)}),
        grid=grid,
        mses=_mses(record["mses"]),
        contrastive=None if record["contrastive"] is None else _mses(record["contrastive"]),
        necessary=None if record["necessary"] is None else tuple(map(tuple, record["necessary"])),
        refined={int(side): _mses(mses) for side, mses in record["refined"].items()},
        regions=grid.from_cells(node.cells for node in nodes),
        ratios=torch.tensor([node.ratio for node in nodes]),
        settings=Settings(**record["settings"] | {"refine": tuple(record["settings"]["refine"])}),
    )
    edges = tuple(Edge(**_restored(edge)) for edge in record["edges"])
    hidden = {int(size): count for size, count in record["hidden"].items()}
    choices = {name: record[name] for name in ("expand_at", "children", "merge")}
    return Graph(evidence, nodes, edges, tuple(record["roots"]), hidden, **choices)


def to_dot(graph: Graph) -> str:
    """The graph in the language of Graphviz: cells as text, one row a size.

    MSEs have a double frame, dashed where no more is known than that no single cell can go, and as tooltip what else
    is known of them.
    """
    title = _quoted(graph.title, graph.evidence.formula())
    lines = [
        "digraph evidence {",
        f"  graph [rankdir=TB, labelloc=t, fontname=Helvetica, label={title}];",
        '  node [shape=box, style="rounded,filled", fillcolor=white, fontname=Helvetica, fontsize=11];',
        "  edge [color=gray45, fontcolor=gray35, fontname=Helvetica, fontsize=9];",
    ]
    for node in graph.nodes:
        cells = " ".join(f"P{cell}" for cell in node.cells) or "∅"
        label = _quoted(cells, percent(node.ratio), *_more(node.hidden_children))
        frame = ""
        if node.mse is not None:
            mse = graph.evidence.mses[node.mse]
            style = "" if mse.certified else ', style="rounded,filled,dashed"'
            frame = f", peripheries=2{style}, tooltip={_quoted(about_mse(mse, node.mse))}"
        lines.append(f"  n{node.id} [label={label}{frame}];")
    lines += [
        f"  n{e.parent} -> n{e.child} [label={_quoted(f'−P{e.removed}')}, penwidth={e.strength + 1}];"
        for e in graph.edges
    ]
    # A chain of labels keeps the sizes in order also where no edge joins them.
    rows = graph.by_size
    for size, members in rows.items():
        label = _quoted(counted(size, "cell"), *_more(graph.hidden.get(size, 0)))
        lines.append(f"  level{size} [shape=plaintext, style=solid, label={label}];")
        lines.append(f"  {{rank=same; level{size}; " + " ".join(f"n{member};" for member in members) + "}")
    if len(rows) > 1:
        lines.append("  " + " -> ".join(f"level{size}" for size in rows) + " [style=invis];")
    return "\n".join([*lines, "}", ""])


def to_networkx(graph: Graph) -> networkx.DiGraph:
    """The graph as a ``networkx.DiGraph`` with the attributes of nodes and edges; MSEs have all of theirs."""
    import networkx

    made = networkx.DiGraph(name=graph.title)
    for node in graph.nodes:
        mse = {} if node.mse is None else asdict(graph.evidence.mses[node.mse])
        made.add_node(node.id, **mse | asdict(node))
    made.add_edges_from((e.parent, e.child, {"removed": e.removed, "drop": e.drop}) for e in graph.edges)
    return made


def _more(count: int) -> list[str]:
    return [f"+{grouped(count)} more"] if count else []


def _quoted(*lines: str) -> str:
    """A quoted string of Graphviz, one line for each text."""
    escaped = (printable(line).replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") for line in lines)
    return '"' + "\\n".join(escaped) + '"'


def _finite(value: Any) -> Any:
    """A nested value with None for every number that is not finite."""
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _restored(record: dict[str, Any], but: str = "") -> dict[str, Any]:
    """Numbers and cells as they were before they became JSON."""
    numbers = {k: nan if v is None and k in _NUMBERS else v for k, v in record.items() if k != but}
    return numbers | ({"cells": tuple(record["cells"])} if "cells" in record else {})


def _mses(records: list[dict[str, Any]]) -> tuple[MSE, ...]:
    from suffice.evidence.result import MSE

    unders = [
        mse["under"] and {change: nan if r is None else r for change, r in mse["under"].items()} for mse in records
    ]
    return tuple(MSE(**_restored(mse) | {"under": under}) for mse, under in zip(records, unders, strict=True))
