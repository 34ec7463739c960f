"""``precision="auto"``: by the device, never for gradients, and named in every result."""

import pytest
import torch

import suffice
from suffice.errors import StudyError
from suffice.metrics import score_table
from suffice.perturb import Runner
from suffice.perturb.fast_precision import fast_precision
from suffice.study import Study
from suffice.testing import AnyOf
from suffice.vision import Classifier
from tests.attribution.nets import pictures, small_cnn

ORACLE = AnyOf([(5,)], grid=4)


def processor(monkeypatch, *units):
    """A processor that has these units and no others."""
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: dict.fromkeys(units, True), raising=False)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)


@pytest.mark.parametrize(
    ("units", "expected"),
    [
        ((), "fp32"),
        (("avx2", "f16c"), "fp32"),
        (("avx512_f", "avx512_bw", "avx512_vl", "avx512_vnni"), "fp32"),  # would imitate bf16
        (("avx512_f", "avx512_bf16"), "bf16"),
        (("amx_tile", "amx_bf16"), "bf16"),
    ],
)
def test_processors_with_units_for_bf16_use_them(monkeypatch, units, expected):
    processor(monkeypatch, *units)
    assert fast_precision(small_cnn()) == expected


def test_where_onednn_is_missing_units_help_nothing(monkeypatch):
    processor(monkeypatch, "avx512_bf16")
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert fast_precision(small_cnn()) == "fp32"


@pytest.mark.parametrize(("answer", "expected"), [(True, "bf16"), (False, "fp32"), (None, "fp32")])
def test_older_versions_are_asked_by_another_name(monkeypatch, answer, expected):
    processor(monkeypatch)
    monkeypatch.delattr(torch.cpu, "get_capabilities")
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: answer, raising=False)
    if answer is None:
        monkeypatch.delattr(torch.cpu, "_is_avx512_bf16_supported")
    assert fast_precision(small_cnn()) == expected


@pytest.mark.parametrize(("capability", "expected"), [((9, 0), "fp16"), ((7, 0), "fp16"), ((6, 1), "fp32")])
def test_gpus_with_tensor_cores_are_in_fp16(monkeypatch, capability, expected):
    monkeypatch.setattr(Classifier, "device", torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert fast_precision(small_cnn()) == expected


def test_modules_that_are_not_in_fp32_keep_their_own(monkeypatch):
    processor(monkeypatch, "avx512_bf16")
    assert Runner(small_cnn(torch.float64), precision="auto").dtype == torch.float64


def test_gradients_and_relevance_are_in_fp32_whatever_was_asked_for_first(monkeypatch):
    processor(monkeypatch, "amx_bf16")
    runner = Runner(small_cnn(), precision="auto")
    found = runner.variant("gradients").variant("inside")
    assert (found.precision, found.dtype) == ("bf16", torch.bfloat16)
    named = {work: runner.variant(work).precision for work in ("scores", "gradients", "gradients inside", "relevance")}
    assert named == {"scores": "bf16", "gradients": "fp32", "gradients inside": "fp32", "relevance": "fp32"}


def test_results_name_the_precision_that_was_taken(monkeypatch):
    processor(monkeypatch, "avx512_bf16")
    net, images = small_cnn(), pictures(1)
    by_masks = suffice.attribute(net, images, "rise", masks=4, precision="auto")
    by_gradients = suffice.attribute(net, images, "gradient", precision="auto")
    assert (by_masks.about["precision"], by_gradients.about["precision"]) == ("bf16", "fp32")
    measured = suffice.measure(net, images, by_gradients, "insertion", steps=4, precision="auto")
    assert (measured.about["precision"], measured.protocol["precision"]) == ("bf16", "bf16")
    table = score_table([net], images, ["gradient"], ["insertion"], metric_options={"steps": 4}, precision="auto")
    assert {about["precision"] for about in table.about.values()} == {"bf16"}
    found = suffice.find_evidence(ORACLE.classifier(32), ORACLE.image(32), grid=4, precision="auto")
    assert (found.about["precision"], found.about["confirmed"]) == ("bf16", "ieee")


def test_without_such_units_nothing_changes(monkeypatch):
    processor(monkeypatch, "avx2")
    net, images = small_cnn(), pictures(1)
    auto, usual = (suffice.attribute(net, images, "rise", masks=4, precision=p) for p in ("auto", "fp32"))
    assert auto.about["precision"] == "fp32"
    torch.testing.assert_close(auto.maps, usual.maps, rtol=0, atol=0)


def test_relevance_need_not_be_asked_for_in_fp32():
    net = suffice.load("zoo/deit", device="cpu", pretrained=False)
    assert suffice.attribute(net, pictures(1, 56), "partial-lrp", precision="auto").about["precision"] == "fp32"


def test_a_study_has_a_precision_with_a_name():
    with pytest.raises(StudyError, match="precision='auto'; it can be 'fp32'"):
        Study("x", "photos", "zoo/resnet", {"evidence": {"kind": "evidence"}}, {"precision": "auto"})
