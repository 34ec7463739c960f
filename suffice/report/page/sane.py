"""Whether explanations are sane: how similar maps stay once weights are random, and what may be said of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from suffice.metrics.sanity.report import JUDGED, LIMIT, RULE, SUBJECT, Check, SanityRow, Verdict, verdict_of
from suffice.report.figures import queries
from suffice.report.figures.reading import good_rows
from suffice.report.page.content import Cell, Column, Finding, Source, Table
from suffice.report.page.models import model_cell
from suffice.report.page.sources import source_of
from suffice.report.page.wording import counted, listed

if TYPE_CHECKING:
    from suffice.study import Study

SIMILARITIES = {"spearman": "Spearman", "absolute": "of magnitudes", "ssim": "SSIM"}
_WHEN = {
    "cascading": " once all layers are random",
    "independent": " of the one layer that matters least",
    "data": ", of those of the network that learned permuted labels",
}
_RANDOM = {
    "cascading": "with all of them random",
    "independent": "with one layer random at a time",
    "data": "with those permuted in training",
}
_TITLES = {
    "cascading": "How similar maps stay to those of the trained model",
    "independent": "How similar maps stay to those of the trained model, one layer random at a time",
    "data": "How similar maps are to those of the same network trained on permuted labels",
}
Trace = Callable[["Sequence[Checked]"], Source]


@dataclass(frozen=True, eq=False)
class Checked:
    """A method on a model: what a sanity check found.

    Attributes:
        model: Its label.
        check: ``"cascading"``, ``"independent"`` or ``"data"``.
        steps: What was randomized at each step; at the first, nothing.
        row: Similarities, [draws, steps, images] each, and the method.
        table: Of the study, that it is from.
    """

    model: str
    check: Check
    steps: tuple[str, ...]
    row: SanityRow
    table: str = ""

    @property
    def verdict(self) -> Verdict:
        """As :func:`suffice.sanity_check` gives it; unclear for a single image and draw, which have no error."""
        draws, _, images = self.row.values["spearman"].shape
        return Verdict(None, "unclear") if draws * images < 2 else verdict_of(self.row, self.check, self.steps)

    def left(self, similarity: str) -> tuple[float, float]:
        """Mean similarity and its standard error once all is random; or of the layer alone that matters least."""
        means, errors = self.row.means(similarity), self.row.standard_errors(similarity)
        place = 1 + int(means[1:].argmax()) if self.check == "independent" else -1
        return float(means[place]), float(errors[place])

    @property
    def correlation(self) -> tuple[float, float]:
        """The rank correlation that decides: the larger one of values and of magnitudes, with its standard error."""
        return max(self.left(similarity) for similarity in JUDGED)


def sanity_rows(study: Study, table: str) -> tuple[list[Checked], list[str]]:
    """What a table of a study has of each model and method; and lines about those of which parts are missing."""
    check = study.plan.asked.measure[study.plan.asked.named(table)[0]].get("check", "cascading")
    rows = good_rows(study, table, ["index", "method", "draw", "step", "layer", *SIMILARITIES])
    of: dict[tuple[str, str], list[dict[str, object]]] = {}
    for row in rows.sort_by([(name, "ascending") for name in ("draw", "step", "index")]).to_pylist():
        of.setdefault((row["model"], row["method"]), []).append(row)
    found, missing = [], []
    for (model, method), own in of.items():
        shape = [len({row[name] for row in own}) for name in ("draw", "step", "index")]
        if len(own) != np.prod(shape):
            missing.append(f"Sanity of {method} on {model}: some steps of some images are missing.")
            continue
        values = {
            name: torch.tensor([row[name] for row in own], dtype=torch.float64).view(*shape) for name in SIMILARITIES
        }
        steps = tuple(str(row["layer"]) for row in own[: shape[1] * shape[2] : shape[2]])
        row = SanityRow(method, values, {}, torch.zeros(shape[1]), torch.zeros(shape[1], 1, 1))
        found.append(Checked(model, check, steps, row, table))
    return found, missing


def sanity_table(study: Study, checked: Sequence[Checked]) -> Table:
    """How similar maps are to those of the trained model once weights are random, and the verdict; of one check."""
    check = checked[0].check
    tables = list(dict.fromkeys(one.table for one in checked))
    rows = [
        [
            model_cell(study, one.model),
            Cell(one.row.method),
            *([] if check == "data" else [Cell(f"{len(one.steps) - 1}", float(len(one.steps) - 1))]),
            *(_cell(*one.left(name)) for name in SIMILARITIES),
            Cell(one.verdict.text),
        ]
        for one in checked
    ]
    own = "model = '{model}' AND method = '{method}'"
    layers = queries.select(study, tables, "max(step) AS layers", where=own)
    columns = [Column("Model"), Column("Method")]
    if check != "data":
        columns.append(Column("Layers", "number", "Randomized, one after the other", layers))
    for name, title in SIMILARITIES.items():
        steps = queries.select(study, tables, f"step, avg({name}) AS mean", "GROUP BY step", f"step > 0 AND {own}")
        what = "max(mean)" if check == "independent" else "arg_max(mean, step)"
        query = f"SELECT {what} AS mean FROM (\n{queries.inside(steps)}\n);"
        columns.append(Column(title, "number", "Mean ± standard error", query))
    reading = (
        f"Similarity to the maps of the trained model{_WHEN[check]}: rank correlation of values and of magnitudes, and "
        f"structural similarity. {RULE.removeprefix('Rule: ')[:1].upper()}{RULE.removeprefix('Rule: ')[1:]}"
    )
    keys = [{"model": one.model, "method": one.row.method} for one in checked]
    source = sanity_source(study, checked)
    return Table(f"sanity-{check}", _TITLES[check], [*columns, Column("Verdict", "wide")], rows, keys, reading, source)


def sanity_source(study: Study, checked: Sequence[Checked]) -> Source:
    """Where the numbers of some methods on some models come from."""
    tables, models, methods = (
        list(dict.fromkeys(names))
        for names in zip(*((one.table, one.model, one.row.method) for one in checked), strict=True)
    )
    means = ", ".join(f"avg({name}) AS {name}" for name in SIMILARITIES)
    what = f"model, method, step, any_value(layer) AS layer, {means}"
    where = " AND ".join(
        f"{column} IN ({', '.join(map(queries.text, names))})"
        for column, names in (("model", models), ("method", methods))
    )
    query = queries.select(study, tables, what, "GROUP BY model, method, step\nORDER BY model, method, step", where)
    source = source_of(study, tables[0], query, verdicts="suffice.metrics.sanity.SanityReport.verdict")
    return replace(source, facts={**source.facts, "measurement": f"{listed(tables, 9)} (sanity)"})


def sanity_findings(checked: Sequence[Checked], trace: Trace | None = None) -> tuple[list[Finding], list[str]]:
    """What the rule of verdicts allows to be said of maps, and of which it gives none.

    Methods of which the same is true for the same models share a sentence.
    """
    by_method: dict[tuple[str, str], list[Checked]] = {}
    for one in checked:
        by_method.setdefault((one.row.method, one.verdict.text), []).append(one)
    alike: dict[tuple[str, tuple[str, ...]], list[Checked]] = {}
    for (_, text), some in by_method.items():
        alike.setdefault((text, tuple(one.model for one in some)), []).extend(some)
    said, untold = [], []
    for (text, models), some in alike.items():
        methods = list(dict.fromkeys(one.row.method for one in some))
        if some[0].verdict.depends is None:
            untold.append(_unclear(some, methods, models))
            continue
        draws, _, images = some[0].row.values["spearman"].shape
        over = f"over {counted(images, 'image')}"
        if some[0].check != "data":
            over += f" and {counted(draws, 'draw')} of random weights"
        shown = f"{_extreme(some)[1]} {over}; the rule: two standard errors from {LIMIT}"
        said.append(Finding(_sentence(some, methods, models, text), shown, "sane", trace and trace(some)))
    return said, untold


def _sentence(some: Sequence[Checked], methods: Sequence[str], models: Sequence[str], text: str) -> str:
    plural = text.replace("depends", "depend").replace("does not", "do not")
    alone = some[0].check == "independent"
    when = _RANDOM[some[0].check]
    bound = "" if len(some) == 1 else "at most " if some[0].verdict.depends else "at least "
    if alone:  # the number is that of the layer which matters least
        bound = "at most " if some[0].verdict.depends else "up to "
    (mean, error), _ = _extreme(some)
    return (
        f"Maps by {listed(methods, 9)} {plural} of {listed(models, 9)}: {when}, their rank correlation with those of "
        f"the trained model is {bound}{mean:.2f} ± {error:.2f}."
    )


def _extreme(some: Sequence[Checked]) -> tuple[tuple[float, float], str]:
    """The correlation nearest to the limit, and the method and model that it is of."""
    one = min(some, key=lambda one: abs(one.correlation[0] - LIMIT))
    which = "" if len(some) == 1 else f" ({one.row.method} on {one.model})"
    mean, error = one.correlation
    return (mean, error), f"{mean:.2f} ± {error:.2f}{which}"


def _unclear(some: Sequence[Checked], methods: Sequence[str], models: Sequence[str]) -> str:
    alone = some[0].check == "independent"
    what = f"Whether maps by {listed(methods, 9)} depend on {SUBJECT[some[0].check]} of {listed(models, 9)}"
    draws, _, images = some[0].row.values["spearman"].shape
    if draws * images < 2:
        draw = "" if some[0].check == "data" else " and one draw of random weights"
        return f"{what} cannot be told from one image{draw}."
    if alone:
        return f"{what} is unclear: of some layers, the rank correlation lies within two standard errors of {LIMIT}."
    ends = sorted(one.correlation[0] for one in some)
    span = f"{ends[0]:.2f}" if len(some) == 1 else f"{ends[0]:.2f} to {ends[-1]:.2f}"
    return (
        f"{what} is unclear: the rank correlation of what is left, {span}, lies within two standard errors of {LIMIT}."
    )


def _cell(mean: float, error: float) -> Cell:
    return Cell(f"{mean:.2f}", mean, f"± {error:.2f}" if np.isfinite(error) else "")
