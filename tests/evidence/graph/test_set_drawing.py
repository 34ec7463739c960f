"""Evidence of many images as a table: what it says of each, and which MSEs it shows."""

import dataclasses
import re

import torch

from suffice.draw.words import percent
from suffice.evidence import MSE, EvidenceSet, Settings
from tests.evidence.made import make_evidence


def html(evidence):
    return EvidenceSet([evidence], "zoo/x", "cnn")._repr_html_()


def plain(**changes):
    mses = [(0, 1, 2), (2, 3), (2, 4), (5, 6)]
    return make_evidence(dict(zip(mses, (0.95, 0.91, 0.97, 0.93), strict=True)), mses, **changes)


def test_why_the_baseline_and_what_was_asked_for_are_said():
    shown = html(plain(stopped="max_mses", baseline_confidence=0.2))
    assert "4 found, stopped at the limit: more than max_mses=10." in shown
    assert f"baseline alone {percent(0.25)} of it" in shown
    assert not re.search("stable|contrastive|necessary|refined", shown)
    assert "baseline alone" not in html(plain(stopped="no confidence", confidence=1e-7))

    mses = tuple(dataclasses.replace(m, stays={"jpeg": True, "shift": False}) for m in plain().mses)
    asked = dataclasses.replace(
        plain(), mses=mses, contrastive=(MSE((0, 1, 2), 0.95),), necessary=((2, 5), (2, 6)),
        refined={14: (MSE(tuple(range(49)), 0.9),)},
    )  # fmt: skip
    for line in (
        f"stable under small changes: {percent(0.5)}",
        "1 contrastive set",
        "2 necessary sets of 2 cells",
        f"refined to 14 × 14: {percent(0.25)} of the image each",
    ):
        assert f">{line}<" in html(asked)
    assert ">No set was proven to be necessary within" in html(dataclasses.replace(asked, necessary=()))


def test_those_that_tell_most_come_first():
    shown = html(plain())
    assert re.findall(r"<title>(P\d+(?: ∧ P\d+)*):", shown) == [
        "P2 ∧ P4",
        "P5 ∧ P6",
        "P2 ∧ P3",
        "P0 ∧ P1 ∧ P2",
    ]


def test_certified_ones_have_a_solid_frame():
    evidence = plain()
    assert html(evidence).count("stroke-dasharray") == 4
    certified = dataclasses.replace(evidence, mses=(dataclasses.replace(evidence.mses[0], certified=True),))
    assert html(certified).count("stroke-dasharray") == 0


def test_hidden_cells_show_the_baseline_where_it_is_known():
    picture = torch.zeros(3, 16, 16, dtype=torch.uint8)
    assert html(plain(picture=picture)).count("<image") == 2
    assert html(plain(picture=picture, settings=Settings(baseline=torch.zeros_like))).count("<image") == 1
