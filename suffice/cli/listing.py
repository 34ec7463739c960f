"""``suffice models`` and ``suffice methods``: what can be loaded, and how it can be explained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from suffice.cli import options as opt
from suffice.cli import output
from suffice.cli.groups import ModelOptions
from suffice.cli.messages import for_command

if TYPE_CHECKING:
    from suffice.vision.models import ModelEntry

MODELS_EXAMPLES = output.examples(
    "suffice models[/green]  (the sources)[green]",
    'suffice models "timm/*deit*"',
    'suffice models "torchvision/*" --json',
)
METHODS_EXAMPLES = output.examples("suffice methods", "suffice methods --model timm/swin_tiny_patch4_window7_224")


def models(
    pattern: Annotated[
        str | None, typer.Argument(help="Shell-style pattern, such as 'timm/*swin*'; without one, list sources.")
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """List the models that can be loaded, and their families."""
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
    else:
        _print_models(found)
    if not found and pattern:
        output.note(f"No model matches {pattern!r}. Patterns match the whole name; try '*{pattern.strip('*')}*'.")
        raise typer.Exit(1)


def _print_models(found: list[ModelEntry]) -> None:
    facts = list(dict.fromkeys(key for m in found for key, _ in m.facts))
    rows = [
        (m.name, m.family or "–", "yes" if m.pretrained else "no", *(dict(m.facts).get(key, "") for key in facts))
        for m in found
    ]
    right = range(3, 3 + len(facts))
    output.print_table(f"{len(found)} models", ("name", "family", "weights", *facts), rows, right=right)


def methods(
    model: Annotated[str | None, typer.Option("--model", "-m", help="Also say which methods fit this model.")] = None,
    as_json: opt.AsJson = False,
) -> None:
    """List attribution methods: what they show, what they need from a model, and their options."""
    from suffice.attribution import all_methods
    from suffice.vision.own import is_own

    # Weights do not matter, but a model of one's own comes with its.
    net = None
    if model is not None:
        asked = ModelOptions(model, random_weights=not is_own(model), device="cpu")
        with asked.in_force():
            net = asked.load()
    known = all_methods().values()
    reasons = {} if net is None else {m.name: m.incompatibility(net) for m in known}
    # Methods get their options by --option in all commands that run them.
    misfits = {name: reason and for_command(reason, ["--option"]) for name, reason in reasons.items()}
    if as_json:
        listed = [
            {
                "name": m.name, "about": m.about, "needs": m.needs, "options": dict(m.options), "aliases": m.aliases,
                "reference": m.reference, **({} if net is None else {"incompatibility": misfits[m.name]}),
            }
            for m in known
        ]  # fmt: skip
        output.print_json(listed)
        return
    columns = ["method", *(["fits"] if misfits else []), "what it shows", "needs", "options"]
    rows = []
    for m in known:
        fits = [f"no: {misfits[m.name]}" if misfits[m.name] else "yes"] if misfits else []
        options = ", ".join(f"{name}={value}" for name, value in m.options.items())
        rows.append([m.name, *fits, m.about, ", ".join(m.needs) or "nothing", options])
    output.print_table("", columns, rows)
