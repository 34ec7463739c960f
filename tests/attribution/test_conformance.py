"""Every method keeps every promise; those that look inside do so on a convolutional network and on a transformer."""

from functools import cache

import pytest
import timm
import torch

from suffice.attribution import all_methods, attribute
from suffice.attribution.learned import ShapleyRecipe, train_shapley
from suffice.testing import CHECKS
from suffice.vision import Classifier
from tests.attribution.nets import MEAN, STD, pictures, small_cnn

# Fewer samples: promises do not depend on how many.
QUICK = {
    "attention-grad-cam": {"positive": False},  # of this small transformer the positive part is empty
    "vit-cx": {"threshold": 0.3},
    "tis": {"masks": 8},
    "tam": {"steps": 4},
    "bt-h": {"steps": 4},
    "bt-t": {"steps": 4},
    "integrated-gradients": {"steps": 4},
    "smoothgrad": {"samples": 4},
    "deep-shap": {"baselines": "noise+gray"},
    "rise": {"masks": 20},
    "occlusion": {"window": 12, "stride": 10},
    "kernel-shap": {"samples": 40, "grid": 4},
    "lime": {"samples": 40, "grid": 4},
    "eea": {"mode": "scratch", "steps": 2},  # which needs no explainer, and does all that the others do
    # Penalties so mild that the first step pays: others end with no step, and masks that say nothing.
    **{
        name: {"size": 6, "steps": 2, "iterations": 1, "l1": 0.01, "l2": 0.01, "step_size": 100.0}
        for name in ("i-gos", "igos+", "igos++")
    },
}


def vision_transformer():
    torch.manual_seed(0)
    module = timm.models.VisionTransformer(
        img_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=2, num_classes=5, class_token=True
    )
    return Classifier(module.eval(), size=32, mean=MEAN, std=STD, name="small-vit")


NETS = {"cnn": small_cnn, "vit": vision_transformer}


@cache
def options_of(name, kind):
    """Options of a method, some of them made for the network."""
    if name == "vit-shapley":
        recipe = ShapleyRecipe(surrogate_steps=1, steps=1, batch=2, sets=2)
        return {"explainer": train_shapley(NETS[kind](), pictures(30, seed=7), recipe)}
    return QUICK.get(name, {})


FITTING = [
    (name, kind)
    for kind, net in {kind: make() for kind, make in NETS.items()}.items()
    for name in all_methods()
    if all_methods()[name].incompatibility(net, options_of(name, kind)) is None
]


# What only asks for scores and gradients cannot know what is inside: one network will do, that with batch statistics.
OUTSIDE = {name for name, method in all_methods().items() if set(method.needs) <= {"gradients"}}
PROMISED = [(name, kind) for name, kind in FITTING if kind == "cnn" or name not in OUTSIDE]


def test_every_method_fits_a_network():
    assert {name for name, _ in FITTING} == {name for name, _ in PROMISED} == set(all_methods())


@pytest.fixture(scope="module")
def nets():
    made = {kind: make() for kind, make in NETS.items()}
    assert all(net.anatomy for net in made.values())  # a check that interrupts is about the method, not about this
    return made


# Half a batch is more than one image of three; all other promises are the same for two.
OF_BATCHES = {"batch_invariance", "order", "memory"}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize(("name", "kind"), PROMISED)
def test_promises(name, kind, check, nets):
    net = nets[kind]

    def run(net, images):
        return attribute(net, images, name, batch_size=5, **options_of(name, kind)).maps

    check(run, net, pictures(3 if check.__name__ in OF_BATCHES else 2), tolerance=1e-4)


@pytest.mark.parametrize("name", all_methods())
def test_maps_are_finite_and_not_constant(name, nets):
    fitting = [kind for own, kind in FITTING if own == name]
    assert fitting
    for kind in fitting:
        found = attribute(nets[kind], pictures(2), name, **options_of(name, kind))
        assert found.maps.dtype == torch.float32
        assert found.maps.isfinite().all()
        assert (found.maps.flatten(1).std(dim=1) > 0).all()
