"""Comparing the models of a study: every table that its measurements allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from suffice.compare.channels import Activations
from suffice.compare.cross_result import CrossTest
from suffice.compare.of_cross import of_activations, of_cross_test
from suffice.compare.of_evidence import of_evidence
from suffice.compare.of_predictions import accuracies_of, of_ensembles, of_predictions
from suffice.compare.sections import Comparison, Section
from suffice.compare.tables import sole_method, tables_of_kind, without_errors
from suffice.errors import OptionError, StudyError

if TYPE_CHECKING:
    import pyarrow

    from suffice.study import Study

ALL_CLASSES = 100_000  # or as many as there are


def compare_study(study: Study) -> Comparison:
    """Compare the models of a study by all that was measured so far.

    Predictions give accuracies, and what averaging models gains where they have the scores of all classes; searches
    for evidence give rankings, paired tests, indices and distributions; cross-tests matrices, landscapes and families;
    activations their dominance.

    Args:
        study: One that was run, perhaps not to its end.

    Raises:
        StudyError: Nothing that can be compared was measured.

    Example:
        >>> import tempfile
        >>> from suffice import Study
        >>> study = Study("example", "scenes:test[:4]", ["zoo/resnet", "zoo/levit"], {"said": {"kind": "predictions"}})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found = compare_study(study.run(folder, device="cpu"))
        >>> [one.name for one in found.sections], found["said"].columns[:2]
        (['said'], ('model', 'accuracy'))
    """
    sections = tuple(_sections(study))
    if not sections:
        raise StudyError(
            "Nothing of this study can be compared yet: there are no predictions, evidence, cross-tests or activations."
        )
    plan = study.plan
    return Comparison(study.asked.name, tuple(model.label for model in plan.models), len(plan.names), sections)


WHAT = ("predictions", "evidence", "cross-test", "activations")


def study_of_models(
    images: Any,
    models: Sequence[Any],
    *,
    measure: Sequence[str] = WHAT,
    method: str = "igos++",
    options: Mapping[str, Any] | None = None,
    steps: int | None = None,
    grid: int = 7,
    run: Mapping[str, Any] | None = None,
) -> Study:
    """The study by which two or more models are compared over some images; :func:`compare_study` reads it.

    Args:
        images: As :class:`suffice.Study` takes them.
        models: Two or more, likewise.
        measure: What: ``"predictions"``, ``"evidence"``, ``"cross-test"``, ``"activations"``.
        method: By which the maps of the cross-test are made.
        options: Of the method.
        steps: Of the curves; default: as the protocol of the papers has it.
        grid: Cells per side, of the evidence.
        run: What holds for all, as :class:`suffice.Study` takes it.

    Example:
        >>> study = study_of_models("scenes:test[:4]", ["zoo/resnet", "zoo/deit"], measure=["cross-test"])
        >>> study.tables
        ['maps', 'cross-test']
    """
    from suffice.study import Study

    if unknown := [what for what in measure if what not in WHAT] or ([] if measure else ["nothing"]):
        raise OptionError(f"measure={unknown[0]!r}; it can be {', '.join(WHAT)}, or several of them.")
    if len(models) < 2:
        raise OptionError(f"Comparing takes two or more models; {len(models)} given.")
    wanted: dict[str, dict[str, Any]] = {what: {"kind": what} for what in WHAT if what in measure}
    if "predictions" in wanted:
        wanted["predictions"]["top"] = ALL_CLASSES
    if "evidence" in wanted:
        wanted["evidence"]["grid"] = grid
    if "cross-test" in wanted:
        wanted["cross-test"] |= {"maps": "maps"} | ({} if steps is None else {"steps": steps})
        wanted = {"maps": {"kind": "attribution", "method": method, **(options or {})}, **wanted}
    return Study("comparison", images, list(models), wanted, run)


def _sections(study: Study) -> Iterator[Section]:
    crossed = dict(_cross_tests(study))
    accuracies: dict[str, float] = {}
    for name, table in _tables(study, "predictions"):
        accuracies = accuracies or accuracies_of(table)
        yield of_predictions(table, name)
        ensembles = of_ensembles(table, name, next(iter(crossed.values()), None))
        if ensembles is not None:
            yield ensembles
    for name, table in _tables(study, "evidence"):
        yield from of_evidence(table, name, study.asked.contrasts, accuracies)
    for name, found in crossed.items():
        yield from of_cross_test(found, name)
    for name, table in _tables(study, "activations"):
        yield of_activations(Activations.from_table(table), name)


def _tables(study: Study, kind: str) -> Iterator[tuple[str, pyarrow.Table]]:
    """The tables of a kind that have rows, with their names."""
    for name in tables_of_kind(study, kind):
        try:
            table = without_errors(study.table(name))
        except StudyError:  # nothing of it is done yet
            continue
        if table.num_rows:
            yield name, table


def _cross_tests(study: Study) -> Iterator[tuple[str, CrossTest]]:
    """The cross-tests, one for each method of the maps."""
    for name, table in _tables(study, "cross-test"):
        methods = table["method"].unique().to_pylist()
        for method in methods:
            part = name if len(methods) == 1 else f"{name}-{method}"
            yield part, CrossTest.from_table(_complete(sole_method(table, method)))


def _complete(table: pyarrow.Table) -> pyarrow.Table:
    """The rows of models that were tested already, while others are not."""
    import pyarrow.compute as pc

    return table.filter(pc.is_in(table["maps_of"], table["model"].unique()))
