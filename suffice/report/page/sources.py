"""Where numbers come from: measurements with their settings, and SQL over the folder of a study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from suffice.report.page.content import Source

if TYPE_CHECKING:
    from suffice.study import Study

TEST = "Wilcoxon’s signed-rank test over images, two-sided; p-values corrected by Holm’s rule"


def source_of(study: Study, table: str, query: str = "", **more: str) -> Source:
    """Where the numbers of a table come from; further facts by name, underscores for blanks."""
    plan = study.plan
    names = plan.asked.named(table)
    first = plan.measurements[names[0]]
    asked = dict(plan.asked.measure[names[0]])
    protocol = getattr(first, "protocol", "")
    left_out = ("kind", "protocol", *(("maps", "method", "label", "models") if len(names) > 1 else ()))
    settings = {key: value for key, value in asked.items() if key not in left_out}
    facts = {
        "measurement": f"{table} ({first.kind})",
        "protocol": protocol,
        "settings": in_words(settings) or "as by default",
        "run": f"{plan.asked.run.precision}, seed {plan.asked.run.seed}",
        **{name.replace("_", " "): fact for name, fact in more.items()},
    }
    return Source(facts, query)


def in_words(settings: Mapping[str, Any]) -> str:
    """Settings in a row.

    Example:
        >>> in_words({"grid": 7, "metrics": ["insertion", "deletion"], "strict": False})
        'grid = 7, metrics = insertion + deletion, strict = no'
    """
    return ", ".join(f"{key} = {_plain(value)}" for key, value in settings.items() if value is not None)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return " + ".join(_plain(one) for one in value) or "none"
    if isinstance(value, Mapping):
        return "(" + ", ".join(f"{key} {_plain(one)}" for key, one in value.items()) + ")"
    return str(value)
