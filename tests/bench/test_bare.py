"""The bare model is the runner's own module, in the runner's own variant, and nothing else."""

import pytest
import torch
from torch import nn

from suffice.bench import BareModel, bare_forwards_per_second
from suffice.perturb import Runner
from tests.attribution.nets import small_cnn, tutorial_cnn


def layers_of(module):
    return [type(part) for part in module.modules() if isinstance(part, (nn.Conv2d, nn.BatchNorm2d))]


@pytest.fixture
def seen(monkeypatch):
    """Everything that goes through a convolution or batch normalization: type of the layer, and its input."""
    found = []

    def note(layer, inputs, _):
        if isinstance(layer, (nn.Conv2d, nn.BatchNorm2d)):
            found.append((type(layer), inputs[0]))

    handle = nn.modules.module.register_module_forward_hook(note)
    yield found
    handle.remove()


@pytest.mark.parametrize("fold", [True, False])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_what_runs_is_what_the_runner_runs(seen, precision, fold):
    runner = Runner(small_cnn(), batch_size=3, precision=precision, fold=fold)
    bare = BareModel(runner)
    seen.clear()
    bare.run(2)
    assert [layer for layer, _ in seen] == 2 * layers_of(runner.module)
    assert (nn.BatchNorm2d in layers_of(runner.module)) is not fold
    first = seen[0][1]
    assert first.dtype == runner.dtype
    assert first.shape == (3, 3, 32, 32)
    assert first.is_contiguous(memory_format=torch.channels_last)


def test_forwards_of_the_bare_model_are_not_counted():
    runner = Runner(small_cnn(), batch_size=3)
    bare = BareModel(runner)
    before = runner.counters.forwards
    assert bare.forwards_per_second() > 0
    assert runner.counters.forwards == before


def test_a_network_that_cannot_have_channels_last_gets_what_it_can():
    runner = Runner(tutorial_cnn(), batch_size=2, channels_last=True)
    bare = BareModel(runner)
    assert runner.contiguous_only
    assert bare.inputs.is_contiguous()
    assert bare_forwards_per_second(runner, seconds=0.001, rounds=1) > 0


def test_the_variant_is_the_runners_own(seen):
    inside = Runner(small_cnn(), batch_size=2).variant("inside")
    bare = BareModel(inside)
    seen.clear()
    bare.run()
    assert nn.BatchNorm2d in [layer for layer, _ in seen]  # not folded where something inside is read
