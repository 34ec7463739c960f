"""Cross-tests to look at: chosen by rule, and what each model says of what another finds important."""

import numpy as np
import pytest
import torch

from suffice import Study, attribute
from suffice.compare import CrossTest, disputed_images, look_through, most_disputed
from suffice.errors import OptionError
from suffice.testing import AnyOf
from tests.study.small import MODELS, write_pictures

OCCLUSION = {"window": 8, "stride": 8, "baseline": "black"}
CURVE = {"baseline": "black", "units": 3, "masks": "nearest", "steps": 9}


def crossed(raw, metric="insertion", families=("x", "x", "y")):
    raw = np.asarray(raw, dtype=float)
    images = raw.shape[2]
    ends = {metric: np.zeros((3, images))}
    targets = np.zeros(raw.shape, dtype=int)
    return CrossTest(("a", "b", "c"), families, {metric: raw}, np.ones((3, images)), ends, targets)


def test_the_images_with_the_largest_gap_between_families_come_first():
    """Families test alike in image 1, fall apart in 2, and a little in 0."""
    same, gaps = 0.9, np.array([0.3, 0.0, 0.6])
    raw = np.full((3, 3, 3), same)
    for row, column in ((0, 2), (1, 2), (2, 0), (2, 1)):
        raw[row, column] -= gaps
    assert most_disputed(crossed(raw), 3) == [2, 0, 1]
    assert most_disputed(crossed(1 - raw, "deletion"), 2) == [2, 0]
    raw[:, :, 2] = np.nan
    assert most_disputed(crossed(raw), 2) == [0, 1]
    with pytest.raises(OptionError, match="one family"):
        most_disputed(crossed(raw, families=("x", "x", "x")))


def test_a_model_is_sure_where_it_sees_what_it_needs():
    oracles = {"corner": AnyOf([(8,)], grid=3), "middle": AnyOf([(4,)], grid=3), "both": AnyOf([(4,), (8,)], grid=3)}
    nets = []
    for name, oracle in oracles.items():
        net = oracle.classifier(24)
        net.name = name
        nets.append(net)
    images = torch.ones(2, 3, 24, 24)
    maps = [attribute(net, images, "occlusion", **OCCLUSION) for net in nets[:2]]
    both = attribute(nets[0], images, "occlusion", **OCCLUSION)
    found = look_through(nets, images, [*maps, both], share=0.12, side=3, baseline="black")
    assert len(found) == 6
    first, second = found.looks[0], found.looks[1]
    assert (first.maps_of, first.cells) == ("corner", (8,))
    assert {name: round(value) for name, value in first.confidences.items()} == {"corner": 1, "middle": 0, "both": 1}
    assert {name: round(value) for name, value in second.confidences.items()} == {"corner": 0, "middle": 1, "both": 1}
    assert all(round(value) == 1 for value in first.whole.values())
    svg = found.to_svg()
    assert svg.count("<image") == 2 * (3 + 1)
    assert "corner 0.98 (0.98)" in svg.replace("  ", " ")
    assert found.to_json()[0]["cells"] == [8]
    with pytest.raises(OptionError, match="maps of each of 3 classifiers"):
        look_through(nets, images, maps)


def test_from_a_study(tmp_path):
    measure = {
        "maps": {"kind": "attribution", "method": "occlusion", **OCCLUSION},
        "cross": {"kind": "cross-test", "maps": "maps", **CURVE},
    }
    pictures = write_pictures(tmp_path / "pictures", 3)
    study = Study("s", str(pictures), MODELS, measure).run(tmp_path / "run", device="cpu")
    found = disputed_images(study, 2, side=3, device="cpu")
    assert found.models == ("tests.study.small:any_of", "sum")
    chosen = most_disputed(CrossTest.from_study(study), 2)
    assert list(dict.fromkeys(one.image for one in found)) == [f"{number:03d}.png" for number in chosen]
    assert found.save(tmp_path / "looks.svg").exists()
    with pytest.raises(OptionError, match="no model 'other'"):
        disputed_images(study, 1, models=["other"], device="cpu")
