"""Tables about methods: which is truest, and whether models agree."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from suffice.report.figures import queries
from suffice.report.figures.reading import good_rows
from suffice.report.page.comparing import Comparison, Pair
from suffice.report.page.content import Cell, Column, Finding, Source, Table, lettered
from suffice.report.page.findings import evidence, sentence
from suffice.report.page.models import model_cell
from suffice.report.page.quantities import MethodScores, direction
from suffice.report.page.sources import TEST, source_of
from suffice.report.page.wording import NONE, counted, listed, percent, short

if TYPE_CHECKING:
    from suffice.study import Study


def method_table(
    study: Study, scores: MethodScores, comparisons: dict[str, Comparison], *, named: bool = False
) -> Table:
    """Methods × metrics, means over models and images; where methods fit other models, how many, and no best one."""
    rows, keys = [], []
    models = scores.models_of_methods()
    alike = len(set(models.values())) == 1
    shown = {metric: [_mean(own) for own in scores.values[metric]] for metric in scores.metrics}
    best = {
        metric: short(shown[metric][scores.methods.index(c.order[0])])  # what reads the same is marked alike
        for metric, c in comparisons.items()
        if alike and c.order and c.quantity.higher_is_better is not None
    }
    for number, method in enumerate(scores.methods):
        count = len(models[method])
        cells = [Cell(method)] if alike else [Cell(method), Cell(str(count), float(count))]
        for metric in scores.metrics:
            mean = shown[metric][number]
            letters = comparisons[metric].letters.get(method, "")
            cells.append(Cell(short(mean), _known(mean), letters=letters, best=short(mean) == best.get(metric)))
        rows.append(cells)
        keys.append({"method": method})
    columns = [Column("Method")]
    if not alike:
        query = queries.select(study, scores.table, "count(DISTINCT model)", where="method = '{method}'")
        columns.append(Column("Models", "number", query=query))
    for metric in scores.metrics:
        query = queries.select(study, scores.table, queries.judged(metric), where="method = '{method}'")
        columns.append(Column(arrow(metric), "number", query=query))
    means = ", ".join(f"{queries.judged(metric)} AS {queries.name(metric)}" for metric in scores.metrics)
    query = queries.select(study, scores.table, f"method, {means}", "GROUP BY method")
    return Table(
        f"methods-{scores.table}",
        f"Methods by {listed(scores.metrics, 6)}{f' ({scores.table})' if named else ''}",
        columns,
        rows,
        keys,
        f"Means over {counted(len(scores.models), 'model')} and their images, protocol {scores.protocol!r}. Arrows "
        f"point to better{'; the best of each column is bold' if alike else ''}. "
        + ("" if alike else "Means over other models cannot be compared; letters can, and are about those in common. ")
        + ("Methods that share a letter do not differ significantly, image by image." if lettered(rows) else ""),
        source_of(study, scores.table, query, letters=f"{TEST}; an image’s value is the mean over models"),
    )


def model_method_table(study: Study, scores: MethodScores) -> Table:
    """Every model and method on its own."""
    rows, keys = [], []
    for place, model in enumerate(scores.models):
        for number, method in enumerate(scores.methods):
            cells = [model_cell(study, model), Cell(method)]
            for metric in scores.metrics:
                own = scores.values[metric][number, place]
                own = own[np.isfinite(own)]
                if not len(own):
                    cells.append(Cell(NONE))
                    continue
                error = f"± {short(float(own.std(ddof=1) / len(own) ** 0.5), 2)}" if len(own) > 1 else ""
                cells.append(Cell(short(float(own.mean())), float(own.mean()), error))
            if all(cell.text == NONE for cell in cells[2:]):  # it does not fit the model
                continue
            rows.append(cells)
            keys.append({"model": model, "method": method})
    columns = [Column("Model"), Column("Method")]
    for metric in scores.metrics:
        query = queries.select(
            study, scores.table, queries.judged(metric), where="model = '{model}' AND method = '{method}'"
        )
        columns.append(Column(arrow(metric), "number", query=query))
    means = ", ".join(f"{queries.judged(metric)} AS {queries.name(metric)}" for metric in scores.metrics)
    query = queries.select(study, scores.table, f"model, method, {means}", "GROUP BY model, method")
    return Table(
        f"models-methods-{scores.table}", "The same, model by model", columns, rows, keys,
        "Mean ± standard error over images.", source_of(study, scores.table, query),
    )  # fmt: skip


def method_findings(
    study: Study, scores: MethodScores, comparisons: dict[str, Comparison], *, named: bool = False
) -> tuple[list[Finding], list[str]]:
    """What may be said of methods: the best where it is clear; and what cannot be told, or is no better than chance.

    First places are those among the methods that fit the same models, and of such groups in the largest. With
    ``named``, every sentence says of which table it is.
    """
    said: list[Finding] = []
    first: list[str] = []
    chance: dict[str, dict[str, list[str]]] = {control: {} for control in scores.controls}  # by metric
    where = f"In {scores.table}: " if named else ""
    for metric, c in comparisons.items():
        if c.quantity.higher_is_better is None or len(c.order) < 2:
            continue
        real = _alike(scores, c.order)
        pair = c.pair(real[0], real[1]) if len(real) > 1 else None
        if pair is not None and pair.clear:
            size = c.size(pair)
            text = f"{sentence(c, pair, size)[:-1].partition(': the ')[0]}, the next best of {len(real)} methods."
            said.append(Finding(where + text, evidence(c, pair, size), "truest", _source(study, scores, metric, pair)))
        elif pair is not None:
            first.append(f"by {metric}, {listed(first_place(c, real))}")
        for control in scores.controls:
            others = (name for name in c.order if name not in scores.controls)
            chance[control][metric] = [name for name in others if not _better(c, name, control)]
    untold = [f"Methods that cannot be told apart for the first place: {'; '.join(first)}."] if first else []
    for control, names in chance.items():
        each = "; ".join(f"by {metric}, {listed(them, 5)}" for metric, them in names.items() if them)
        untold += [f"Not clearly better than {control} maps, which do not look at the model: {each}."] if each else []
    return said, [where + text for text in untold]


def _alike(scores: MethodScores, order: list[str]) -> list[str]:
    """The methods, but controls, that fit the same models, best first: the largest such group."""
    models = scores.models_of_methods()
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in (name for name in order if name not in scores.controls):
        groups.setdefault(models[name], []).append(name)
    return max(groups.values(), key=len, default=[])


def _better(c: Comparison, name: str, control: str) -> bool:
    """Whether a method is clearly better than another, on the images and models that both have."""
    pair = c.pair(name, control)
    if pair is None or not pair.clear:
        return False
    own, other = c.values(name, control)
    return bool((own.mean() > other.mean()) == c.quantity.higher_is_better)


def first_place(c: Comparison, real: list[str]) -> list[str]:
    """The first of some methods, and those that do not differ from it."""
    pairs = {name: c.pair(real[0], name) for name in real[1:]}
    return [real[0], *(name for name, pair in pairs.items() if pair is None or not pair.clear)]


def _source(study: Study, scores: MethodScores, metric: str, pair: Pair) -> Source:
    models = scores.shared(metric, pair.first, pair.second)
    named = ", ".join(map(queries.text, models))
    first, second = (f"method = {queries.text(one)} AND model IN ({named})" for one in (pair.first, pair.second))
    members = (len(models), len(models))
    query = queries.difference(study, scores.table, queries.known(metric), first, second, members=members)
    return source_of(study, scores.table, query, test=f"{TEST}; an image’s value is the mean over models")


def arrow(metric: str) -> str:
    """A metric with an arrow to better.

    Example:
        >>> arrow("insertion"), arrow("deletion"), arrow("sparseness")
        ('insertion ↑', 'deletion ↓', 'sparseness')
    """
    return metric + {True: " ↑", False: " ↓", None: ""}[direction(metric)]


def agreement_table(study: Study, said: str, searched: str | None) -> Table:
    """Every two models: how often they give the same answer, and find the same sets enough."""
    answers = _answers(study, said)
    sets = _mses(study, searched) if searched is not None else {}
    cells, keys = [], []
    for one, other in combinations(answers, 2):
        shared = (answers[one] >= 0) & (answers[other] >= 0)
        same = float((answers[one] == answers[other])[shared].mean()) if shared.any() else float("nan")
        row = [model_cell(study, one), model_cell(study, other), Cell(percent(same, 1), _known(same))]
        if searched is not None:
            both = _overlap(sets.get(one, NOTHING), sets.get(other, NOTHING))
            row.append(Cell(percent(both, 1), _known(both)))
        cells.append(row)
        keys.append({"one": one, "other": other})
    from_said = queries.inside(
        queries.select(study, said, 'model, "index", label', where="model IN ('{one}', '{other}')")
    )
    query = (
        f"WITH said AS (\n{from_said}\n)\nSELECT avg((a.label = b.label)::INT) AS same\n"
        "FROM said a JOIN said b USING (\"index\") WHERE a.model = '{one}' AND b.model = '{other}';"
    )
    columns = [Column("One"), Column("Other"), Column("Same answer", "number", query=query)]
    if searched is not None:
        found = queries.inside(queries.select(study, searched, 'DISTINCT model, "index", unnest(mse_cells) AS cells'))
        shared_query = (
            f"WITH found AS (\n{found}\n), shared AS (\n"
            'SELECT count(*) AS n FROM found a JOIN found b USING ("index", cells)\n'
            "WHERE a.model = '{one}' AND b.model = '{other}'\n)\n"
            "SELECT any_value(n) / (count(*) - any_value(n)) AS same_sets\nFROM found, shared "
            "WHERE model IN ('{one}', '{other}');"
        )
        hint = "MSEs that both found, of those that either did"
        columns.append(Column("Same MSEs", "number", hint, shared_query))
    reading = "How often two models name the same class"
    reading += ", and of the sets of cells that either finds enough, the share that both find." if searched else "."
    return Table(
        "agreement", "Every two models", columns, cells, keys, reading,
        source_of(study, said, _every_two(study, said, searched)),
    )  # fmt: skip


def _every_two(study: Study, said: str, searched: str | None) -> str:
    """The query of the whole table."""
    answers = queries.inside(queries.select(study, said, 'model, "index", label'))
    parts, sets, joined = [f"said AS (\n{answers}\n)"], "", ""
    if searched is not None:
        found = queries.inside(queries.select(study, searched, 'DISTINCT model, "index", unnest(mse_cells) AS cells'))
        parts += [
            f"found AS (\n{found}\n)",
            "counts AS (\nSELECT model, count(*) AS sets FROM found GROUP BY model\n)",
            "shared AS (\nSELECT a.model AS one, b.model AS other, count(*) AS n\n"
            'FROM found a JOIN found b USING ("index", cells) WHERE a.model < b.model GROUP BY a.model, b.model\n)',
        ]
        sets = ",\n       any_value(coalesce(n, 0) / (x.sets + y.sets - coalesce(n, 0))) AS same_sets"
        joined = (
            "LEFT JOIN shared ON shared.one = a.model AND shared.other = b.model\n"
            "LEFT JOIN counts x ON x.model = a.model LEFT JOIN counts y ON y.model = b.model\n"
        )
    return (
        f"WITH {', '.join(parts)}\n"
        f"SELECT a.model AS one, b.model AS other, avg((a.label = b.label)::INT) AS same{sets}\n"
        f'FROM said a JOIN said b USING ("index")\n{joined}WHERE a.model < b.model\nGROUP BY a.model, b.model;'
    )


NOTHING = np.zeros(0, dtype=np.int64)


def _answers(study: Study, said: str) -> dict[str, np.ndarray]:
    """The number of the class that each model names, of each image; -1 where there is none. Models share numbers."""
    rows = good_rows(study, said, ["index", "label"])
    numbers: dict[str, int] = {}
    found: dict[str, np.ndarray] = {}
    for model, index, label in zip(*(rows[name].to_pylist() for name in ("model", "index", "label")), strict=True):
        own = found.setdefault(model, np.full(len(study.plan.names), -1))
        own[index] = numbers.setdefault(label, len(numbers))
    return found


def _mses(study: Study, searched: str) -> dict[str, np.ndarray]:
    """Numbers of the sets that are enough, of each model; the same set of the same image has the same number."""
    rows = good_rows(study, searched, ["index", "mse_cells"])
    numbers: dict[tuple[int, ...], int] = {}
    found: dict[str, set[int]] = defaultdict(set)
    for model, index, sets in zip(*(rows[name].to_pylist() for name in ("model", "index", "mse_cells")), strict=True):
        found[model].update(numbers.setdefault((index, *cells), len(numbers)) for cells in sets)
    return {model: np.fromiter(sorted(own), np.int64) for model, own in found.items()}


def _overlap(one: np.ndarray, other: np.ndarray) -> float:
    shared = len(np.intersect1d(one, other, assume_unique=True))
    either = len(one) + len(other) - shared
    return shared / either if either else float("nan")


def _mean(values: np.ndarray) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None
