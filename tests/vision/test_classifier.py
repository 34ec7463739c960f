"""The classifier: preprocessing that is known and never guessed, scores, targets, labels."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from suffice.errors import ImageError, OptionError, SufficeWarning
from suffice.vision import Classifier, Geometry

HALF = (0.5, 0.5, 0.5)
LABELS = ["cat", "dog", "owl", "crane", "crane"]


class Linear(nn.Module):
    def __init__(self, classes=5, wrap=lambda x: x):
        super().__init__()
        self.head = nn.Linear(3, classes)
        self.dropout = nn.Dropout(0.5)
        self.wrap = wrap

    def forward(self, x):
        return self.wrap(self.dropout(self.head(x.mean(dim=(2, 3)))))


@pytest.fixture
def net():
    return Classifier(
        Linear(),
        size=16,
        mean=HALF,
        std=(0.1, 0.2, 0.3),
        labels=LABELS,
        synsets=["n1", "n2", "n3", "n4", "n5"],
    )


def test_scores_by_hand(net):
    pixels = torch.rand(4, 3, 16, 16)
    normalized = (pixels - 0.5) / torch.tensor([0.1, 0.2, 0.3]).view(3, 1, 1)
    logits = net.module.head(normalized.mean(dim=(2, 3)))
    assert torch.allclose(net(pixels), logits.softmax(dim=1))
    assert torch.allclose(net.replace(score="sigmoid")(pixels), logits.sigmoid())
    assert torch.allclose(net.replace(score="logit")(pixels), logits)
    assert net.replace(score="logit").labels == LABELS


@pytest.mark.parametrize("wrap", [lambda x: (x,), lambda x: {"logits": x}, lambda x: [x, None]])
def test_wrapped_outputs(net, wrap):
    wrapped = Classifier(Linear(wrap=wrap), size=16, mean=HALF, std=HALF)
    wrapped.module.head.load_state_dict(net.module.head.state_dict())
    assert wrapped(torch.rand(2, 3, 16, 16)).shape == (2, 5)


def test_runs_in_evaluation_mode_and_puts_modes_back(net):
    net.module.train()
    pixels = torch.rand(4, 3, 16, 16)
    assert torch.equal(net(pixels), net(pixels))  # dropout is off
    assert net.module.training
    assert net.module.dropout.training


def test_modes_are_put_back_after_an_error(net):
    net.module.train()
    with pytest.raises(RuntimeError):
        net(torch.rand(1, 7, 16, 16))
    assert all(m.training for m in net.module.modules())


def test_gradients_reach_the_pixels(net):
    pixels = torch.rand(1, 3, 16, 16, requires_grad=True)
    net(pixels)[0, 1].backward()
    assert pixels.grad.abs().sum() > 0


def test_predict(net):
    pixels = torch.rand(5, 3, 16, 16)
    found = net.predict(pixels, batch_size=2)
    assert torch.equal(found.targets, net(pixels).argmax(dim=1))
    assert torch.allclose(found.confidences, net(pixels).amax(dim=1))
    assert found.labels == [LABELS[t] for t in found.targets]
    assert len(found.top(3)[0]) == 3
    assert found.top(1)[2][0][:2] == (found.targets[2], LABELS[found.targets[2]])
    assert not found.scores.requires_grad


def test_predict_skips_what_is_broken_and_loses_nothing_else(net, tmp_path):
    for name in "abd":
        Image.new("RGB", (20, 20), "red").save(tmp_path / f"{name}.png")
    (tmp_path / "c.png").write_bytes(b"not a picture")
    files = sorted(tmp_path.iterdir())
    with pytest.raises(ImageError, match=r"c\.png"):
        net.predict(files)
    progress = []
    found = net.predict(files, on_error="skip", batch_size=2, on_progress=lambda *seen: progress.append(seen))
    assert found.index.tolist() == [0, 1, 3]
    assert [s.index for s in found.skipped] == [2]
    assert progress[-1] == (4, 4)


class Small(Linear):
    """Runs out of memory above so many inputs."""

    most = 3

    def forward(self, x):
        if len(x) > self.most:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory.")
        return super().forward(x)


def test_predict_survives_running_out_of_memory(net):
    images = torch.rand(21, 3, 16, 16)
    small = net.with_module(Small())
    small.module.load_state_dict(net.module.state_dict())
    seen = []
    with pytest.warns(SufficeWarning, match="Out of memory at batch size 8") as warned:
        predictions = small.predict(images, batch_size=8, on_progress=lambda *done: seen.append(done))
    assert len(warned) == 1
    assert seen == [(8, 21), (16, 21), (21, 21)]
    torch.testing.assert_close(predictions.scores, net.predict(images, batch_size=8).scores)
    assert predictions.index.tolist() == list(range(21))


def test_predict_gives_up_where_one_image_does_not_fit(net):
    small = net.with_module(Small())
    small.module.most = 0
    with pytest.warns(SufficeWarning), pytest.raises(torch.cuda.OutOfMemoryError):
        small.predict(torch.rand(2, 3, 16, 16))


def test_predict_when_nothing_can_be_read(net, tmp_path):
    (tmp_path / "c.png").write_bytes(b"not a picture")
    found = net.predict(tmp_path / "c.png", on_error="skip")
    assert len(found) == 0
    assert found.labels == []
    assert len(found.skipped) == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1, [1] * 3),
        ("dog", [1] * 3),
        ("n3", [2] * 3),
        ([0, "owl", "2"], [0, 2, 2]),
        (torch.tensor([2, 1, 0]), [2, 1, 0]),
    ],
)
def test_targets(net, given, expected):
    assert net.targets(given, torch.rand(3, 5)).tolist() == expected


@pytest.mark.parametrize("labels", [[10, 11], (10, 11), np.array([10, 11]), range(10, 12), np.array(["10", "11"])])
def test_labels_as_people_have_them(labels):
    import timm

    for net in (
        Classifier(Linear(2), size=8, mean=HALF, std=HALF, labels=labels),
        Classifier(timm.create_model("resnet10t", num_classes=2), labels=labels),
    ):
        assert net.labels == ["10", "11"]
        assert net.class_index("11") == 1


def test_default_targets_are_predictions(net):
    whole = torch.rand(3, 5)
    assert torch.equal(net.targets(None, whole), whole.argmax(dim=1))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("dgo", "Did you mean 'dog'"),
        ("crane", r"classes \[3, 4\]"),
        (5, "classes 0 to 4"),
        (-1, "classes 0 to 4"),
        ([1, 2], "2 targets were given for 3 images"),
        ([1, None, 2], "not None"),
        (torch.tensor([1.0, 2.0, 0.0]), "not 1.0"),
        (1.5, "targets=1.5; write None"),
        ({1, 2}, "targets={1, 2}; write None"),
    ],
)
def test_wrong_targets(net, given, said):
    with pytest.raises(OptionError, match=said):
        net.targets(given, torch.rand(3, 5))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "size, mean, std missing"),
        ({"size": 16}, "mean, std missing"),
        ({"size": 16, "mean": HALF}, "std missing"),
        ({"size": 16, "mean": (0.5,), "std": HALF}, "has 1 numbers"),
        ({"size": 16, "mean": HALF, "std": HALF, "score": "odds"}, "'softmax', 'sigmoid' or 'logit'"),
        ({"preprocess": lambda p: torch.zeros(3, 8, 8), "resize": "crop"}, "resize= needs a known geometry"),
    ],
)
def test_preprocessing_is_never_guessed(options, said):
    with pytest.raises(OptionError, match=said):
        Classifier(Linear(), **options)


def test_something_else_than_a_module():
    with pytest.raises(OptionError, match=r"nn\.Module"):
        Classifier(lambda x: x, size=16, mean=HALF, std=HALF)


def test_a_module_and_a_callable_are_enough():
    from timm.data import create_transform

    picture = Image.new("RGB", (80, 60), (200, 10, 90))
    transform = create_transform((3, 32, 32), mean=(0.1, 0.2, 0.3), std=(0.4, 0.5, 0.6))
    net = Classifier(Linear(), preprocess=transform)
    assert net.size == (32, 32)
    with torch.no_grad(), net.evaluating():
        expected = net.module(transform(picture)[None]).softmax(dim=1)
    assert torch.allclose(net.predict(picture).scores, expected, atol=1e-6)


def test_a_model_that_says_nan_is_warned_of(net):
    with torch.no_grad():
        net.module.head.weight[2, 1] = torch.nan
    with pytest.warns(SufficeWarning, match="Linear says NaN of 4 of 4 images"):
        net.predict(torch.rand(4, 3, 16, 16))


def test_a_device_that_is_not_there():
    with pytest.raises(OptionError, match="device='gpu' cannot be used here"):
        Classifier(Linear(), size=16, mean=HALF, std=HALF, device="gpu")
    with pytest.raises(OptionError, match="device='gpu' cannot be used here"):
        Classifier(Linear(), size=16, mean=HALF, std=HALF).to("gpu")


def test_captum_takes_it_as_it_is(net):
    attribution = pytest.importorskip("captum.attr")
    pixels = torch.rand(2, 3, 16, 16)
    maps = attribution.Saliency(net).attribute(pixels, target=1)
    assert maps.shape == pixels.shape
    assert maps.abs().sum() > 0


def test_prepared_pixels_are_a_copy(net):
    pixels = torch.rand(2, 3, *net.size)
    before = pixels.clone()
    net.prepare(pixels).zero_()
    assert torch.equal(pixels, before)


def test_prepare_keeps_ready_pixels(net):
    pixels = torch.rand(2, 3, 16, 16)
    assert torch.equal(net.prepare(pixels), pixels)
    assert torch.equal(net.prepare(pixels.mul(255).byte()), pixels.mul(255).byte().float() / 255)
    assert net.prepare(torch.rand(2, 3, 40, 30)).shape == (2, 3, 16, 16)
    with pytest.raises(ImageError, match="normalized"):
        net.prepare(pixels * 4 - 2)


def test_replace_geometry(net):
    assert net.replace(resize="squash").geometry == Geometry((16, 16), "squash")
    assert net.replace(size=24).size == (24, 24)
    assert net.replace(family="mine").family == "mine"
    assert "16×16" in repr(net)


def test_half_precision_module():
    net = Classifier(Linear().to(torch.bfloat16), size=16, mean=HALF, std=HALF)
    assert net(torch.rand(2, 3, 16, 16)).dtype == torch.float32


def test_the_softmax_of_one_output_says_nothing():
    module = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 1))
    net = Classifier(module, size=16, mean=HALF, std=HALF)
    with pytest.raises(OptionError, match="score='sigmoid'"):
        net.predict(torch.rand(2, 3, 16, 16))
    assert net.replace(score="sigmoid").predict(torch.rand(2, 3, 16, 16)).scores.shape == (2, 1)


@pytest.mark.parametrize("kind", [list, tuple, np.array, np.int64, torch.tensor, "series", "scalar tensor", "rows"])
def test_targets_as_people_have_them(kind):
    pandas = pytest.importorskip("pandas") if kind == "series" else None
    net = Classifier(nn.Flatten(), size=2, mean=(0,) * 3, std=(1,) * 3, labels=list("abcdefghijkl"))
    whole = torch.rand(3, 12)
    one = {np.int64: np.int64(7), "scalar tensor": torch.tensor(7)}
    given = {"series": lambda v: pandas.Series(v, index=[5, 6, 7]), "rows": lambda v: np.array(v)[:, None]}
    targets = one[kind] if kind in one else given.get(kind, kind)([4, 7, 1])
    assert net.targets(targets, whole).tolist() == ([7] * 3 if kind in one else [4, 7, 1])
    assert net.class_index(np.int64(3)) == 3
    if kind not in one:
        with pytest.raises(OptionError, match="3 targets were given for 2 images"):
            net.targets(targets, whole[:2])
