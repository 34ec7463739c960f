"""The painted world: what is promised of every image."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from suffice.errors import OptionError
from suffice.zoo.scenes import (
    CLASSES,
    PARTS,
    SIZE,
    Plan,
    Rendered,
    find_boxes,
    labels_of,
    plan_scenes,
    render,
    render_pixels,
    render_plan,
)

OUTLINE, TEXTURE, MARKING, CREST, TAIL = range(5)

STORED_LABELS = [11, 15, 14, 0, 1, 2, 8, 0, 10, 15, 4, 1]
STORED_MEANS = [0.355503, 0.605938, 0.362987, 0.570556]


def assert_same_pixels(one: torch.Tensor, other: torch.Tensor) -> None:
    """Up to rounding, which devices and sizes of batches may do differently: far below one of 256 levels."""
    torch.testing.assert_close(one, other, atol=1e-5, rtol=0)


@pytest.fixture(scope="module")
def some() -> Rendered:
    return render(torch.arange(400))


def grown(masks: Tensor, by: int) -> Tensor:
    """Masks [B, H, W] with a border of some pixels."""
    return F.max_pool2d(masks[:, None].float(), 2 * by + 1, 1, by)[:, 0] > 0


def assert_only_near(difference: Tensor, masks: Tensor) -> None:
    """Differences [B, H, W] lie on the masks; soft edges of thin tips, which own no pixel, may show a little beside."""
    assert not ((difference > 0.06) & ~grown(masks, 2)).any()
    assert not ((difference > 0.002) & ~grown(masks, 5)).any()


def without_occluders(plan: Plan) -> Plan:
    hidden = replace(plan.occluders, shown=torch.zeros_like(plan.occluders.shown))
    return replace(plan, occluders=hidden, present=torch.ones_like(plan.present))


def test_shapes_types_and_range(some):
    assert some.pixels.shape == (400, 3, SIZE, SIZE)
    assert some.pixels.dtype == torch.float32
    assert some.labels.dtype == torch.int64
    assert some.boxes.shape == (400, 4)
    assert some.parts.shape == (400, len(PARTS), SIZE, SIZE)
    assert some.parts.dtype == torch.bool
    assert torch.isfinite(some.pixels).all()
    assert some.pixels.min() >= 0
    assert some.pixels.max() <= 1
    # Nothing is so dark, bright or flat that it could not be seen.
    assert some.pixels.flatten(1).std(dim=1).min() > 0.04
    clipped = ((some.pixels == 0) | (some.pixels == 1)).float().mean()
    assert clipped < 0.05


def test_an_image_is_the_same_alone_and_among_others(some):
    for number in (0, 1, 63, 64, 199, 399):
        alone = render(torch.tensor([number]))
        assert_same_pixels(alone.pixels[0], some.pixels[number])
        assert torch.equal(alone.parts[0], some.parts[number])
        assert torch.equal(alone.boxes[0], some.boxes[number])
        assert alone.labels[0] == some.labels[number]


def test_order_and_batch_size_do_not_matter(some):
    order = torch.randperm(400)[:131]
    assert_same_pixels(render(order).pixels, some.pixels[order])
    pieces = [render_pixels(piece)[0] for piece in torch.arange(97).split(13)]
    assert_same_pixels(torch.cat(pieces), some.pixels[:97])


def test_fast_ways_agree_with_the_full_one(some):
    pixels, labels = render_pixels(torch.arange(400))
    assert_same_pixels(pixels, some.pixels)
    assert torch.equal(labels, some.labels)
    assert torch.equal(labels_of(torch.arange(400)), some.labels)
    assert torch.equal(find_boxes(torch.arange(400)), some.boxes)


def test_no_window_cuts_anything_off(some, monkeypatch):
    for name in ("BODY", "LIMB", "PATCH", "DISTRACTOR", "OCCLUDER"):
        monkeypatch.setattr(f"suffice.zoo.scenes.paint._{name}_WINDOW", SIZE)
    everywhere = render(torch.arange(200))
    assert (everywhere.pixels - some.pixels[:200]).abs().max() < 1e-5
    assert torch.equal(everywhere.parts, some.parts[:200])


def test_an_empty_batch_is_empty():
    empty = render(torch.zeros(0, dtype=torch.int64))
    assert empty.pixels.shape == (0, 3, SIZE, SIZE)
    assert empty.parts.shape == (0, 5, SIZE, SIZE)
    assert empty.boxes.shape == (0, 4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_gpu_paints_the_same(some):
    there = render(torch.arange(400), device="cuda")
    assert torch.equal(there.labels.cpu(), some.labels)
    assert_same_pixels(there.pixels.cpu(), some.pixels)
    assert (there.parts.cpu() != some.parts).double().mean() < 1e-6  # a pixel may be half covered to the last bit


def test_seeds_and_numbers_make_different_images(some):
    other = render(torch.arange(400), seed=1)
    assert (other.pixels - some.pixels).abs().flatten(1).mean(dim=1).min() > 0.02
    assert 0.02 < (other.labels == some.labels).float().mean() < 0.12
    assert len({tuple(image.flatten()[::97].tolist()) for image in some.pixels}) == 400


def test_the_same_class_twice_looks_different():
    twins = render(torch.arange(32), labels=torch.full((32,), 5))
    distance = torch.cdist(twins.pixels.flatten(1), twins.pixels.flatten(1)) + 1e3 * torch.eye(32)
    assert distance.min() > 3
    assert (twins.labels == 5).all()


def test_labels_are_balanced_and_free_of_the_other_choices():
    index = torch.arange(20_000)
    plan = plan_scenes(index)
    counts = torch.bincount(plan.labels, minlength=len(CLASSES)).double()
    expected = len(index) / len(CLASSES)
    assert ((counts - expected) ** 2 / expected).sum() < 45  # chi square, 15 degrees: beyond with 1 in 10,000
    for nuisance in (plan.x, plan.radius, plan.sin, plan.light[:, 1], *(c[:, 0] for c in plan.colors.values())):
        means = torch.stack([nuisance[plan.labels == label].mean() for label in range(len(CLASSES))])
        assert (means - nuisance.mean()).abs().max() < 4.5 * nuisance.std() / expected**0.5
    for flag in (*plan.present[:, 1:].T, *plan.occluders.shown.T):
        shares = torch.stack([flag[plan.labels == label].double().mean() for label in range(len(CLASSES))])
        share = flag.double().mean()
        assert (shares - share).abs().max() < 4.5 * (share * (1 - share) / expected) ** 0.5


def test_overriding_the_label_changes_nothing_else():
    index = torch.arange(16)
    drawn, chosen = plan_scenes(index), plan_scenes(index, labels=torch.arange(16))
    assert torch.equal(chosen.labels, torch.arange(16))
    assert torch.equal(drawn.x, chosen.x)
    assert torch.equal(drawn.colors["crest"], chosen.colors["crest"])
    assert torch.equal(drawn.present, chosen.present)


def test_masks_do_not_overlap_and_lie_in_the_tight_box(some):
    assert some.parts.sum(dim=1).max() == 1
    x0, y0, x1, y1 = some.boxes[:, :, None, None].unbind(1)
    line = torch.arange(SIZE)
    inside = (line >= x0) & (line < x1) & (line[:, None] >= y0) & (line[:, None] < y1)
    assert not (some.parts.any(dim=1) & ~inside).any()
    # Where nothing is in front, the box is tight.
    bare = render_plan(without_occluders(plan_scenes(torch.arange(64))))
    seen = bare.parts.any(dim=1)
    for mask, box in zip(seen, bare.boxes.tolist(), strict=True):
        rows, columns = mask.nonzero().unbind(1)
        assert box == [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]


def test_objects_and_parts_have_the_promised_sizes():
    bare = render_plan(without_occluders(plan_scenes(torch.arange(256))))
    height = bare.boxes[:, 3] - bare.boxes[:, 1]
    assert height.min() >= 30
    assert height.max() <= 50
    areas = bare.parts.flatten(2).sum(dim=2)
    assert areas.double().mean(dim=0).min() > 75
    assert areas.min() > 40


def test_enough_is_visible_to_know_the_class():
    plan = plan_scenes(torch.arange(600))
    assert plan.present.sum(dim=1).min() >= 3
    seen = render_plan(plan).parts.flatten(2).sum(dim=2)
    whole = render_plan(without_occluders(plan)).parts.flatten(2).sum(dim=2)
    clear = (seen > 0.6 * whole).sum(dim=1)
    assert clear.min() >= 2
    assert (clear >= 3).double().mean() > 0.99
    # Yet occlusion is real.
    assert (clear < 5).double().mean() > 0.2


@pytest.mark.parametrize("slot", [TEXTURE, MARKING, CREST, TAIL])
def test_taking_a_part_away_changes_only_its_place(slot):
    plan = without_occluders(plan_scenes(torch.arange(64)))
    present = plan.present.clone()
    present[:, slot] = False
    with_part, without = render_plan(plan), render_plan(replace(plan, present=present))
    difference = (with_part.pixels - without.pixels).abs().amax(dim=1)
    assert_only_near(difference, with_part.parts[:, slot])
    assert not without.parts[:, slot].any()
    # More than a few pixels, so it was to be seen.
    assert (difference > 0.02).flatten(1).sum(dim=1).min() > 40


@pytest.mark.parametrize("slot", range(5))
@pytest.mark.parametrize("turn", [1, 2, 3])
def test_another_type_is_visible_and_changes_only_its_place(slot, turn):
    plan = without_occluders(plan_scenes(torch.arange(64)))
    types = plan.types.clone()
    types[:, slot] = (types[:, slot] + turn) % 4
    before, after = render_plan(plan), render_plan(replace(plan, types=types))
    difference = (before.pixels - after.pixels).abs().amax(dim=1)
    # Another outline uncovers other pieces of texture, crest and tail.
    slots = range(5) if slot == OUTLINE else [slot]
    allowed = torch.stack([scene.parts[:, s] for scene in (before, after) for s in slots]).any(dim=0)
    assert_only_near(difference, allowed)
    assert (difference > 0.1).flatten(1).sum(dim=1).min() >= 30


def test_occluders_hide_parts_only_where_they_are():
    plan = plan_scenes(torch.arange(128))
    hidden = replace(plan.occluders, shown=torch.zeros_like(plan.occluders.shown))
    with_them, without = render_plan(plan), render_plan(replace(plan, occluders=hidden))
    assert torch.equal(with_them.boxes, without.boxes)
    lost = without.parts.any(dim=1) & ~with_them.parts.any(dim=1)
    assert not (with_them.parts & ~without.parts).any()
    none = ~plan.occluders.shown.any(dim=1)
    assert torch.equal(with_them.pixels[none], without.pixels[none])
    assert lost[~none].any(dim=(1, 2)).double().mean() > 0.7
    same = (with_them.pixels == without.pixels).all(dim=1)
    assert not (lost & same).flatten(1).float().mean(dim=1).gt(0.01).any()


def test_distractors_are_outside_the_object():
    plan = without_occluders(plan_scenes(torch.arange(256)))
    gone = replace(plan.distractors, shown=torch.zeros_like(plan.distractors.shown))
    with_them, without = render_plan(plan), render_plan(replace(plan, distractors=gone))
    changed = (with_them.pixels - without.pixels).abs().amax(dim=1) > 0.02
    shown = plan.distractors.shown.any(dim=1)
    assert shown.double().mean() > 0.9
    assert changed[shown].flatten(1).sum(dim=1).double().mean() > 30
    assert not changed[~shown].any()
    object_pixels = without.parts.any(dim=1)
    assert (changed & object_pixels).double().sum() < 0.005 * changed.sum()
    assert torch.equal(with_them.parts, without.parts)


def test_the_world_stays_as_the_stored_weights_know_it():
    # Whoever changes these numbers must train the zoo again.
    assert labels_of(torch.arange(12)).tolist() == STORED_LABELS
    means = render(torch.arange(2_000_000, 2_000_004)).pixels.mean(dim=(1, 2, 3))
    assert means.tolist() == pytest.approx(STORED_MEANS, abs=2e-5)


def test_wrong_arguments_are_named():
    with pytest.raises(OptionError, match="int64"):
        render(torch.rand(3))
    with pytest.raises(OptionError, match="labels="):
        render(torch.arange(3), labels=torch.arange(4))
    with pytest.raises(OptionError, match="outside 0"):
        render(torch.arange(2), labels=torch.tensor([0, 16]))
