"""From images to evidence: batches, slots and the order of images change nothing; memory does not grow."""

import gc
import inspect
import pickle
import warnings
from dataclasses import fields

import pytest
import torch

from suffice.bench.one_at_a_time import OneAtATime, search_one_at_a_time
from suffice.errors import OptionError, SufficeWarning
from suffice.evidence import EvidenceStream, Settings, find_evidence, preset
from suffice.perturb import Runner
from suffice.testing import CHECKS
from suffice.vision import Classifier, open_images


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Conv2d(3, 8, 3, stride=2)
        self.b = torch.nn.Conv2d(8, 16, 3, stride=2)
        self.head = torch.nn.Linear(16 * 9, 4)

    def forward(self, x):
        x = self.b(self.a(x).relu()).relu()
        return self.head(torch.nn.functional.adaptive_max_pool2d(x, 3).flatten(1)) * 8


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(4)
    return Classifier(Small().eval(), size=28, mean=(0.5,) * 3, std=(0.5,) * 3)


def blobs(count):
    """Smooth random pictures."""
    noise = torch.rand(count, 3, 7, 7, generator=torch.Generator().manual_seed(1))
    return torch.nn.functional.interpolate(noise, (28, 28), mode="bilinear").clamp(0, 1)


def same(a, b):
    if [m.cells for m in a.mses] != [m.cells for m in b.mses] or a.counts.counts != b.counts.counts:
        return False
    return (a.target, a.stopped, a.levels, a.questions) == (b.target, b.stopped, b.levels, b.questions)


COUNT = 12
SEARCH = {"baseline": "black", "grid": 5, "max_size": 6}


@pytest.fixture(scope="module")
def searched(net):
    """Evidence of many images, searched side by side, and the batches in which the network was asked."""
    sizes = []
    handle = net.module.register_forward_pre_hook(lambda module, inputs: sizes.append(len(inputs[0])))
    found = find_evidence(net, blobs(COUNT), images_at_once=8, batch_size=64, **SEARCH)
    handle.remove()
    return found, sizes


@pytest.fixture(scope="module")
def together(searched):
    return searched[0]


def test_an_image_alone_and_among_others(net, together):
    assert [e.index for e in together] == list(range(COUNT))
    assert {e.levels for e in together} >= {3, 4, 5, 6}  # searches of different depth, side by side
    for i in (0, COUNT - 1):
        assert same(find_evidence(net, blobs(COUNT)[i : i + 1], **SEARCH)[0], together[i])


@pytest.mark.parametrize(("batch_size", "at_once", "count"), [(1, 1, 1), (7, 3, 4), (512, 8, 8)])
def test_batch_size_changes_nothing(net, together, batch_size, at_once, count):
    other = find_evidence(net, blobs(COUNT)[:count], batch_size=batch_size, images_at_once=at_once, **SEARCH)
    assert all(same(a, b) for a, b in zip(together, other, strict=False))


def test_batch_size_changes_nothing_where_deletion_finds_it(net):
    """Two cells are never enough here."""
    shallow = {**SEARCH, "max_size": 2}
    found = find_evidence(net, blobs(3), batch_size=64, **shallow)
    assert {mse.found for one in found for mse in one.mses} == {"deletion"}
    other = find_evidence(net, blobs(3), batch_size=7, images_at_once=2, **shallow)
    assert all(same(a, b) for a, b in zip(found, other, strict=True))


def test_batches_are_full_until_few_images_are_left(searched):
    found, sizes = searched
    assert sum(size == 64 for size in sizes) * 64 > 0.9 * found.counters.forwards


def test_the_search_equals_the_literal_twin_on_a_network(net, together):
    choices = Settings(**SEARCH)
    compared = 0
    for image, evidence in zip(blobs(COUNT)[:4], together, strict=False):
        twin = search_one_at_a_time(OneAtATime(net, image, choices), choices)
        if not twin:  # then it is deletion that finds something
            assert {m.found for m in evidence.mses} == {"deletion"}
            continue
        found = [frozenset(m.cells) for m in evidence.mses]
        # Certifying may replace what the twin leaves by a smaller set.
        assert [s for s in found if s in twin] == [s for s in twin if s in found]
        assert all(any(s <= large for s in found) for large in twin)
        compared += len(set(twin) & set(found))
    assert compared > 5


@pytest.mark.parametrize("search", ["paper", "sag"])
def test_a_model_that_runs_out_of_memory_finds_the_same(net, search):
    def run(net, images):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SufficeWarning)  # that batches are smaller now
            found = find_evidence(net, images, baseline="black", grid=3, max_size=3, search=search, batch_size=64)
        assert any(e.mses for e in found)
        facts = [
            (e.confidence, e.baseline_confidence, e.questions, e.levels, len(e.mses), e.ratios.sum()) for e in found
        ]
        return torch.tensor(facts)

    CHECKS["memory"](run, net, blobs(3))


def test_evidence_keeps_a_small_picture_of_what_the_model_saw(net, together):
    for evidence, image in zip(together[:3], blobs(COUNT), strict=False):
        assert torch.equal(evidence.picture, (image * 255).round().byte())
    large = Classifier(Small().eval(), size=(140, 280), mean=(0,) * 3, std=(1,) * 3)
    found = find_evidence(large, torch.rand(1, 3, 140, 280), max_size=1, baseline="black")[0]
    assert found.picture.dtype == torch.uint8
    assert found.picture.shape == (3, 64, 128)
    assert found.picture.untyped_storage().nbytes() == found.picture.numel()  # not a view of many images


def test_evidence_says_of_which_image_it_is(net):
    images = open_images(blobs(2))
    found = find_evidence(net, images, baseline="black", max_size=1, expanded_mses=0)
    assert [e.image_id for e in found] == images.ids
    assert len(set(images.ids)) == 2


def test_counters_are_those_of_this_search(net):
    runner = Runner(net, batch_size=64)
    first = find_evidence(net, blobs(2), max_size=2, baseline="black", runner=runner)
    second = find_evidence(net, blobs(2), max_size=2, baseline="black", runner=runner)
    assert first.counters.forwards == second.counters.forwards > 0
    assert runner.counters.forwards == 2 * first.counters.forwards


def test_broken_images_are_skipped_and_recorded(net, tmp_path):
    from torchvision.utils import save_image

    for i, image in enumerate(blobs(5)):
        save_image(image, tmp_path / f"{i}.png")
    (tmp_path / "2.png").write_bytes(b"broken")
    found = find_evidence(net, tmp_path, on_error="skip", images_at_once=2, baseline="black", max_size=2)
    assert [e.index for e in found] == [0, 1, 3, 4]
    assert [s.index for s in found.skipped] == [2]


def test_memory_does_not_grow_with_the_number_of_images(net):
    work = EvidenceStream(
        net,
        blobs(64),
        None,
        Settings(baseline="black", grid=2, max_size=2),
        Runner(net, batch_size=64),
        images_at_once=8,
    )
    held = []
    for number, _ in enumerate(work):
        if number % 8 == 4:
            tensors = [t for t in gc.get_objects() if type(t) is torch.Tensor]
            held.append(sum(t.untyped_storage().nbytes() for t in tensors))
    assert number == 63
    assert max(held[4:]) < 1.2 * max(held[:4])


# How it is called


def test_keywords_are_the_settings_with_the_same_defaults():
    signature = inspect.signature(find_evidence, eval_str=True).parameters
    hints = inspect.get_annotations(Settings, eval_str=True)
    for field in fields(Settings):
        assert signature[field.name].default == field.default
        if not field.name.endswith("baseline"):  # whatever it is, it is checked where it is made
            assert signature[field.name].annotation == hints[field.name]


def test_it_pickles():
    assert pickle.loads(pickle.dumps(find_evidence)) is find_evidence


@pytest.mark.parametrize("name", ["cvpr2024", "preprint"])
def test_presets_search_by_a_seed_map_and_report_in_their_reading(net, name):
    found = find_evidence(net, blobs(1), settings=preset(name).changed(max_size=3))[0]
    assert found.settings == preset(name).changed(max_size=3)
    assert found.settings.search == "sag"
    assert found.subexplanations() == found.subexplanations(found.settings.counting)


def test_settings_come_from_one_place(net):
    chosen = Settings(baseline="black", max_size=1)
    assert find_evidence(net, blobs(1), settings=chosen)[0].settings is chosen
    with pytest.raises(OptionError, match=r'settings=preset\("cvpr2024"\)\.changed\(grid=5\)'):
        find_evidence(net, blobs(1), settings="cvpr2024", grid=5)
    with pytest.raises(OptionError, match=r"settings=settings\.changed\(grid=5, baseline=…\)"):
        find_evidence(net, blobs(1), settings=chosen, grid=5, baseline=torch.zeros(3, 28, 28))


def test_targets_and_mistakes(net):
    images = blobs(3)
    found = find_evidence(net, images, targets=[0, 1, 2], baseline="black", max_size=1)
    assert [e.target for e in found] == [0, 1, 2]
    for message, arguments in {
        "2 targets were given for 3 images": {"targets": [0, 1]},
        "no preset 'cvpr'": {"settings": "cvpr"},
        "search='magic'": {"search": "magic"},
        "images_at_once=0": {"images_at_once": 0},
        "on_error='ignore'": {"on_error": "ignore"},
    }.items():
        with pytest.raises(OptionError, match=message):
            find_evidence(net, images, **arguments)
    with pytest.raises(OptionError, match="Ratios of logits"):
        find_evidence(net.replace(score="logit"), images)
    hints = {"target": "Did you mean targets=", "beam": "Did you mean 'beam_width'", "zz": "See help"}
    for name, hint in hints.items():
        with pytest.raises(OptionError, match=rf"find_evidence has no argument '{name}'\. {hint}"):
            find_evidence(net, images, **{name: 3})
