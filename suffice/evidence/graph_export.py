"""Structured attention graphs as JSON and for Graphviz.

Keys of the JSON, which do not change without a new number in ``format``:

* ``format``: ``"suffice.graph/1"``.
* ``name``, ``label``, ``target``, ``confidence``, ``baseline_confidence``: the image and the class.
* ``grid``: cells a side. Cells are counted row by row from 0.
* ``formula``: all MSEs of the image as text. ``mses_found``: their number.
* ``nodes``: ``id``, ``cells``, ``ratio``, ``confidence``, ``is_mse``, ``mse`` (place among the MSEs, or null),
  ``hidden_children``, ``unevaluated_children``.
* ``edges``: ``parent``, ``child`` (ids), ``removed`` (a cell), ``drop`` (ratio of the parent - ratio of the child).
* ``roots``: ids of the nodes at which the graph begins.
* ``hidden``: number of cells, as text → evaluated regions of that size below a root that are not drawn.
* ``stopped``, ``searched``, ``truncated``, ``questions``: about the search.
* ``settings``: choices of the search and of the drawing.

Numbers that are not finite are null.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from math import isfinite, nan
from typing import Any

from suffice.errors import OptionError
from suffice.evidence.graph import Edge, Graph, Node
from suffice.evidence.graph_text import cell_count, grouped, percent, printable, strength
from suffice.perturb.regions import Grid

FORMAT = "suffice.graph/1"


def to_json(graph: Graph) -> str:
    """The graph as JSON, keys in a fixed order.

    Example:
        >>> from suffice.evidence.graph_export import from_json, to_json
        >>> graph = Graph("a.png", "cat", 0, 0.9, 0.1, Grid(2), "⊤", (Node(0, (), 1.0, 0.9, mse=0),), (), (0,), 1, {},
        ...               "nothing needed", 0, False, 1, {"threshold": 0.9})
        >>> from_json(to_json(graph)) == graph
        True
    """
    record: dict[str, Any] = {"format": FORMAT}
    record |= {field.name: getattr(graph, field.name) for field in fields(graph)}
    record["grid"] = graph.grid.side
    record["nodes"] = [
        {
            "id": node.id,
            "cells": node.cells,
            "ratio": _finite(node.ratio),
            "confidence": _finite(node.confidence),
            "is_mse": node.is_mse,
            "mse": node.mse,
            "hidden_children": node.hidden_children,
            "unevaluated_children": node.unevaluated_children,
        }
        for node in graph.nodes
    ]
    record["edges"] = [asdict(edge) | {"drop": _finite(edge.drop)} for edge in graph.edges]
    for name in ("confidence", "baseline_confidence"):
        record[name] = _finite(record[name])
    return json.dumps(record, allow_nan=False, indent=1)


def from_json(text: str) -> Graph:
    """The graph that :func:`to_json` wrote; null becomes not-a-number again.

    Raises:
        OptionError: The text is something else.
    """
    record = json.loads(text)
    seen = record.pop("format", None) if isinstance(record, dict) else None
    if seen != FORMAT:
        raise OptionError(
            f"This is not a graph: its format is {seen!r}; expected {FORMAT!r}, as Graph.to_json() writes."
        )
    nodes = []
    for node in record["nodes"]:
        del node["is_mse"]
        numbers = {name: _number(node[name]) for name in ("ratio", "confidence")}
        nodes.append(Node(**node | numbers | {"cells": tuple(node["cells"])}))
    return Graph(
        **record
        | {
            "confidence": _number(record["confidence"]),
            "baseline_confidence": _number(record["baseline_confidence"]),
            "grid": Grid(record["grid"]),
            "nodes": tuple(nodes),
            "edges": tuple(Edge(**edge | {"drop": _number(edge["drop"])}) for edge in record["edges"]),
            "roots": tuple(record["roots"]),
            "hidden": {int(size): count for size, count in record["hidden"].items()},
        }
    )


def to_dot(graph: Graph) -> str:
    """The graph in the language of Graphviz: cells as text, one row a level, MSEs with a double frame."""
    lines = [
        "digraph evidence {",
        f"  graph [rankdir=TB, labelloc=t, fontname=Helvetica, label={_quoted(graph.title, graph.formula)}];",
        '  node [shape=box, style="rounded,filled", fillcolor=white, fontname=Helvetica, fontsize=11];',
        "  edge [color=gray45, fontcolor=gray35, fontname=Helvetica, fontsize=9];",
    ]
    for node in graph.nodes:
        more = [f"+{grouped(node.hidden_children)} more"] if node.hidden_children else []
        label = _quoted(" ".join(f"P{cell}" for cell in node.cells) or "∅", percent(node.ratio), *more)
        frame = ", peripheries=2" if node.is_mse else ""
        lines.append(f"  n{node.id} [label={label}{frame}];")
    lines += [
        f"  n{edge.parent} -> n{edge.child} [label={_quoted(f'−P{edge.removed}')}, penwidth={strength(edge.drop) + 1}];"
        for edge in graph.edges
    ]
    # A chain of labels keeps the levels in order also where no edge joins them.
    levels = graph.levels
    for size, members in levels.items():
        more = [f"+{grouped(graph.hidden[size])} more"] if graph.hidden.get(size) else []
        lines.append(f"  level{size} [shape=plaintext, style=solid, label={_quoted(cell_count(size), *more)}];")
        lines.append(f"  {{rank=same; level{size}; " + " ".join(f"n{member};" for member in members) + "}")
    if len(levels) > 1:
        lines.append("  " + " -> ".join(f"level{size}" for size in levels) + " [style=invis];")
    return "\n".join([*lines, "}", ""])


def _quoted(*lines: str) -> str:
    """A quoted string of Graphviz, one line for each text."""
    escaped = (printable(line).replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") for line in lines)
    return '"' + "\\n".join(escaped) + '"'


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _number(value: float | None) -> float:
    return nan if value is None else value
