from __future__ import annotations

import zlib
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from suffice.errors import AnatomyError, OptionError
from suffice.vision.anatomy import describe, record


def state_of(module: nn.Module) -> dict[str, Any]:
    """Everything about a module that could have changed: weights, flags, hooks, plain attributes."""
    state: dict[str, Any] = {}
    for name, part in module.named_modules():
        for key, value in vars(part).items():
            where = f"{name}:{key}"
            if "hooks" in key:
                state[where] = list(value)
            elif key in ("_parameters", "_buffers"):
                for tensor_name, tensor in value.items():
                    if tensor is not None:
                        digest = zlib.crc32(tensor.detach().contiguous().numpy())
                        state[f"{where}.{tensor_name}"] = (
                            id(tensor),
                            digest,
                            tensor.requires_grad,
                            tensor.grad if tensor.grad is None else tensor.grad.sum().item(),
                        )
            elif isinstance(value, dict):
                state[where] = list(value)
            elif isinstance(value, bool | int | float | str | tuple):
                state[where] = value
        if hasattr(part, "config"):
            state[f"{name}:implementation"] = part.config._attn_implementation
    return state


@pytest.fixture
def mixed_flags(request):
    """A module half in training mode, some parameters frozen, one with a gradient."""

    def prepare(module: nn.Module) -> nn.Module:
        parts = list(module.modules())
        flags = [(part, part.training) for part in parts]
        parameters = list(module.parameters())
        for part in parts[::2]:
            part.training = False
        parameters[0].requires_grad_(False)
        parameters[1].grad = torch.ones_like(parameters[1])

        def undo() -> None:
            for part, flag in flags:
                part.training = flag
            parameters[0].requires_grad_(True)
            parameters[1].grad = None

        request.addfinalizer(undo)
        return module

    return prepare


def test_the_model_is_as_before(specimen, mixed_flags):
    module = mixed_flags(specimen.model())
    before = state_of(module)
    anatomy = describe(module, specimen.size)
    assert state_of(module) == before
    layers = [anatomy.target_layer, *anatomy.feature_layers]
    for gradients in (False, True):
        with record(module, layers, anatomy.attention, gradients=gradients) as seen:
            assert not any(part.training for part in module.modules())
            logits = specimen.logits(specimen.images())
            if gradients:
                seen.gradients(logits[:, 1])
        assert state_of(module) == before

    class Stop(Exception):
        pass

    def stop(*_: Any) -> None:
        raise Stop

    handle = module.get_submodule(anatomy.target_layer).register_forward_hook(stop)
    before = state_of(module)
    for gradients in (False, True):
        with pytest.raises(Stop), record(module, layers, anatomy.attention, gradients=gradients):
            specimen.logits(specimen.images())
        assert state_of(module) == before
    handle.remove()


def test_recording_does_not_change_outputs(specimen):
    module = specimen.model()
    anatomy = describe(module, specimen.size)
    images = specimen.images()
    module.eval()
    with torch.no_grad():
        plain = specimen.logits(images)
    module.train()
    layers = list(dict.fromkeys([anatomy.target_layer, *anatomy.feature_layers]))
    for gradients in (False, True):
        with record(module, layers, anatomy.attention, gradients=gradients) as seen:
            recorded = specimen.logits(images)
        torch.testing.assert_close(recorded.detach(), plain, atol=1e-5, rtol=1e-5)
        assert set(seen.activations) == set(layers)
        assert set(seen.attention) == set(anatomy.attention)


def test_gradients_at_the_target_layer_are_those_of_plain_autograd(specimen):
    module = specimen.model()
    anatomy = describe(module, specimen.size)
    images = specimen.images()
    with record(module, [anatomy.target_layer], gradients=True) as seen:
        slopes = seen.gradients(specimen.logits(images)[:, 3])

    kept: list[torch.Tensor] = []
    handle = module.get_submodule(anatomy.target_layer).register_forward_hook(
        lambda _module, _inputs, output: kept.append(output)
    )
    module.eval()
    (expected,) = torch.autograd.grad(specimen.logits(images)[:, 3].sum(), kept)
    module.train()
    handle.remove()
    layer = anatomy.target_layer
    torch.testing.assert_close(seen.activations[layer].detach(), kept[0].detach(), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(slopes.activations[layer], expected, atol=1e-6, rtol=1e-4)


def test_images_in_a_batch_have_their_own_gradients(transformer):
    module = transformer.model()
    anatomy = describe(module, transformer.size)
    images = transformer.images(3)
    targets = torch.tensor([1, 4, 2])

    def look(x: torch.Tensor, y: torch.Tensor):
        with record(module, [anatomy.target_layer], anatomy.attention, gradients=True) as seen:
            logits = transformer.logits(x)
            return seen, seen.gradients(logits.gather(1, y[:, None]))

    _, together = look(images, targets)
    for i in range(3):
        _, alone = look(images[i : i + 1], targets[i : i + 1])
        layer = anatomy.target_layer
        torch.testing.assert_close(
            together.activations[layer][i : i + 1], alone.activations[layer], atol=1e-6, rtol=1e-3
        )
        for name in anatomy.attention:
            windows = alone.attention[name].shape[0]
            torch.testing.assert_close(
                together.attention[name].view(3, windows, *alone.attention[name].shape[1:])[i],
                alone.attention[name],
                atol=1e-6,
                rtol=1e-3,
            )


def small_cnn() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.ReLU(inplace=True),
        nn.Conv2d(4, 5, 3),
        nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(5, 2),
    )


def test_in_place_layers_change_nothing_that_was_recorded():
    net, images = small_cnn(), torch.randn(2, 3, 8, 8)
    with record(net, ["0", "2", "3"], gradients=True) as seen:
        slopes = seen.gradients(net(images)[:, 1])
    first = F.conv2d(images, net[0].weight, net[0].bias)
    second = F.conv2d(first.relu(), net[2].weight, net[2].bias)
    assert (first < 0).any()
    torch.testing.assert_close(seen.activations["0"], first)
    torch.testing.assert_close(seen.activations["2"], second)
    torch.testing.assert_close(seen.activations["3"], second.relu())
    share = net[6].weight[1][None, :, None, None] / second[0, 0].numel()
    torch.testing.assert_close(slopes.activations["3"], share.expand_as(second))
    torch.testing.assert_close(slopes.activations["2"], share * (second > 0))


def test_identity_followed_by_in_place_change_of_its_input():
    class Sly(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Identity()

        def forward(self, x):
            x = x * 1
            y = self.layer(x)
            x.add_(100)
            return x + y

    net = Sly()
    with record(net, ["layer"]) as seen:
        net(torch.ones(2))
    assert torch.equal(seen.activations["layer"], torch.ones(2))


@pytest.mark.parametrize("surroundings", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_gradients_work_whatever_the_surroundings(surroundings):
    net = small_cnn()
    with surroundings():
        images = torch.ones(1, 3, 8, 8)
        grad_mode = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        with record(net, ["2"], gradients=True) as seen:
            slopes = seen.gradients(net(images)[:, 0])
        assert (torch.is_grad_enabled(), torch.is_inference_mode_enabled()) == grad_mode
    assert slopes.activations["2"].abs().sum() > 0


def test_the_graph_starts_at_the_first_layer_recorded():
    net = small_cnn()
    needs: dict[int, bool] = {}
    for i in (1, 2, 3):
        net[i].register_forward_hook(lambda _m, _x, out, i=i: needs.__setitem__(i, out.requires_grad))
    with record(net, ["2", "4"], gradients=True) as seen:
        slopes = seen.gradients(net(torch.randn(1, 3, 8, 8))[:, 0])
    assert needs[1] is False
    assert needs[3] is True
    assert seen.activations["2"].is_leaf
    assert not seen.activations["4"].is_leaf
    assert all(parameter.grad is None for parameter in net.parameters())
    assert slopes.activations.keys() == {"2", "4"}


def test_gradients_may_be_asked_for_twice_and_after_leaving():
    net = small_cnn()
    with record(net, ["2"], gradients=True) as seen:
        logits = net(torch.randn(2, 3, 8, 8))
    first = seen.gradients(logits[:, 0], retain_graph=True).activations["2"]
    second = seen.gradients(logits[:, 1]).activations["2"]
    assert not torch.equal(first, second)


def test_without_gradients_no_graph_is_kept():
    net = small_cnn()
    with record(net, ["2"]) as seen:
        assert not net(torch.randn(1, 3, 8, 8)).requires_grad
    assert not seen.activations["2"].requires_grad
    with pytest.raises(OptionError, match="gradients=True"):
        seen.gradients(torch.zeros(()))


def test_a_score_from_an_earlier_pass_is_refused():
    net, images = small_cnn(), torch.randn(1, 3, 8, 8)
    with record(net, ["2"], gradients=True) as seen:
        earlier = net(images)
        net(images)
        with pytest.raises(AnatomyError, match="latest forward pass"):
            seen.gradients(earlier[:, 0])
        with pytest.raises(AnatomyError, match="latest forward pass"):
            seen.gradients(torch.zeros(2))


def test_an_unused_output_has_gradient_zero(find):
    pit = find("pit")
    with record(pit.model(), ["transformers.1", "transformers.2"], gradients=True) as seen:
        slopes = seen.gradients(pit.logits(pit.images())[:, 0])
    assert slopes.activations["transformers.1"].abs().sum() > 0
    assert slopes.activations["transformers.2"].shape == seen.activations["transformers.2"].shape
    assert slopes.activations["transformers.2"].abs().sum() == 0


def test_unknown_names_come_with_suggestions(find):
    module = find("vit").model()
    for asked in ({"activations": ["block.1"]}, {"attention": ["block.1"]}):
        with (
            pytest.raises(AnatomyError, match=r"no module named 'block\.1'.*Did you mean.*'blocks\.1'"),
            record(module, **asked),
        ):
            pass


def test_what_was_never_seen_is_an_error():
    net = small_cnn()
    with pytest.raises(AnatomyError, match=r"\['2'\].*did not run"), record(net, ["2"]):
        pass
    with pytest.raises(AnatomyError, match=r"no attention was seen in \['0'\]"), record(net, attention=["0"]):
        net(torch.randn(1, 3, 8, 8))
    with pytest.raises(ZeroDivisionError), record(net, ["2"]):
        raise ZeroDivisionError


def test_a_layer_that_runs_twice_in_one_pass_is_refused():
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x):
            return self.layer(self.layer(x))

    net = Twice()
    with pytest.raises(AnatomyError, match="several times"), record(net, ["layer"]):
        net(torch.ones(1, 3))
    net = small_cnn()
    with record(net, ["2"]) as seen:
        net(torch.zeros(1, 3, 8, 8))
        net(torch.ones(2, 3, 8, 8))
    assert seen.activations["2"].shape[0] == 2


@pytest.mark.parametrize("kind", [tuple, list, dict])
def test_the_first_tensor_of_a_compound_output_is_recorded(kind):
    class Pair(nn.Module):
        def forward(self, x):
            return {"none": None, "x": x, "y": x + 1} if kind is dict else kind([None, x, x + 1])

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pair = Pair()

        def forward(self, x):
            out = self.pair(2 * x)
            assert type(out) is kind
            _, first, second = out.values() if kind is dict else out
            return 3 * first + second.detach()

    net = Net()
    with record(net, ["pair"], gradients=True) as seen:
        slopes = seen.gradients(net(torch.ones(2)))
    assert torch.equal(seen.activations["pair"], torch.full((2,), 2.0))
    assert torch.equal(slopes.activations["pair"], torch.full((2,), 3.0))


def test_checkpointed_blocks_are_recorded_once(find):
    vit = find("vit")
    anatomy = describe(vit.model(), vit.size)

    def look():
        with record(vit.model(), ["blocks.0"], anatomy.attention, gradients=True) as seen:
            return seen.gradients(vit.logits(vit.images())[:, 0]).activations["blocks.0"]

    expected = look()
    vit.model().set_grad_checkpointing(True)
    try:
        torch.testing.assert_close(look(), expected)
        assert vit.model().grad_checkpointing is True
    finally:
        vit.model().set_grad_checkpointing(False)


def test_hooks_that_a_library_installs_while_recording_do_not_stay(find):
    specimen = find("hf-vit")
    before = state_of(specimen.model())
    with record(specimen.model(), ["vit.layers.0"]) as seen:
        output = specimen.model()(specimen.images(), output_hidden_states=True)
    assert torch.equal(output.hidden_states[1], seen.activations["vit.layers.0"])
    assert state_of(specimen.model()) == before


def test_model_outputs_of_transformers_are_recorded(find):
    specimen = find("hf-vit")
    with record(specimen.model(), ["vit"], gradients=True) as seen:
        logits = specimen.logits(specimen.images())
        slopes = seen.gradients(logits[:, 0])
    assert seen.activations["vit"].shape == (2, 17, 24)
    weight = specimen.model().classifier.weight[0].detach()
    torch.testing.assert_close(slopes.activations["vit"][:, 0], weight.expand(2, -1))
    assert slopes.activations["vit"][:, 1:].abs().sum() == 0


def test_what_a_layer_is_given_is_recorded_too():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 2))
    x = torch.randn(5, 3)
    with record(net, ["1:input", "2:input", "2"], gradients=True) as seen:
        logits = net(x)
        slopes = seen.gradients(logits[:, 1]).activations
    torch.testing.assert_close(logits, net(x))
    before = net[0](x)
    torch.testing.assert_close(seen.activations["1:input"], before)  # not what ReLU made of it in place
    torch.testing.assert_close(seen.activations["2:input"], before.relu())
    torch.testing.assert_close(slopes["2:input"], net[2].weight[1].expand(5, 4))
    torch.testing.assert_close(slopes["1:input"], net[2].weight[1] * (before > 0))
    assert not any(part._forward_pre_hooks for part in net.modules())


def test_inputs_given_by_keyword_are_recorded():
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(input=2 * x)

    net, x = Named(), torch.randn(4, 3)
    with record(net, ["layer:input"]) as seen:
        net(x)
    torch.testing.assert_close(seen.activations["layer:input"], 2 * x)
    with pytest.raises(AnatomyError, match="no module named 'layers'"), record(net, ["layers:input"]):
        pass
