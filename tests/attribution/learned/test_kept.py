"""Networks that keep, from one forward to the next, what they made of their weights."""

import timm
import torch

from suffice.attribution.learned import (
    ExplainerRecipe,
    ShapleyRecipe,
    load_explainer,
    load_shapley,
    save_explainer,
    save_shapley,
    train_explainer,
    train_shapley,
)
from suffice.vision import Classifier
from tests.attribution.nets import MEAN, STD, pictures

SIZE = 64


def levit(size=SIZE):
    """It keeps its positions' biases, in evaluation mode and with their graph."""
    torch.manual_seed(0)
    module = timm.models.levit.Levit(
        img_size=size, embed_dim=(16, 24), key_dim=8, depth=(1, 1), num_heads=(2, 3), num_classes=4
    )
    for part in module.modules():
        if isinstance(part, torch.nn.BatchNorm1d):  # some begin at 0, behind which nothing of attention is seen
            torch.nn.init.ones_(part.weight)
    net = Classifier(module.eval(), size=size, mean=MEAN, std=STD, name="small-levit")
    net(pictures(1, size))  # with gradients, as it is first tried
    return net


def biases(module):
    return module.get_submodule("stages.0.blocks.0.attn").attention_biases.detach()


def assert_current(module):
    """What a module kept from its last forward is of the weights that it has."""
    keeping = [part for part in module.modules() if getattr(part, "attention_bias_cache", None)]
    assert keeping
    for part in keeping:
        for kept in part.attention_bias_cache.values():
            torch.testing.assert_close(kept, part.attention_biases[:, part.attention_bias_idxs])


def test_explainers_learn_what_is_kept_and_files_bring_it_back(tmp_path):
    net, images = levit(), pictures(30, SIZE)
    made = train_explainer(net, images, ExplainerRecipe(steps=3, batch=4, lr=0.05))
    assert (biases(made.explainer.trunk.module) - biases(net.module)).abs().max() > 0.01
    save_explainer(made, tmp_path / "explainer")
    for explainer in (made.explainer, load_explainer(tmp_path / "explainer", net).explainer):
        explainer(images[:1])
        assert_current(explainer.trunk.module)


def test_surrogates_learn_what_is_kept_and_files_bring_it_back(tmp_path):
    net, images = levit(), pictures(30, SIZE)
    recipe = ShapleyRecipe(surrogate_steps=3, steps=2, batch=4, sets=2, surrogate_lr=0.05)
    made = train_shapley(net, images, recipe)
    assert (biases(made.surrogate.module) - biases(net.module)).abs().max() > 0.01
    save_shapley(made, tmp_path / "shapley")
    for learned in (made, load_shapley(tmp_path / "shapley", net)):
        learned.surrogate(images[:1])
        assert_current(learned.surrogate.module)
