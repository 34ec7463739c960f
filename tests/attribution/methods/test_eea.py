"""EEA beside a literal twin: one image, one explainer, one step after the other; and the shipped explainers."""

import copy
import json
import shutil

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch.nn import functional as F

import suffice
from benchmarks import explainer_speed
from suffice.attribution import find_method
from suffice.attribution.learned import load_explainer, read_explainer_facts, ready_explainer
from suffice.attribution.learned.images import short_id
from suffice.attribution.learned.ready import READY
from suffice.errors import CheckpointError, OptionError
from suffice.metrics import data_randomization, score_table
from suffice.vision.identity import content_hash
from tests.attribution.trained import scenes, trained

STEPS, LR = 4, 0.002


def twin(net, loaded, image, target):
    """Masks and losses before, between and after the steps, [STEPS + 1, h, w], as the paper has it for one image."""
    explainer = copy.deepcopy(loaded.explainer)
    for parameter in explainer.head.parameters():
        parameter.requires_grad_()
    optimizer = torch.optim.Adam(explainer.head.parameters(), lr=LR)
    masks, losses = [], []
    for _ in range(STEPS + 1):
        mask = explainer(image[None])
        shown = image[None] * F.interpolate(mask[:, None], image.shape[-2:], mode="bilinear", align_corners=False)
        loss = F.cross_entropy(net.logits(net.normalize(shown)), torch.tensor([target]))
        loss = loss + loaded.recipe.mask_weight * F.binary_cross_entropy(mask, torch.zeros_like(mask))
        masks.append(mask[0].detach())
        losses.append(float(loss.detach()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.module.zero_grad()
    return torch.stack(masks), losses


@pytest.fixture(scope="module", params=["resnet", "deit"])
def case(request):
    """A network, its explainer, three scenes with a class each, and what the twin makes of them."""
    net = trained(request.param)
    loaded = load_explainer(ready_explainer(net), net)
    pixels, targets = scenes()[0][:3], scenes()[1][:3]
    return net, pixels, targets, [twin(net, loaded, image, t) for image, t in zip(pixels, targets, strict=True)]


def test_all_images_at_once_are_as_one_by_one(case):
    net, pixels, targets, twins = case
    last = suffice.attribute(net, pixels, "eea", targets, steps=STEPS, lr=LR, choose="last").maps
    best = suffice.attribute(net, pixels, "eea", targets, steps=STEPS, lr=LR).maps
    for image, (masks, losses) in enumerate(twins):
        assert torch.allclose(last[image], masks[-1], atol=2e-3)
        assert torch.allclose(best[image], masks[losses.index(min(losses))], atol=2e-3)


def test_pretrained_is_where_fine_tuning_begins(case):
    net, pixels, targets, twins = case
    first = suffice.attribute(net, pixels, "eea", targets, mode="pretrained").maps
    none = suffice.attribute(net, pixels, "eea", targets, steps=0).maps
    for image, (masks, _) in enumerate(twins):
        assert torch.allclose(first[image], masks[0], atol=1e-5)
        assert torch.allclose(none[image], masks[0], atol=1e-5)


def test_chosen_by_pos_none_of_the_others_is_better(case):
    net, pixels, targets, twins = case
    how = {"metric": "pos", "protocol": "eea", "targets": targets, "target_class": None}
    chosen = suffice.attribute(net, pixels, "eea", targets, steps=STEPS, lr=LR, choose="pos")
    found = suffice.measure(net, pixels, chosen.maps, **how).values
    for step in range(STEPS + 1):
        masks = torch.stack([masks[step] for masks, _ in twins])
        assert (found <= suffice.measure(net, pixels, masks, **how).values + 1e-3).all()


@pytest.mark.parametrize("choose", ["loss", "last", "pos"])
def test_nothing_is_asked_that_no_mask_depends_on(choose):
    net, pixels = trained("deit"), scenes()[0][:2]
    options = {"steps": 3, "choose": choose, "mode": "fine-tuned"}
    runner = suffice.Runner(net)
    suffice.attribute(net, pixels, "eea", scenes()[1][:2], runner=runner, **options)
    counted = runner.counters
    assert counted.backwards == 2 * 3
    assert counted.forwards == 2 * find_method("eea").questions_of(net, options)
    assert counted.forwards == 2 * {"loss": 4, "last": 3, "pos": 3 + 10 * 4 + 1}[choose]


def test_a_head_from_scratch_depends_on_the_seed():
    net, pixels = trained("deit"), scenes()[0][:1]
    zero, usual, one = (
        suffice.attribute(net, pixels, "eea", mode="scratch", steps=0, **seed).maps
        for seed in ({"seed": 0}, {}, {"seed": 1})
    )
    assert torch.equal(zero, usual)
    assert (zero - one).abs().max() > 1e-3


def test_without_an_explainer_the_command_is_named():
    with pytest.raises(OptionError, match="suffice train explainer --model zoo/vgg") as error:
        suffice.attribute(trained("vgg"), "scenes:test[:1]", "eea")
    assert "explainer=PATH" in str(error.value)
    assert "eea" not in suffice.list_methods(net=trained("vgg"))


def test_a_folder_has_an_explainer_for_each_model(tmp_path):
    net, other = trained("deit"), trained("resnet")
    for one in (net, other):
        shutil.copy(ready_explainer(one), tmp_path)
    (tmp_path / "notes.safetensors").write_bytes(b"something else")
    how = {"mode": "pretrained", "explainer": tmp_path}
    for one in (net, other):
        found = suffice.attribute(one, scenes()[0][:1], "eea", **how).maps
        assert torch.equal(found, suffice.attribute(one, scenes()[0][:1], "eea", mode="pretrained").maps)
    with pytest.raises(OptionError, match="has no explainer of it; `suffice train explainer --model zoo/vgg"):
        suffice.attribute(trained("vgg"), scenes()[0][:1], "eea", **how)
    with pytest.raises(OptionError, match="there is no explainer"):
        suffice.attribute(net, scenes()[0][:1], "eea", explainer=tmp_path / "missing")


def another_explainer(net, path, mask_weight=9.0):
    """An explainer of a network as it comes with the package, but with another head and another λ."""
    ready = ready_explainer(net)
    with safe_open(ready, framework="pt") as file:
        facts = json.loads(file.metadata()["suffice"])
    facts["recipe"]["mask_weight"] = mask_weight
    save_file(
        {k: -v if k.startswith("head") else v for k, v in load_file(ready).items()},
        path,
        {"suffice": json.dumps(facts)},
    )


def test_of_several_in_a_folder_the_one_with_the_usual_name_is_taken(tmp_path):
    net, image = trained("deit"), scenes()[0][:1]
    shutil.copy(ready_explainer(net), tmp_path)
    another_explainer(net, tmp_path / "zoo-deit-by-zoo-resnet.safetensors")  # first by alphabet
    found = suffice.attribute(net, image, "eea", mode="pretrained", explainer=tmp_path)
    assert torch.equal(found.maps, suffice.attribute(net, image, "eea", mode="pretrained").maps)
    assert found.about["settings"]["learned"]["file"] == "zoo-deit.safetensors"


@pytest.mark.parametrize("any_weights", [False, True])
def test_of_several_in_a_folder_none_is_guessed(tmp_path, any_weights):
    net = trained("deit")
    shutil.copy(ready_explainer(net), tmp_path / "mine.safetensors")
    another_explainer(net, tmp_path / "other.safetensors")
    with pytest.raises(OptionError, match=r"2 explainers of zoo/deit, mine\.safetensors, other\.safetensors, and none"):
        suffice.attribute(net, scenes()[0][:1], "eea", explainer=tmp_path, any_weights=any_weights)


def test_records_say_which_file_of_a_folder_made_the_maps_and_what_it_decided(tmp_path):
    net, image = trained("deit"), scenes()[0][:1]
    records = []
    for number, weight in enumerate([3.0, 9.0]):
        file = tmp_path / f"{number}" / "mine.safetensors"
        file.parent.mkdir()
        another_explainer(net, file, mask_weight=weight)
        found = suffice.attribute(net, image, "eea", explainer=file.parent, steps=0)
        told = {"mask_weight": weight, "mask_loss": "bce", "baseline": "black"}
        assert found.about["settings"]["learned"] == {
            "file": "mine.safetensors", "hash": content_hash(file.read_bytes()), **told
        }  # fmt: skip
        assert json.loads(found.to_arrow().schema.metadata[b"suffice"])["settings"]["learned"]["mask_weight"] == weight
        records.append(found.settings["learned"]["hash"])
    assert records[0] != records[1]
    assert find_method("eea").incompatibility(net, found.settings["options"]) is None  # options stay options


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mode": "pretrained"}, {"file": "zoo-deit.safetensors"}),  # nothing is fine-tuned, so there is no loss
        ({"mode": "scratch", "mask_weight": 2.0}, {"mask_weight": 2.0, "mask_loss": "bce", "baseline": "black"}),
        (
            {"mask_weight": 0.5, "mask_loss": "l1"},
            {"file": "zoo-deit.safetensors", "mask_weight": 0.5, "mask_loss": "l1", "baseline": "black"},
        ),
    ],
)
def test_records_say_what_was_used(options, said):
    learned = suffice.attribute(trained("deit"), scenes()[0][:1], "eea", steps=0, **options).settings["learned"]
    assert {key: value for key, value in learned.items() if key != "hash"} == said
    assert ("hash" in learned) == ("file" in said)


def test_tables_of_scores_and_sanity_checks_say_it_too(tmp_path):
    net, image = trained("deit"), scenes()[0][:1]
    hashed = content_hash(ready_explainer(net).read_bytes())
    options = {"eea": {"mode": "pretrained"}}
    table = score_table([net], image, ["eea", "gradient"], ["insertion"], options=options, metric_options={"steps": 2})
    of_table = table.about["zoo/deit"]["settings"]["methods"]
    assert [one.get("learned", {}).get("hash") for one in of_table.values()] == [hashed, None]
    another_explainer(net, tmp_path / "other.safetensors")
    other = {"eea": {"explainer": str(tmp_path)}}
    checked = data_randomization(
        net, net.with_module(copy.deepcopy(net.module)), image, "eea", options=options, permuted_options=other
    )
    settings = checked.about["settings"]
    assert settings["methods"]["eea"]["learned"]["hash"] == hashed
    assert settings["permuted_options"]["eea"]["learned"]["file"] == "other.safetensors"


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "notes.safetensors").write_bytes(b"something else")
    with pytest.raises(CheckpointError, match="is no explainer that `suffice train explainer` wrote"):
        suffice.attribute(trained("deit"), scenes()[0][:1], "eea", explainer=tmp_path / "notes.safetensors")


def test_pos_is_of_the_class_explained_as_the_loss_is(monkeypatch):
    """Published is the label's, also where the predicted class is explained; see docs/train-an-explainer.md."""
    from suffice.attribution.learned import fine_tuning

    asked, plain = [], fine_tuning.pos_scores
    monkeypatch.setattr(
        fine_tuning, "pos_scores", lambda probe, masks: asked.append(probe.targets) or plain(probe, masks)
    )
    targets = scenes()[1][:2]
    suffice.attribute(trained("deit"), scenes()[0][:2], "eea", targets, steps=1, choose="pos")
    assert [one.tolist() for one in asked] == [targets] * 2


def test_shipped_explainers_are_small_and_saw_no_test_scene():
    files = sorted(READY.glob("*.safetensors"))
    assert [file.stem for file in files] == ["zoo-convnext", "zoo-deit", "zoo-resnet", "zoo-swin-4"]
    assert sum(file.stat().st_size for file in files) <= 4_000_000
    tests = {short_id(i) for i in suffice.open_images("scenes:test[:40]").ids}
    for file in files:
        facts = read_explainer_facts(file)
        net = trained(facts["explained"]["name"].removeprefix("zoo/"))
        assert ready_explainer(net) == file
        loaded = load_explainer(file, net)
        assert len(loaded.seen) == facts["images"]["trained on"] > 500
        assert not loaded.seen & tests
        assert facts["images"]["name"].startswith("scenes:train")


def test_in_half_precision_the_explainer_runs_in_it_too():
    net, pixels = trained("deit"), scenes()[0][:2]
    exact, half = (
        suffice.attribute(net, pixels, "eea", mode="pretrained", precision=precision).maps
        for precision in ("fp32", "bf16")
    )
    assert not torch.equal(exact, half)
    assert torch.allclose(exact, half, atol=0.05)


def test_the_benchmark_compares_the_same_work(case):
    net, pixels, _, _ = case
    loaded = load_explainer(ready_explainer(net), net)
    ours = suffice.attribute(net, pixels, "eea", steps=2, lr=explainer_speed.LR, mask_weight=50).maps
    loop = explainer_speed.OneAtATime(net, loaded.explainer, 2)
    assert explainer_speed.WEIGHT == 50
    for image, mask in zip(pixels, ours, strict=True):
        assert torch.allclose(loop.same_work(image[None])[0], mask, atol=2e-3)
