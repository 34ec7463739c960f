"""Weight decay and the moving average."""

import pytest
import torch
from torch import nn

from suffice.zoo.training import Recipe
from suffice.zoo.training.optimize import MovingAverage, optimizer_for


def test_weight_decay_spares_vectors_and_what_the_network_excepts():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.norm = nn.Linear(2, 3), nn.LayerNorm(3)
            self.pos_embed = nn.Parameter(torch.zeros(1, 4, 3))
            self.frozen = nn.Parameter(torch.zeros(2, 2), requires_grad=False)

        def no_weight_decay(self):
            return {"pos_embed"}

    net = Net()
    groups = optimizer_for(net, Recipe(weight_decay=0.3)).param_groups
    decayed = {group["weight_decay"]: {id(p) for p in group["params"]} for group in groups}
    others = {id(p) for p in (net.linear.bias, *net.norm.parameters(), net.pos_embed)}
    assert decayed == {0.3: {id(net.linear.weight)}, 0.0: others}


def test_the_moving_average_by_hand():
    module = nn.Linear(1, 1, bias=False)
    nn.init.constant_(module.weight, 0.0)
    average = MovingAverage(module, decay=0.75)
    nn.init.constant_(module.weight, 1.0)
    average.update(module, step=0)  # the first step keeps a tenth
    assert average.module.weight.item() == pytest.approx(0.9)
    average.update(module, step=1000)
    assert average.module.weight.item() == pytest.approx(0.75 * 0.9 + 0.25)
