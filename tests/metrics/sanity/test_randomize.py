"""Random weights: all of them, from the seed alone, and never in the caller's module."""

import copy

import pytest
import torch
import torchvision
from torch import nn

from suffice.errors import OptionError
from suffice.metrics.sanity import Randomizer
from suffice.metrics.sanity.randomize import weights_of
from suffice.zoo.architectures import ARCHITECTURES
from tests.attribution.nets import SmallCNN
from tests.metrics.sanity.architectures import build

BOTH = pytest.mark.parametrize("how", ["reinitialize", "permute"])


def as_if_trained(module, seed=0):
    """No weight has the value that it began with."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in weights_of(module).values():
            tensor.add_(0.01 + 0.01 * torch.rand(tensor.shape, generator=generator))
    return module.eval()


def values(module):
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


@BOTH
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_after_the_last_step_every_weight_of_every_architecture_differs(name, how):
    module = as_if_trained(build(name))
    before = values(module)
    random = Randomizer(module, how, seed=0)
    random.randomize(random.layers)
    after = random.module.state_dict()
    learned = weights_of(module)
    assert [n for n in learned if after[n].equal(before[n])] == []
    assert all(after[n].equal(before[n]) for n in before.keys() - learned.keys())  # indices and counters stay
    assert all(tensor.isfinite().all() for tensor in after.values())
    assert all(tensor.equal(before[n]) for n, tensor in module.state_dict().items())
    assert random.module(torch.rand(2, 3, 56, 56)).isfinite().all()


def test_one_layer_is_random_and_the_others_are_trained():
    module = as_if_trained(build("deit"))
    random = Randomizer(module)
    random.randomize(random.layers[2:3])
    changed = [n for n, p in random.module.named_parameters() if not p.equal(module.get_parameter(n))]
    assert changed == list(random.layers[2].tensors)
    random.randomize([])
    assert all(p.equal(module.get_parameter(n)) for n, p in random.module.named_parameters())


def test_permuting_keeps_the_values_and_moves_them():
    module = as_if_trained(SmallCNN())
    random = Randomizer(module, "permute")
    random.randomize(random.layers)
    for name, tensor in weights_of(random.module).items():
        trained = weights_of(module)[name]
        assert tensor.flatten().sort().values.equal(trained.flatten().sort().values)
        assert not tensor.equal(trained)


def test_reinitializing_gives_what_a_new_module_has():
    module = as_if_trained(SmallCNN())
    random = Randomizer(module)
    random.randomize(random.layers)
    norm = random.module.first[1]
    assert norm.weight.eq(1).all()
    assert norm.bias.eq(0).all()
    assert norm.running_mean.eq(0).all()
    assert norm.running_var.eq(1).all()
    bound = 1 / (3 * 9) ** 0.5  # of torch's own beginning for 3 channels and 3×3 kernels
    kernel = random.module.first[0].weight
    assert kernel.abs().max() <= bound
    assert kernel.abs().max() > 0.8 * bound


def test_what_no_module_resets_is_drawn_with_mean_and_deviation_of_the_trained_values():
    module = build("deit")
    with torch.no_grad():
        module.pos_embed.copy_(3 + 0.5 * torch.randn(module.pos_embed.shape))
    random = Randomizer(module)
    random.randomize(random.layers)
    drawn, trained = (m.pos_embed.detach().flatten() for m in (random.module, module))
    assert float(drawn.mean()) == pytest.approx(3, abs=0.02)
    assert float(drawn.std()) == pytest.approx(0.5, abs=0.02)
    assert abs(float(torch.corrcoef(torch.stack([drawn, trained]))[0, 1])) < 0.1


def test_frozen_normalizations_begin_anew_too():
    module = nn.Sequential(nn.Conv2d(3, 4, 3), torchvision.ops.FrozenBatchNorm2d(4))
    as_if_trained(module)
    random = Randomizer(module)
    random.randomize(random.layers)
    norm = random.module[1]
    assert [float(t.mean()) for t in (norm.weight, norm.bias, norm.running_mean, norm.running_var)] == [1, 0, 0, 1]


def test_a_reset_that_needs_arguments_is_not_called():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(torch.rand(50, 2))

        def reset_parameters(self, low):
            raise AssertionError

    module = nn.Sequential(Own(), nn.Linear(2, 2))
    random = Randomizer(module)
    random.randomize(random.layers)
    assert not random.module[0].table.equal(module[0].table)


def test_what_a_module_remembered_of_its_trained_weights_is_forgotten():
    module = as_if_trained(build("levit"))
    pixels = torch.rand(2, 3, 56, 56)
    before = module(pixels)  # LeViT keeps its position biases after this, as part of the graph
    kept = [m.attention_bias_cache for m in module.modules() if getattr(m, "attention_bias_cache", None)]
    assert kept
    random = Randomizer(module)
    still = [m.attention_bias_cache for m in module.modules() if getattr(m, "attention_bias_cache", None)]
    assert [id(cache) for cache in still] == [id(cache) for cache in kept]
    assert not module.training
    torch.testing.assert_close(random.module(pixels), before)
    random = Randomizer(module)
    random.randomize(random.layers)
    fresh = build("levit").eval()
    fresh.load_state_dict(random.module.state_dict())
    torch.testing.assert_close(random.module(pixels), fresh(pixels))


@BOTH
def test_weights_follow_from_the_seed_alone(how):
    module = as_if_trained(SmallCNN())
    state = torch.get_rng_state()

    def drawn(seed):
        random = Randomizer(copy.deepcopy(module), how, seed)
        random.randomize(random.layers)
        return random.module.first[0].weight, random.module.head[0].weight

    first = drawn(5)
    assert torch.get_rng_state().equal(state)
    torch.manual_seed(99)
    assert all(a.equal(b) for a, b in zip(first, drawn(5), strict=True))
    assert not any(a.equal(b) for a, b in zip(first, drawn(6), strict=True))


def test_equal_layers_get_different_weights():
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    random = Randomizer(module)
    random.randomize(random.layers)
    assert not random.module[0].weight.equal(random.module[1].weight)


def test_an_unknown_way_is_refused():
    with pytest.raises(OptionError, match="'reinitialize' or 'permute'"):
        Randomizer(nn.Linear(2, 2), "shuffle")
