import copy

import pytest
import torch
from torch import nn

from suffice.perturb import Forwarder
from suffice.perturb.benchmark import bare_forwards_per_second
from suffice.vision import Classifier
from tests.attribution.nets import MEAN, STD, SmallCNN, pictures, small_cnn, tutorial_cnn

LAYOUTS = ("auto", "inputs", True, False)


def logits_of(forwarder, inputs):
    return forwarder.logits(forwarder.laid_out(inputs))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("make", [small_cnn, tutorial_cnn])
def test_layouts_change_nothing_but_speed(make, layout):
    net, inputs = make(), pictures()
    expected = net.module.eval()(inputs)
    forwarder = Forwarder(net, channels_last=layout)
    for _ in range(2):
        torch.testing.assert_close(logits_of(forwarder, inputs), expected, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(forwarder.logits_in_graph(inputs), expected, atol=1e-5, rtol=1e-5)


def test_a_network_that_views_its_maps_is_found_out_once():
    net = tutorial_cnn()
    first = Forwarder(net)
    assert first.channels_last
    assert not first.contiguous_only
    logits_of(first, pictures())
    assert first.contiguous_only
    assert not Forwarder(net).channels_last
    assert Forwarder(tutorial_cnn()).channels_last  # another of the kind is asked for itself


def test_a_network_that_views_its_maps_works_in_half_precision_too():
    net, inputs = tutorial_cnn(), pictures()
    found = logits_of(Forwarder(net, precision="bf16"), inputs)
    torch.testing.assert_close(found, net.module(inputs), atol=0.02, rtol=0.02)


def test_gradients_pass_through_the_layout():
    net, inputs = tutorial_cnn(), pictures()
    slopes = []
    for run in (net.module, Forwarder(net, channels_last="inputs").logits_in_graph):
        leaf = inputs.clone().requires_grad_()
        slopes.append(torch.autograd.grad(run(leaf)[:, 3].sum(), leaf)[0])
    torch.testing.assert_close(*slopes)


def test_bare_speed_of_a_network_that_views_its_maps():
    assert bare_forwards_per_second(Forwarder(tutorial_cnn(), batch_size=2), seconds=0.01, rounds=1) > 0


def test_only_a_copy_is_laid_out_anew():
    net = small_cnn()
    before = copy.deepcopy(net.module.state_dict())
    assert Forwarder(net, channels_last="inputs").module is net.module
    assert Forwarder(net, channels_last="auto").module is not net.module
    for name, value in net.module.state_dict().items():
        assert value.stride() == before[name].stride()


def test_other_errors_of_a_model_are_its_own():
    class Fails(SmallCNN):
        def forward(self, x):
            raise RuntimeError("no such luck")

    net = Classifier(Fails(), size=32, mean=MEAN, std=STD, name="fails")
    forwarder = Forwarder(net)
    with pytest.raises(RuntimeError, match="no such luck"):
        logits_of(forwarder, pictures())
    assert not forwarder.contiguous_only


def test_models_without_convolutions_keep_the_usual_layout():
    module = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 4))
    assert not Forwarder(Classifier(module, size=32, mean=MEAN, std=STD, name="linear")).channels_last
