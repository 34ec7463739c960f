"""Every metric keeps every promise, and so do sanity checks where memory runs out."""

import math

import pytest
import torch

from suffice.attribution import attribute
from suffice.metrics import all_metrics, find_metric, measure, sanity_check
from suffice.testing import CHECKS
from tests.attribution.nets import pictures
from tests.metrics.nets import brightness, sharp_cnn

# Fewer steps: promises do not depend on how many. Two baselines, one of them random, where a metric takes several.
STEPS = {"steps": 4, "baseline": ["noise", "blur"]}
QUICK = {
    "insertion": STEPS,
    "deletion": STEPS,
    "ins-del": {"steps": 4, "baseline": ["noise", "blur"], "deletion_baseline": "gray"},
    "morf": {"units": 4, "step_size": 5},
    "lerf": {"units": 4, "step_size": 5},
    "aic": {"minimum": 0.0, "shares": (0.1, 0.5), "points": 50},
    "sic": {"minimum": 0.0, "shares": (0.1, 0.5), "points": 50},
    "adp": {"baseline": "noise"},
    "pic": {"baseline": "gray"},
    "pos": {"baseline": "gray"},
    "neg": {"baseline": "gray"},
    "pointing-game": {"tolerance": 5.0},
    "localization": {"threshold": 0.5, "overlap": None},
    "sensitivity-max": {"samples": 2, "radius": 0.1},
}
BOX = (4.0, 4.0, 20.0, 20.0)


def textured():
    """Pictures that every metric judges: finer than what is left of them at the start of an information curve."""
    noise = torch.rand(3, 3, 32, 32, generator=torch.Generator().manual_seed(5))
    return (0.6 * pictures(3, seed=5) + 0.4 * noise).clamp(0, 1)


def measured(name, net, images):
    maps = brightness(images.detach())
    if "method" in find_metric(name).needs:
        maps = attribute(net, images, "gradient", batch_size=2)
    return measure(net, images, maps, name, boxes=[BOX] * len(images), batch_size=5, **QUICK.get(name, {})).values


# Half a batch is more than one image of three; all other promises are the same for two.
OF_BATCHES = {"batch_invariance", "order", "memory"}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("name", all_metrics())
def test_promises(name, check):
    few = 3 if check.__name__ in OF_BATCHES else 2
    check(lambda net, images: measured(name, net, images), sharp_cnn(), textured()[:few], 1e-5)


@pytest.mark.parametrize("name", all_metrics())
def test_values_lie_within_their_bounds_and_differ(name):
    """Otherwise promises about batches and order would be kept by anything."""
    found = measured(name, sharp_cnn(), textured())
    low, high = find_metric(name).bounds
    assert low <= float(found.min()) <= float(found.max()) <= high + 1e-6
    assert float(found.max() - found.min()) > 1e-3
    assert math.isfinite(high) or name == "sensitivity-max"


def test_a_sanity_check_goes_on_where_memory_runs_out():
    def run(net, images):
        coarse = {"occlusion": {"window": 16, "stride": 16}}
        found = sanity_check(net, images, ["gradient", "occlusion"], options=coarse)
        return torch.cat([row.values["spearman"][0].T for row in found.rows], dim=1).float()

    CHECKS["memory"](run, sharp_cnn(), textured(), 1e-5)
