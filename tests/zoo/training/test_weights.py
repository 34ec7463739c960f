import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from suffice.errors import CheckpointError
from suffice.zoo.training import Recipe, load_teacher, load_trained, read_facts, save_trained, train
from suffice.zoo.training.weights import compact


@pytest.fixture
def trained(data, net):
    return train(net(), data, Recipe(steps=20, batch=32, lr=0.01), name="small")


def test_weights_come_back_within_half_precision(trained, data, net, tmp_path):
    save_trained(trained, tmp_path / "new" / "w.safetensors")
    module, facts = load_trained(tmp_path / "new" / "w.safetensors", module=net(seed=7))
    x = torch.rand(16, 3, 8, 8)
    torch.testing.assert_close(module(x), trained.module(x), rtol=2e-3, atol=2e-3)
    assert not module.training
    assert next(module.parameters()).dtype == torch.float32
    assert facts["classes"] == list(data.classes)
    assert (facts["mean"], facts["std"], facts["size"]) == (list(data.mean), list(data.std), [8, 8])
    assert facts["accuracy"] == trained.test_accuracy
    assert facts["parameters"] == sum(p.numel() for p in module.parameters())
    assert Recipe(**facts["recipe"]) == trained.recipe
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["w.safetensors"]


def test_matrices_are_halved_and_statistics_are_not(trained, tmp_path):
    save_trained(trained, tmp_path / "w.safetensors")
    stored, own = load_file(tmp_path / "w.safetensors"), trained.module.state_dict()
    assert stored["0.weight"].dtype == stored["6.weight"].dtype == torch.float16
    for key in ("1.running_mean", "1.running_var", "1.weight", "1.bias", "0.bias"):
        assert torch.equal(stored[key], own[key])
    assert stored["1.num_batches_tracked"].dtype == torch.int64


def test_values_beyond_half_precision_survive():
    norm = nn.BatchNorm1d(2)
    norm.running_var.copy_(torch.tensor([1e6, 1e-9]))
    assert compact(norm.state_dict())["running_var"].tolist() == pytest.approx([1e6, 1e-9])
    assert compact({"w": torch.tensor([[1e5]])})["w"].item() == 1e5
    with pytest.raises(CheckpointError, match="finite"):
        compact({"w": torch.tensor([[float("nan")]])})


def test_networks_by_name_need_no_module(data, tmp_path):
    trained = train("timm/resnet10t", data, Recipe(steps=1, batch=8))
    save_trained(trained, tmp_path / "w.safetensors")
    module, facts = load_trained(tmp_path / "w.safetensors")
    assert facts["name"] == "timm/resnet10t"
    x = torch.rand(2, 3, 8, 8)
    torch.testing.assert_close(module(x), trained.module(x), rtol=1e-2, atol=1e-2)


def test_a_teacher_from_a_file(trained, data, net, tmp_path):
    save_trained(trained, tmp_path / "w.safetensors")
    teacher = load_teacher(tmp_path / "w.safetensors", module=net())
    teacher.check(data)
    pixels = data.test.pixels.float() / 255
    torch.testing.assert_close(teacher(pixels), trained.as_teacher()(pixels), rtol=5e-3, atol=5e-3)
    assert teacher.name == "small"
    recipe = replace(trained.recipe, steps=2, teacher=teacher.name)
    assert train(net(), data, recipe, teacher=teacher).recipe.teacher == "small"


def test_files_that_are_not_ours(tmp_path):
    with pytest.raises(CheckpointError, match="do not exist"):
        read_facts(tmp_path / "missing.safetensors")
    save_file({"w": torch.zeros(1)}, tmp_path / "other.safetensors", metadata={"suffice": json.dumps({})[:1]})
    save_file({"w": torch.zeros(1)}, tmp_path / "bare.safetensors")
    (tmp_path / "broken.safetensors").write_bytes(b"oops")
    for name in ("other", "bare", "broken"):
        with pytest.raises(CheckpointError, match="suffice train"):
            read_facts(tmp_path / f"{name}.safetensors")
