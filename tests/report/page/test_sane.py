"""What is said of sanity checks: only what the rule of verdicts allows."""

import pytest
import torch

from suffice.metrics.sanity import SanityRow
from suffice.report.page.sane import Checked, sanity_findings, sanity_rows


def checked(method, model, last, *, spread=0.02, magnitudes=None, images=20, check="cascading", steps=3):
    """A method whose similarity falls from 1 to ``last``, with so much spread over images."""
    around = torch.linspace(-1, 1, images, dtype=torch.float64) * spread
    levels = torch.linspace(1, last, steps, dtype=torch.float64)
    values = levels[None, :, None] + around[None, None, :]
    other = values if magnitudes is None else values - last + magnitudes
    row = SanityRow(
        method, {"spearman": values, "absolute": other, "ssim": values}, {}, torch.zeros(steps), torch.zeros(1)
    )
    return Checked(model, check, ("trained", *(f"layer {n}" for n in range(1, steps))), row)


def test_a_verdict_is_a_finding_and_an_unclear_one_is_not():
    told = [
        checked("grad-cam", "a", 0.1),
        checked("gradient", "a", 0.9),
        checked("rise", "a", 0.5, spread=0.3),
    ]
    said, untold = sanity_findings(told)
    assert [found.text for found in said] == [
        "Maps by grad-cam depend on the weights of a: with all of them random, their rank correlation with those of "
        "the trained model is 0.10 ± 0.00.",
        "Maps by gradient do not depend on the weights of a: with all of them random, their rank correlation with "
        "those of the trained model is 0.90 ± 0.00.",
    ]
    assert untold == [
        "Whether maps by rise depend on the weights of a is unclear: the rank correlation of what is left, 0.50, lies "
        "within two standard errors of 0.5."
    ]
    assert said[0].question == "sane"
    assert "over 20 images and 1 draw" in said[0].shown


def test_maps_whose_signs_alone_change_do_not_pass():
    (said,), _ = sanity_findings([checked("gradient", "a", 0.0, magnitudes=0.8)])
    assert said.text.startswith("Maps by gradient do not depend on the weights of a: ")
    assert said.text.endswith("is 0.80 ± 0.00.")


def test_methods_that_are_alike_share_a_sentence():
    told = [checked(method, model, 0.1 + 0.1 * place) for place, model in enumerate("ab") for method in ("x", "y")]
    (said,), untold = sanity_findings(told)
    assert said.text == (
        "Maps by x and y depend on the weights of a and b: with all of them random, their rank correlation with those "
        "of the trained model is at most 0.20 ± 0.00."
    )
    assert "(x on b)" in said.shown
    assert untold == []


def test_one_image_says_nothing():
    said, untold = sanity_findings([checked("x", "a", 0.1, images=1, spread=0)])
    assert said == []
    assert untold == [
        "Whether maps by x depend on the weights of a cannot be told from one image and one draw of random weights."
    ]


def test_single_layers_are_named():
    (said,), _ = sanity_findings([checked("x", "a", 0.2, check="independent", steps=3)])
    assert said.text == (
        "Maps by x hardly depend on layer 1 of a: with one layer random at a time, their rank correlation with those "
        "of the trained model is up to 0.60 ± 0.00."
    )
    (unclear,) = sanity_findings([checked("x", "a", 0.0, check="independent", spread=0.4)])[1]
    assert unclear.startswith("Whether maps by x depend on every layer of a is unclear: of some layers")


def test_the_table_of_a_study_has_the_verdicts(study):
    rows, missing = sanity_rows(study, "random")
    assert missing == []
    assert [(one.model, one.row.method) for one in rows] == [("zoo/vgg", "grad-cam")]
    assert rows[0].left("spearman")[0] == pytest.approx(float(rows[0].row.values["spearman"][:, -1].mean()))
