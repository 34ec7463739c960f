"""Tables that fit their page: models stand above their rows, and errors below their means where columns are many."""

from __future__ import annotations

from docutils import nodes

MANY, VERY_MANY = 7, 10  # columns
FIXED, BREAK = "\u00a0", "\u200b"  # a space at which no line ends, and a place where one may


def setup(app) -> dict[str, bool]:
    app.connect("doctree-read", lambda _app, tree: [fit(table) for table in tree.findall(nodes.table)])
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def fit(table: nodes.table) -> None:
    group = next(table.findall(nodes.tgroup))
    if [entry.astext() for entry in _rows(group, nodes.thead)[0]][:2] == ["model", "method"]:
        put_models_above(group)
    many = group["cols"] > MANY
    table["classes"] += ["small"] * (group["cols"] > VERY_MANY)
    for entry in table.findall(nodes.entry):
        for text in list(entry.findall(nodes.Text)):
            changed = text.replace(" ± ", f" ±{FIXED}" if many else f"{FIXED}±{FIXED}")
            if many and isinstance(entry.parent.parent, nodes.thead):
                changed = changed.replace("/", f"/{BREAK}")
            text.parent.replace(text, nodes.Text(changed))


def put_models_above(group: nodes.tgroup) -> None:
    """Instead of a column that says the same in row after row, one row across the table for each model."""
    group.remove(next(group.findall(nodes.colspec)))
    group["cols"] -= 1
    for row in _rows(group, nodes.thead):
        row.remove(row[0])
    model = None
    for row in _rows(group, nodes.tbody):
        name = row[0]
        row.remove(name)
        if name.astext() != model:
            model = name.astext()
            name["morecols"] = group["cols"] - 1
            name["classes"] += ["model"]
            row.parent.insert(row.parent.index(row), nodes.row("", name))


def _rows(group: nodes.tgroup, part: type[nodes.Element]) -> list[nodes.row]:
    return [row for found in group.findall(part) for row in found.findall(nodes.row)]
