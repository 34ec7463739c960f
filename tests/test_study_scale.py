"""The script that measures what a study adds to the functions that it calls: its order, and how sure it is."""

import json
from argparse import Namespace

import pytest

from benchmarks import study_scale


@pytest.fixture
def measured(monkeypatch, capsys):
    """The result of so many rounds of which the study costs one second and a little more each time; and the order."""

    def run(rounds):
        order, costs = [], iter(((10.0, 4.0), (11.5, 5.0)) * rounds)

        def cost(way, options):
            order.append(way.__name__)
            first, second = next(costs)
            return (first, second) if way.__name__ == "by_functions" else (first + len(order) / 2, second)

        monkeypatch.setattr(study_scale, "cost_of", cost)
        found = study_scale.overhead(Namespace(count=20, rounds=rounds, device="cpu"))
        return found, order, [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    def by_functions(options, count): ...
    def by_study(options, count): ...

    monkeypatch.setattr(study_scale, "by_functions", by_functions)
    monkeypatch.setattr(study_scale, "by_study", by_study)
    return run


def test_each_way_goes_first_in_every_other_round(measured):
    found, order, lines = measured(4)
    assert order == ["by_functions", "by_study", "by_study", "by_functions"] * 2
    assert [line["first"] for line in lines] == ["functions", "study"] * 2
    assert found["rounds"] == 4
    # The costs are of the study wherever it came: 11.5 + 1 second, 10 + 1.5, 11.5 + 3, 10 + 3.5.
    assert [line["study"] for line in lines] == [12.5, 11.5, 14.5, 13.5]
    assert [line["seconds more"] for line in lines] == [2.5, 0.0, 4.5, 2.0]


def test_means_have_standard_errors_where_there_are_several_rounds(measured):
    found, *_ = measured(4)
    assert found["seconds more"] == 2.25
    assert found["seconds more, mean and standard error"] == [2.25, 0.924]  # 1.848 / 2
    assert found["ratio, mean and standard error"][0] == pytest.approx((1.25 + 1 + 1.45 + 13.5 / 11.5) / 4, abs=1e-3)
    alone, *_ = measured(1)
    assert alone["seconds more, mean and standard error"] == [2.5, None]
