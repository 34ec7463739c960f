"""Every method works on every architecture of the zoo, or says clearly why not."""

import pytest
import torch

from suffice import attribute
from suffice.attribution import all_methods
from suffice.errors import OptionError
from suffice.perturb import Runner
from suffice.zoo.architectures import ARCHITECTURES
from tests.attribution.nets import tutorial_cnn
from tests.attribution.test_conformance import OUTSIDE, QUICK
from tests.attribution.trained import untrained

# And on a network as beginners write it, since many bring their own. Two of the zoo are others' twins by architecture.
NAMES = [*sorted(set(ARCHITECTURES) - {"resnet-aug", "swin-4"}), "tutorial-cnn"]


# What is inside differs for methods that look there; of all others one asks for scores, one for gradients.
INSIDE = [name for name in all_methods() if name not in OUTSIDE or name in ("occlusion", "gradient")]


@pytest.fixture(scope="module")
def runner(request):
    return Runner(tutorial_cnn() if request.param == "tutorial-cnn" else untrained(request.param), batch_size=32)


# Score-CAM reads what Grad-CAM reads, and then asks for scores as occlusion does, once for each of many channels.
SOME_ARE_ENOUGH = {"score-cam": ("vgg", "deit", "tutorial-cnn")}
# Larger kernels or windows, and one norm for another: of each family one such variant is tried every time.
VARIANTS = ("convnext-3", "convnext-3-gn", "swin-4-gn")
CASES = [
    pytest.param(net, name, marks=[pytest.mark.slow] if net in VARIANTS else [])
    for net in NAMES
    for name in INSIDE
    if net in SOME_ARE_ENOUGH.get(name, NAMES)
]
FEW = {**QUICK, "occlusion": {"window": 28, "stride": 28}}


@pytest.mark.parametrize(("runner", "name"), CASES, indirect=["runner"])
def test_works_or_says_why_not(name, runner):
    net = runner.net
    images = torch.rand(2, 3, *net.size, generator=torch.Generator().manual_seed(0))
    before = {k: v.clone() for k, v in net.module.state_dict().items()}
    reason = ""
    try:
        found = attribute(net, images, name, runner=runner, **FEW.get(name, {}))
    except OptionError as error:
        reason = str(error)
    if reason:
        assert net.name in reason
        # Only what reads attention or tokens may find some architecture incompatible.
        assert {"attention", "tokens"} & set(all_methods()[name].needs)
        return
    assert found.maps.isfinite().all()
    assert found.maps.shape[0] == 2
    # With random weights a CAM may be negative, and hence 0, everywhere; one control is the same for all images.
    assert (found.maps[0] != found.maps[1]).any() or ("cam" in name and not found.maps.any()) or name == "center"
    assert all(torch.equal(v, before[k]) for k, v in net.module.state_dict().items())
