"""Maps and evidence of a study, as the functions give them."""

import pytest
import torch

from suffice import attribute, find_evidence, load, open_images
from suffice.errors import StudyError
from tests.study.small import MEASURE, SEARCH, small_study, write_pictures

NAME = "tests.study.small:any_of"


@pytest.fixture
def pictures(tmp_path):
    return write_pictures(tmp_path / "pictures", 10)


def test_maps_of_a_model_are_those_of_the_method(tmp_path, pictures):
    study = small_study(pictures).run(tmp_path / "run", device="cpu", only="maps")
    options = {name: value for name, value in MEASURE["maps"].items() if name not in ("kind", "method")}
    direct = attribute(load(NAME, device="cpu"), open_images(pictures), "occlusion", **options)
    found = study.maps("maps", NAME)
    assert found.names == list(direct.names)
    assert found.ids == list(direct.ids)
    torch.testing.assert_close(found.maps, direct.maps)
    assert torch.equal(found.targets, direct.targets)
    assert found.pictures.shape == direct.pictures.shape
    assert found.skipped == []


def test_images_without_maps_are_skipped(tmp_path, pictures):
    for broken in (1, 4, 5, 6, 7):
        (pictures / f"{broken:03d}.png").write_bytes(b"")
    study = small_study(pictures).run(tmp_path / "run", device="cpu", only="maps")
    found = study.maps("maps", "sum")
    assert found.names == ["000.png", "002.png", "003.png", "008.png", "009.png"]
    assert [(skip.index, skip.name) for skip in found.skipped] == [(i, f"{i:03d}.png") for i in (1, 4, 5, 6, 7)]


@pytest.mark.parametrize("regions", [False, True])
def test_evidence_of_a_model_is_that_of_the_search(tmp_path, pictures, regions):
    (pictures / "004.png").write_bytes(b"")
    measure = {"found": {**MEASURE["evidence"], "regions": regions}}
    study = small_study(pictures, measure=measure).run(tmp_path / "run", device="cpu")
    direct = find_evidence(load(NAME, device="cpu"), open_images(pictures), **SEARCH, on_error="skip")
    found = study.evidence(NAME)
    assert [e.name for e in found] == [e.name for e in direct]
    assert [[m.cells for m in e.mses] for e in found] == [[m.cells for m in e.mses] for e in direct]
    assert [e.subexplanations() for e in found] == [e.subexplanations() for e in direct]
    assert [len(e.regions) for e in found] == [len(e.regions) if regions else 0 for e in direct]
    assert [(skip.index, skip.name) for skip in found.skipped] == [(4, "004.png")]
    assert found.about["settings"]["grid"] == 3
    assert found[0].graph().to_svg().startswith("<svg")


def test_what_is_not_there_is_said(tmp_path, pictures):
    study = small_study(pictures).run(tmp_path / "run", device="cpu", only="said")
    for ask, said in (
        (lambda: study.maps("maps", "sum"), "no maps of maps with sum yet"),
        (lambda: study.maps("said", "sum"), "'said' makes no maps"),
        (lambda: study.maps("maps", "smu"), "no model 'smu'. Did you mean 'sum'?"),
        (lambda: study.evidence("sum"), "Nothing of evidence with sum is done yet"),
        (lambda: study.evidence("sum", "said"), "'said' finds no evidence"),
    ):
        with pytest.raises(StudyError) as error:
            ask()
        assert said in str(error.value)
    both = {"a": MEASURE["evidence"], "b": MEASURE["evidence"]}
    two = small_study(pictures, measure=both).run("memory://two-searches", device="cpu")
    with pytest.raises(StudyError, match="Say which search is meant: a, b"):
        two.evidence("sum")
