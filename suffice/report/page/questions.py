"""The questions of a report: which figures and tables answer each, and what is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from suffice.report.figures import queries
from suffice.report.figures.drawing import Drawing
from suffice.report.figures.reading import families_of, good_rows
from suffice.report.figures.registry import find_figure, list_figures
from suffice.report.page.compared import activation_table, cross_test_tables
from suffice.report.page.comparing import Comparison, Pair
from suffice.report.page.content import Finding, Section, Source, Table
from suffice.report.page.findings import findings_of, untold_of
from suffice.report.page.methods import (
    agreement_table,
    method_findings,
    method_table,
    model_method_table,
)
from suffice.report.page.models import Deciding, enough_table, ways_table
from suffice.report.page.quantities import (
    Columns,
    MethodScores,
    compare_evidence,
    compare_predictions,
    evidence_columns,
    of_families,
)
from suffice.report.page.sane import Checked, sanity_findings, sanity_rows, sanity_source, sanity_table
from suffice.report.page.sources import TEST, source_of
from suffice.report.page.wording import counted
from suffice.study.reading import finished_shards, read_shard

if TYPE_CHECKING:
    from suffice.study import Study

QUESTIONS = {
    "enough": (
        "How much is enough?",
        "How small a part of the image keeps a model’s answer, when all the rest is hidden.",
    ),
    "ways": (
        "How many ways to decide, and how gently does it fall?",
        "A model that is satisfied by any of many small sets decides like an OR of them; one that loses its confidence "
        "little by little as parts go weighs them together.",
    ),
    "truest": (
        "Which method is truest?",
        "Maps are judged by what the model does when the places they call important are shown or hidden.",
    ),
    "agree": ("Do models agree?", "The same answer, for the same reasons?"),
    "sane": (
        "Are explanations sane?",
        "A map that stays the same when the weights are random says nothing about the model.",
    ),
    "channels": (
        "Do a few channels decide?",
        "The strongest activation of every channel: a model that leans on a few of them has one tall side.",
    ),
    "further": ("Further figures", ""),
}
BY_KIND = {
    "evidence": "ways",
    "metrics": "truest",
    "attribution": "truest",
    "sanity": "sane",
    "cross-test": "agree",
    "predictions": "studied",
    "activations": "channels",
}
BY_NAME = {
    "summary-mse-size": "enough",
    "mse-sizes": "enough",
    "explained": "enough",
    "confidence-left": "ways",
    "landscape": "agree",
    "cross": "agree",
    "agreement": "agree",
}


@dataclass
class Answers:
    """What is found of a study, question by question.

    Attributes:
        tables: By question.
        findings: In sentences.
        untold: What the data could not tell.
        right: How often models are right, where images have labels.
    """

    tables: dict[str, list[Table]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)
    right: Comparison | None = None

    def add(self, question: str, *tables: Table) -> None:
        """Add tables to a question."""
        self.tables.setdefault(question, []).extend(tables)


def tables_by_kind(study: Study) -> dict[str, list[str]]:
    """Tables of a study that have rows without errors, by kind."""
    found: dict[str, list[str]] = {}
    for table in study.tables:
        if not _has_rows(study, table):
            continue
        found.setdefault(study.plan.measurements[study.plan.asked.named(table)[0]].kind, []).append(table)
    return found


def _has_rows(study: Study, table: str) -> bool:
    assert study.store is not None
    shards = finished_shards(study.plan, study.store, table)
    return any(read_shard(study.store, shard, ["error"])["error"].null_count for shard in shards)


def answer(study: Study, kinds: dict[str, list[str]]) -> Answers:
    """Ask everything that a study has data for."""
    found = Answers()
    for table in kinds.get("predictions", [])[:1]:
        found.right = compare_predictions(Columns(study, table, ["correct"]))
        if found.right is not None:
            _say(found, study, table, [found.right])
    for table in kinds.get("evidence", []):
        _evidence(found, study, table)
    for table in kinds.get("metrics", []):
        scores = MethodScores(study, table)
        comparisons = {metric: scores.comparison(metric) for metric in scores.metrics}
        named = len(kinds["metrics"]) > 1
        found.add("truest", method_table(study, scores, comparisons, named=named), model_method_table(study, scores))
        said, untold = method_findings(study, scores, comparisons, named=named)
        found.findings += said
        found.untold += untold
    if kinds.get("predictions") and len(study.plan.models) > 1:
        searched = next(iter(kinds.get("evidence", [])), None)
        found.add("agree", agreement_table(study, kinds["predictions"][0], searched))
    for table in kinds.get("cross-test", []):
        found.add("agree", *cross_test_tables(study, table))
    for table in kinds.get("activations", []):
        dominance = activation_table(study, table)
        found.add("channels", *([] if dominance is None else [dominance]))
    _sanity(found, study, kinds.get("sanity", []))
    found.untold += _about_trainings(study)
    return found


def _sanity(found: Answers, study: Study, tables: Sequence[str]) -> None:
    checked: list[Checked] = []
    for table in tables:
        own, missing = sanity_rows(study, table)
        checked += own
        found.untold += missing
    for check in dict.fromkeys(one.check for one in checked):
        found.add("sane", sanity_table(study, [one for one in checked if one.check == check]))
    said, untold = sanity_findings(checked, partial(sanity_source, study))
    found.findings += said
    found.untold += untold


def _evidence(found: Answers, study: Study, table: str) -> None:
    columns = evidence_columns(study, table)
    comparisons = compare_evidence(columns)
    by_key = {one.quantity.key: one for one in comparisons}
    deciding = Deciding(study, table)
    found.add("enough", enough_table(deciding, by_key["mean_size"]))
    found.add("ways", ways_table(deciding, by_key))
    families = families_of(study)
    grouped = [of_families(by_key[key], families) for key in ("mean_size", "mses", "distinct_80")]
    _say(found, study, table, [one for one in comparisons if one.quantity.key != "distinct_50"])
    _say(found, study, table, [one for one in grouped if one is not None], of="families: means over their models here")
    limits = ("max_mses", "max_size", "max_questions")
    stopped = good_rows(study, table, ["index", "stopped"])["stopped"].to_pylist()
    limited = sum(why in limits for why in stopped)
    if limited:
        found.untold.append(
            f"{counted(limited, 'search', 'searches')} of {len(stopped):,} ended at a limit of the settings "
            "(number or size of MSEs, or questions): there, counts are lower bounds."
        )


def _say(found: Answers, study: Study, table: str, comparisons: Sequence[Comparison], of: str = "") -> None:
    def trace(c: Comparison, pair: Pair) -> Source:
        key = c.quantity.key
        column = "correct::INT" if key == "correct" else key
        some = "" if key == "correct" else " AND mses > 0"
        members = [c.members.get(name, [name]) for name in (pair.first, pair.second)]
        first, second = (f"model IN ({', '.join(map(queries.text, own))}){some}" for own in members)
        query = queries.difference(
            study, table, column, first, second, members=(len(members[0]), len(members[1])),
            counts=c.quantity.counts, scale=c.quantity.scale,
        )  # fmt: skip
        how = "ratio of 1 + counts, geometric mean over images; t interval" if c.quantity.counts else BOOTSTRAPPED
        tests = counted(pair.tests, "test")
        return source_of(study, table, query, compared=of, test=f"{TEST}, {tests}", interval=how)

    contrasts = () if of else study.plan.asked.contrasts
    found.findings += findings_of(comparisons, trace, 2 if of else 6, contrasts)
    if not of:
        found.untold += untold_of(comparisons, contrasts)


BOOTSTRAPPED = "mean difference over images; bootstrap, bias-corrected and accelerated"


def _about_trainings(study: Study) -> list[str]:
    if any(model.seed is not None for model in study.plan.models) or len(study.plan.models) < 2:
        return []
    return [
        "Each model is here in one training. Whether another training of the same kind would say the same cannot be "
        "told; studies with seeds can."
    ]


def sections_of(study: Study, found: Answers, figures: Sequence[Drawing]) -> tuple[list[Drawing], list[Section]]:
    """Sections with their figures and tables; before them, the figures of what was studied."""
    of: dict[str, list[Drawing]] = {}
    for drawing in figures:
        of.setdefault(question_of(drawing.name), []).append(drawing)
    sections = []
    for name, (title, lead) in QUESTIONS.items():
        own, tables = of.get(name, []), found.tables.get(name, [])
        if own or tables:
            sections.append(Section(name, title, lead, own, tables))
    return of.get("studied", []), sections


def question_of(name: str) -> str:
    """The question that a figure belongs to, by its name, or by the measurement that it needs."""
    for beginning, question in BY_NAME.items():
        if name.startswith(beginning):
            return question
    near = [one for one in list_figures() if name.startswith(one)]
    kinds = find_figure(max(near, key=len)).needs if near else ()
    return next((BY_KIND[kind] for kind in kinds if kind in BY_KIND), "further")
