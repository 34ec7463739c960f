"""Tables of methods: means over the same models are ranked, those over others are not."""

import numpy as np

from suffice.report.figures import find_figure
from suffice.report.page.comparing import Comparison
from suffice.report.page.methods import first_place, method_findings, method_table
from suffice.report.page.quantities import MethodScores, Quantity
from suffice.study import Study


def scores_of(folder, methods):
    study = Study(
        "methods", "scenes:test[:6]", ["zoo/resnet", "zoo/levit"],
        {
            "maps": {"kind": "attribution", "methods": methods},
            "scores": {"kind": "metrics", "maps": "maps", "metrics": ["sparseness", "pointing-game"]},
        },
    ).run(folder, device="cpu")  # fmt: skip
    scores = MethodScores(study, "scores")
    return method_table(study, scores, {metric: scores.comparison(metric) for metric in scores.metrics})


def test_methods_on_the_same_models_have_a_best_one(tmp_path):
    table = scores_of(tmp_path / "run", ["gradient", "center", {"name": "gradient", "label": "as-good"}])
    assert [column.title for column in table.columns] == ["Method", "sparseness", "pointing-game ↑"]
    assert {row[0].text: row[2].best for row in table.rows} == {"gradient": True, "center": False, "as-good": True}
    assert "the best of each column is bold" in table.reading


def test_means_over_other_models_are_not_ranked(tmp_path):
    table = scores_of(tmp_path / "run", ["gradient", {"name": "center", "models": ["zoo/resnet"]}])
    assert [(row[0].text, row[1].text) for row in table.rows] == [("gradient", "2"), ("center", "1")]
    assert not any(cell.best for row in table.rows for cell in row)
    assert "cannot be compared" in table.reading


def test_figures_and_sentences_say_of_which_of_several_tables_they_are(tmp_path):
    methods = ["gradient", "grad-cam", "center"]
    study = Study(
        "several", "scenes:test[:4]", ["zoo/resnet"],
        {
            "maps": {"kind": "attribution", "methods": methods},
            "first": {"kind": "metrics", "maps": "maps", "metrics": ["insertion"], "steps": 3},
            "second": {"kind": "metrics", "maps": "maps", "metrics": ["deletion"], "steps": 3},
        },
    ).run(tmp_path / "run", device="cpu")  # fmt: skip
    drawn = find_figure("methods").draw(study)
    assert [one.name for one in drawn] == ["methods-first-zoo-resnet", "methods-second-zoo-resnet"]
    assert ["(first)" in one.title for one in drawn] == [True, False]
    assert [{row["column"] for row in one.table.to_pylist()} for one in drawn] == [{"insertion ↑"}, {"deletion ↓"}]
    scores = MethodScores(study, "first")
    said, untold = method_findings(study, scores, {"insertion": scores.comparison("insertion")}, named=True)
    assert all(text.startswith("In first: ") for text in [*(one.text for one in said), *untold])
    assert said or untold


def test_first_place_is_shared_by_those_that_do_not_differ_from_the_first_however_many_there_are():
    """With so many methods, each a little worse than the one before, groups outnumber the letters."""
    random, count = np.random.default_rng(0), 80
    values = {f"method-{i:02d}": random.normal(-0.5 * i, 1, 60).tolist() for i in range(count)}
    compared = Comparison.of(Quantity("score", "score", "how high?", higher_is_better=True), values)
    assert any(character.isdigit() for letters in compared.letters.values() for character in letters)
    best, *others = compared.order
    alike = [name for name in others if not compared.pair(best, name).clear]
    assert 0 < len(alike) < 20
    assert first_place(compared, compared.order) == [best, *alike]
