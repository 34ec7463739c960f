"""The script that turns runs into verdicts, by the rules of docs/findings-protocol.md."""

import shutil
from dataclasses import replace

import pytest

from benchmarks.verdicts import ALIKE, FEWER, MORE, NOT_FEWER, Answer, Runs, answers_of, main, verdict
from suffice.study import Study
from suffice.zoo.source import WEIGHTS
from tests.study.test_studies import FOLDER, tomllib


def said(ratio, p=0.001, spread=1.1, equal=None, *, data="a", baseline="evidence"):
    adjusted = equal or ratio
    return Answer(
        data, baseline, ratio, ratio / spread, ratio * spread, p,
        (adjusted, adjusted / 2, adjusted * 2), (10, 10),
    )  # fmt: skip


def both(first, second=None, black=None):
    """Answers of two data sets under two baselines."""
    other = replace(second or first, data="b")
    return [
        one
        for answer in (first, other)
        for one in (answer, replace(black or answer, data=answer.data, baseline="evidence-black"))
    ]


@pytest.mark.parametrize(
    ("expected", "answers", "wanted"),
    [
        (FEWER, both(said(0.6)), "confirmed"),
        (FEWER, both(said(1.6)), "refuted"),
        (MORE, both(said(1.6)), "confirmed"),
        (MORE, both(said(0.6)), "refuted"),
        (FEWER, both(said(0.6), said(0.9, p=0.2)), "cannot tell"),  # chance on one data set
        (FEWER, both(said(0.6), said(1.6)), "cannot tell"),  # two directions
        (FEWER, both(said(0.6, equal=1.1)), "cannot tell"),  # accuracy explains it
        (FEWER, both(said(0.6), black=said(1.2)), "cannot tell"),  # another baseline says otherwise
        (FEWER, both(said(0.6), black=said(0.9, p=0.3)), "confirmed"),  # its sign is enough
        (FEWER, [said(0.6)], "cannot tell: one data set"),
        (FEWER, [said(0.6), said(0.6, data="b")], "cannot tell"),  # a verdict needs both baselines
        (FEWER, both(said(1.6, equal=0.9)), "cannot tell"),  # accuracy explains that it is against the papers
        (FEWER, [replace(one, adjusted=None) for one in both(said(0.6))], "cannot tell: too few trainings to adjust"),
        (ALIKE, both(said(1.1)), "little difference confirmed"),
        (ALIKE, both(said(1.2)), "cannot tell"),
        (ALIKE, both(said(1.5)), "refuted"),
        (ALIKE, both(said(0.6)), "refuted"),
        (ALIKE, both(said(1.5), said(0.6)), "cannot tell"),
        (NOT_FEWER, both(said(1.0, p=0.9)), "little difference confirmed"),
        (NOT_FEWER, both(said(1.6)), "confirmed"),
        (NOT_FEWER, both(said(0.6)), "refuted"),
        (NOT_FEWER, both(said(1.2, p=0.2)), "cannot tell"),
    ],
)
def test_rules(expected, answers, wanted):
    assert verdict(expected, answers) == wanted


def test_runs_are_read(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WEIGHTS", str(tmp_path))
    kinds = ("resnet-aug", "resnet")
    for kind in kinds:
        for seed in (0, 1):
            shutil.copy(WEIGHTS / f"{kind}.safetensors", tmp_path / f"{kind}-seed{seed}.safetensors")
    content = tomllib.loads((FOLDER / "normalization.toml").read_text(encoding="utf-8"))
    content["images"] = "scenes:test[:3]"
    content["models"] = [one for one in content["models"] if one["label"] in kinds]
    content["contrasts"] = [one for one in content["contrasts"] if {one["of"], one["against"]} == set(kinds)]
    small = {name: content["measure"][name] for name in ("said", "evidence", "evidence-black")}
    content["measure"] = {n: one | ({"max_size": 2, "grid": 3} if n != "said" else {}) for n, one in small.items()}
    studies = []
    for seed in (0, 1):  # one training of each in each run
        for model in content["models"]:
            model["seeds"] = str(tmp_path / f"{model['label']}-seed{seed}.safetensors")
        studies.append(Study(**content).run(tmp_path / f"run-{seed}", device="cpu"))
    found = answers_of(Runs("scenes", studies))
    ((pair, answers),) = found.items()
    assert pair == kinds
    assert [one.baseline for one in answers] == ["evidence", "evidence-black"]
    assert all(one.adjusted is None and one.trainings == (2, 2) for one in answers)  # too few to adjust
    asked = [f"scenes={tmp_path / name}" for name in ("run-0", "run-1")]
    assert main([*asked, "--out", str(tmp_path / "verdicts.md")]) == 0
    text = (tmp_path / "verdicts.md").read_text()
    assert f"| {content['contrasts'][0]['question']} | more | **cannot tell: one data set** |" in text
    assert "| MSEs that share no cell |" in text
    assert "| resnet-aug | scenes | evidence-black | 2 | 100.0% (100.0% to 100.0%) |" in text
    assert main(asked[:1]) == 2
    assert "fewer than two trainings of resnet, resnet-aug" in capsys.readouterr().err
    assert main([asked[0], *asked]) == 2
    assert "Several runs of scenes have" in capsys.readouterr().err
