"""Cross-testing oracles whose evidence is known to overlap or not."""

import numpy as np
import pytest
import torch

from suffice import Classifier, attribute, measure
from suffice.compare import CrossTest, cross_test
from suffice.compare.of_cross import of_cross_test
from suffice.errors import OptionError
from suffice.metrics import find_protocol
from suffice.testing import AnyOf
from suffice.vision import open_images

OCCLUSION = {"window": 8, "stride": 8, "baseline": "black"}
CURVE = {"baseline": "black", "units": 3, "masks": "nearest", "steps": 9}


def nets(sets, size=24):
    """Oracles that decide by some cells of 3×3, by name."""
    made = []
    for name, cells in sets.items():
        net = AnyOf(cells, grid=3).classifier(size)
        net.name, net.family = name, name[0]
        made.append(net)
    return made


def pictures(count=3):
    random = torch.Generator().manual_seed(0)
    return 0.7 + 0.3 * torch.rand(count, 3, 24, 24, generator=random)


def crossed(sets, images=None, metric=("insertion", "deletion"), **options):
    images = pictures() if images is None else images
    return cross_test(nets(sets), images, "occlusion", metric, options=OCCLUSION, **CURVE | options)


APART = {"a1": [(8,)], "a2": [(8,), (7, 8)], "b": [(4,)]}


def test_the_matrix_is_what_theory_predicts():
    """With nine steps, a decision made by the k-th cell of an order has insertion (9 - k + 1/2) / 9, nearly."""
    found = crossed(APART)
    sure, unsure = 0.98, 0.02
    place = {"a1": [8, 0, 1, 2, 3, 4, 5, 6, 7], "b": [4, 0, 1, 2, 3, 5, 6, 7, 8]}  # the map's cell, then ties in order
    orders = [place["a1"], place["a1"], place["b"]]
    needed = [8, 8, 4]
    for row, order in enumerate(orders):
        for column, cell in enumerate(needed):
            share = (9 - (order.index(cell) + 1) + 0.5) / 9
            assert found.scores("insertion")[row, column] == pytest.approx(unsure + (sure - unsure) * share, abs=1e-3)
            assert found.scores("deletion")[row, column] == pytest.approx(sure - (sure - unsure) * share, abs=1e-3)


def test_a_model_on_its_own_maps_is_what_measure_says():
    models, images = nets(APART), pictures()
    found = crossed(APART, images)
    for number, net in enumerate(models):
        maps = attribute(net, images, "occlusion", **OCCLUSION)
        own = measure(net, images, maps, ["insertion", "deletion"], "jiang", **CURVE)
        for metric in ("insertion", "deletion"):
            assert found.raw[metric][number, number] == pytest.approx(own[metric].values.numpy(), abs=1e-6)
            together = own.normalized("set")[metric].mean
            assert found.normalized(metric)[number, number] == pytest.approx(together, abs=1e-5)


def test_the_order_of_models_and_images_changes_no_number():
    images = pictures(4)
    one = crossed(APART, images)
    names = ["b", "a1", "a2"]
    other = crossed({name: APART[name] for name in names}, images[[2, 0, 3, 1]])
    place = [list(one.models).index(name) for name in names]
    for metric in one.metrics:
        again = one.raw[metric][place][:, place][:, :, [2, 0, 3, 1]]
        assert other.raw[metric] == pytest.approx(again, abs=1e-6)
        assert other.normalized(metric) == pytest.approx(one.normalized(metric)[place][:, place], abs=1e-6)


def test_the_class_is_that_of_who_is_named():
    sets = {"yes": [(8,)], "no": [(4,)]}
    images = pictures(2)
    images[:, :, 8:16, 8:16] = 0  # "no" sees nothing, and predicts the other class
    labeled = open_images(images, labels=[1, 1])
    by = {
        rule: crossed(sets, labeled, target_class=rule).targets[:, :, 0]
        for rule in ("generating", "evaluated", "label")
    }
    assert by["generating"].tolist() == [[1, 1], [0, 0]]
    assert by["evaluated"].tolist() == [[1, 0], [1, 0]]
    assert by["label"].tolist() == [[1, 1], [1, 1]]
    with pytest.raises(OptionError, match="an image has no label"):
        crossed(sets, images, target_class="label")


def test_maps_that_were_made_before_are_taken():
    models, images = nets(APART), pictures()
    maps = [attribute(net, images, "occlusion", **OCCLUSION) for net in models]
    given = cross_test(models, images, metric="insertion", maps=maps, **CURVE)
    assert given.raw["insertion"] == pytest.approx(crossed(APART, images).raw["insertion"], abs=1e-6)
    no = [attribute(net, images, "occlusion", targets=0, **OCCLUSION) for net in models]
    assert (cross_test(models, images, metric="insertion", maps=no, **CURVE).targets == 0).all()  # what they explain


@pytest.mark.parametrize("metric", ["insertion", "deletion"])
def test_alike_models_lie_together_and_are_a_family(metric):
    sets = APART | {"a3": [(8,)], "b2": [(4,)], "b3": [(4,), (0, 4)]}
    found = crossed(sets, metric=metric)
    where = dict(zip(found.models, found.landscape(draws=5).positions, strict=True))
    assert np.linalg.norm(where["a1"] - where["a2"]) < 0.2 * np.linalg.norm(where["a1"] - where["b"])
    families = found.by_family(draws=199)
    assert families.families == ("a", "b")
    higher = metric == "insertion"
    assert (families.means[0, 0] > families.means[0, 1]) == higher
    assert (families.within > 0) == higher
    assert families.p < 0.2  # of ten ways to make two families of three, the best and its mirror image


def test_a_model_that_is_as_sure_of_a_baseline_cannot_be_normalized():
    random = np.random.default_rng(0)
    whole, hidden = np.full((4, 5), 0.9), np.full((4, 5), 0.1)
    hidden[2] = 0.9
    raw = {"insertion": random.random((4, 4, 5))}
    found = CrossTest(tuple("abcd"), tuple("xxyy"), raw, whole, {"insertion": hidden}, np.zeros((4, 4, 5), dtype=int))
    normalized = found.normalized()
    assert np.isnan(normalized[:, 2]).all()
    others = [0, 1, 3]
    assert normalized[:, others] == pytest.approx((raw["insertion"].mean(axis=2)[:, others] - 0.1) / 0.8)
    with pytest.raises(OptionError, match="no score of maps of a on c"):
        found.landscape()
    tables = [one.name for one in of_cross_test(found, "cross")]
    assert tables == ["cross-insertion", "cross-insertion-normalized", "cross-insertion-families"]


def test_the_precision_is_said():
    models, image = nets({"a": [(8,)], "b": [(4,)]}, 48), torch.ones(1, 3, 48, 48)
    rough = cross_test(models, image, "occlusion", "insertion", options=OCCLUSION, steps=2, precision="bf16")
    assert rough.about["precision"] == "bf16"


def test_the_papers_protocol_is_the_default():
    models, image = nets({"a": [(8,)], "b": [(4,)]}, 48), torch.ones(1, 3, 48, 48)
    found = cross_test(models, image, "occlusion", "insertion", options=OCCLUSION)
    assert (found.about["settings"]["protocol"], found.about["precision"]) == ("jiang", "fp32")
    assert find_protocol("jiang").choices["insertion"]["units"] == 28
    table = found.to_arrow()
    assert table.num_rows == 4
    assert table["maps_of"].to_pylist() == ["a", "a", "b", "b"]
    assert table["model"].to_pylist() == ["a", "b", "a", "b"]


def test_what_cannot_be_cross_tested():
    models = nets({"a": [(8,)], "b": [(4,)]})
    with pytest.raises(OptionError, match="two or more classifiers"):
        cross_test(models[:1], pictures(1))
    with pytest.raises(OptionError, match="different names"):
        cross_test([models[0], models[0]], pictures(1))
    three = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(3, 3))
    other = Classifier(three, size=24, mean=(0,) * 3, std=(1,) * 3, labels=["no", "yes", "maybe"], name="c")
    with pytest.raises(OptionError, match="a and c have different classes, 2 and 3 of them"):
        cross_test([models[0], other], pictures(1))
    with pytest.raises(OptionError, match="1 sets of maps were given for 2"):
        cross_test(models, pictures(1), maps=[attribute(models[0], pictures(1), "occlusion", **OCCLUSION)])
    with pytest.raises(OptionError, match="give an Attribution each"):
        cross_test(models, pictures(1), maps=[torch.rand(1, 3, 3)] * 2)
    with pytest.raises(OptionError, match="metrics with curves"):  # before any map is made
        cross_test(models, pictures(1), "no such method", "sparseness", "default")
    with pytest.raises(OptionError, match="insertion, deletion has no option 'targets'"):
        cross_test(models, pictures(1), "no such method", targets=1)
    with pytest.raises(OptionError, match="not of 'deletion'"):
        crossed({"a": [(8,)], "b": [(4,)]}, metric="insertion").scores("deletion")


def test_methods_that_cannot_be_are_said_before_any_map_is_made(monkeypatch):
    monkeypatch.setattr("suffice.compare.cross.attribute", lambda *_, **__: pytest.fail("a map was made"))
    models, images = nets({"a": [(8,)], "b": [(4,)]}), pictures(1)
    for method, options, said in (
        ("occlusion", {"window": "wide"}, "window='wide'"),
        ("occlusion", {"wide": 1}, "has no option 'wide'"),
        ("cgw1", {}, "cgw1 does not fit"),
    ):
        with pytest.raises(OptionError, match=said):
            cross_test(models, images, method, "insertion", options=options, **CURVE)
