"""``suffice models``: what can be loaded."""

from __future__ import annotations

from typing import Annotated

import typer

from suffice.cli import output
from suffice.cli.options import AsJson

EXAMPLES = """
Examples:

[green]suffice models[/green]  (the sources)

[green]suffice models "timm/*deit*"[/green]

[green]suffice models "torchvision/*" --json[/green]
"""


def models_command(
    pattern: Annotated[str | None, typer.Argument(help="Shell-style pattern, such as 'timm/*swin*'.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the models that can be loaded, with their family."""
    from suffice.vision.models import model_entries, sources

    if pattern is None and not as_json:
        counts = [(f"{p}/…", len(list(s.entries())), s.about) for p, s in sources().items()]
        output.print_table("Sources of models", ("name", "models", "what"), counts, right=(1,))
        output.note("List them with a pattern, such as: suffice models 'timm/*deit*'")
        return
    found = model_entries(pattern or "*")
    if as_json:
        output.print_json(
            [{"name": m.name, "family": m.family, "pretrained": m.pretrained, **dict(m.facts)} for m in found]
        )
        return
    facts = list(dict.fromkeys(key for m in found for key, _ in m.facts))
    rows = [
        (m.name, m.family or "–", "yes" if m.pretrained else "no", *(dict(m.facts).get(key, "") for key in facts))
        for m in found
    ]
    right = range(3, 3 + len(facts))
    output.print_table(f"{len(found)} models", ("name", "family", "weights", *facts), rows, right=right)
    if not found:
        output.note(f"No model matches {pattern!r}. Patterns match the whole name; try '*{pattern}*'.")
        raise typer.Exit(1)
