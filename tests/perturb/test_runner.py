"""The runner: variants, layouts, precision, memory, counters, and how often anything is compiled."""

import copy
import re
import warnings

import pytest
import torch
from torch import nn

from suffice.attribution import all_methods, attribute, find_method
from suffice.errors import OptionError
from suffice.perturb import Batch, Counters, Grid, Probe, Runner
from suffice.perturb.runner import AUTO_BATCH, AUTO_GRADIENT_BATCH
from suffice.testing.snapshots import model_state, out_of_memory_above
from suffice.vision import Classifier
from tests.attribution.nets import MEAN, STD, SmallCNN, pictures, small_cnn, tutorial_cnn
from tests.compiler import needs_compiler

WORKS = ("scores", "inside", "gradients", "gradients inside", "relevance")


def linear_net():
    module = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 4))
    return Classifier(module, size=32, mean=MEAN, std=STD, name="linear")


def is_folded(runner):
    return not any(isinstance(part, nn.BatchNorm2d) for part in runner.module.modules())


@pytest.mark.parametrize("layout", ["auto", True, False])
@pytest.mark.parametrize("make", [small_cnn, tutorial_cnn])
def test_layouts_change_nothing_but_speed(make, layout):
    net, inputs = make(), pictures()
    expected = net.module.eval()(inputs)
    runner = Runner(net, channels_last=layout)
    for _ in range(2):
        torch.testing.assert_close(runner.logits(inputs), expected.detach(), atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(runner.logits_with_graph(inputs), expected, atol=1e-5, rtol=1e-5)


def test_a_network_that_views_its_maps_is_found_out_once():
    net = tutorial_cnn()
    first = Runner(net)
    assert first.channels_last
    assert not first.contiguous_only
    first.logits(pictures())
    assert first.contiguous_only
    assert not Runner(net).channels_last
    assert Runner(tutorial_cnn()).channels_last  # another of the kind is asked for itself


def test_a_network_that_views_its_maps_works_in_half_precision_too():
    net, inputs = tutorial_cnn(), pictures()
    found = Runner(net, precision="bf16").logits(inputs)
    torch.testing.assert_close(found, net.module(inputs).detach(), atol=0.02, rtol=0.02)


@pytest.mark.parametrize("work", ["gradients", "gradients inside"])
def test_gradients_pass_through_the_layout(work):
    net, inputs = tutorial_cnn(), pictures()
    gradients = []
    for run in (net.module, Runner(net).variant(work).logits_with_graph):
        leaf = inputs.clone().requires_grad_()
        gradients.append(torch.autograd.grad(run(leaf)[:, 3].sum(), leaf)[0])
    torch.testing.assert_close(*gradients)


def test_only_a_copy_is_laid_out_anew():
    net = small_cnn()
    before = copy.deepcopy(net.module.state_dict())
    assert Runner(net, channels_last=True).module is not net.module
    assert Runner(net).variant("gradients").module is net.module
    for name, value in net.module.state_dict().items():
        assert value.stride() == before[name].stride()


def test_other_errors_of_a_model_are_its_own():
    class Fails(SmallCNN):
        fails = False

        def forward(self, x):
            if self.fails:
                raise RuntimeError("no such luck")
            return super().forward(x)

    net = Classifier(Fails().eval(), size=32, mean=MEAN, std=STD, name="fails")
    runner = Runner(net)
    runner.module.fails = True
    with pytest.raises(RuntimeError, match="no such luck"):
        runner.logits(pictures())
    assert not runner.contiguous_only


@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated:FutureWarning")
@pytest.mark.parametrize("normalized", [nn.utils.weight_norm, nn.utils.spectral_norm])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_weights_that_are_computed_are_copied_too(normalized, precision):
    module = nn.Sequential(
        normalized(nn.Conv2d(3, 4, 3)), nn.ReLU(), normalized(nn.Conv2d(4, 4, 3)), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    module(pictures()).sum().backward()  # leaves weights that are part of a graph
    net = Classifier(module, size=32, mean=MEAN, std=STD)
    before, runner = module[0].weight, Runner(net, precision=precision)
    found = runner.scores(pictures())
    assert runner.module is not module
    assert module[0].weight is before
    torch.testing.assert_close(found, net(pictures()).detach(), atol=0.01, rtol=0.01)


def test_models_without_convolutions_keep_the_usual_layout():
    runner = Runner(linear_net())
    assert not runner.channels_last
    assert runner.module is runner.net.module  # nothing to change, so no copy


def variants_of(net, **options):
    """(precision, dtype, compiled, folded, channels-last, own module, batch size) of each variant."""
    runner = Runner(net, **options)
    found = {}
    for work in WORKS:
        one = runner.variant(work)
        own = one.module is not net.module
        found[work] = (one.precision, one.dtype, one.compiled, is_folded(one), one.channels_last, own, one.batch_size)
    return found


CPU, GRADIENT = AUTO_BATCH["cpu"], AUTO_GRADIENT_BATCH["cpu"]


def test_variants_in_full_precision():
    full = torch.float32
    assert variants_of(small_cnn()) == {
        "scores": ("fp32", full, False, True, True, True, CPU),
        "inside": ("fp32", full, False, False, True, True, CPU),
        "gradients": ("fp32", full, False, False, True, False, GRADIENT),
        "gradients inside": ("fp32", full, False, False, True, False, GRADIENT),
        "relevance": ("fp32", full, False, False, False, False, CPU),
    }


def test_variants_in_half_precision_and_compiled(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    full, half = torch.float32, torch.bfloat16
    assert variants_of(small_cnn(), precision="bf16", compile=True, batch_size=4) == {
        "scores": ("bf16", half, True, True, True, True, 4),
        "inside": ("bf16", half, False, False, True, True, 4),
        "gradients": ("bf16", half, True, True, True, True, 4),
        "gradients inside": ("bf16", half, False, False, True, True, 4),
        "relevance": ("fp32", full, False, False, False, False, 4),
    }


def test_variants_without_folding():
    assert not any(folded for _, _, _, folded, *_ in variants_of(small_cnn(), fold=False).values())


def test_a_module_in_another_precision_is_used_in_its_own():
    net = small_cnn(torch.float64)
    runner = Runner(net)
    assert runner.dtype == torch.float64
    assert runner.logits(pictures()).dtype == torch.float32
    assert runner.variant("gradients").logits_with_graph(pictures()).dtype == torch.float64


def test_variants_on_a_gpu_without_one(monkeypatch):
    """What would be chosen there; nothing is run."""
    monkeypatch.setattr(Classifier, "device", torch.device("cuda"))
    monkeypatch.setattr("suffice.perturb.runner.foldable", lambda module, inputs: [])
    monkeypatch.setattr(torch.Tensor, "to", _stays(torch.Tensor.to))
    for layout, on_the_way_back in (("auto", False), (True, False)):
        found = variants_of(small_cnn(), channels_last=layout)
        assert {work: layout for work, (*_, layout, _, _) in found.items()} == {
            "scores": True,
            "inside": True,
            "gradients": on_the_way_back,  # slower with it there
            "gradients inside": True,  # a short way back
            "relevance": False,
        }
        sizes = {work: size for work, (*_, size) in found.items()}
        assert sizes["scores"] == sizes["inside"] == AUTO_BATCH["cuda"]
        assert sizes["gradients"] == sizes["gradients inside"] == AUTO_GRADIENT_BATCH["cuda"]


def _stays(move):
    def to(self, *args, **kwargs):
        return self if args and args[0] == torch.device("cuda") else move(self, *args, **kwargs)

    return to


def test_variants_are_made_once_and_share_their_counters():
    runner = Runner(small_cnn())
    for work in WORKS:
        one = runner.variant(work)
        assert one.work == work
        assert one is runner.variant(work)
        assert one.variant("scores") is runner
        assert one.counters is runner.counters
    mine = Counters()
    assert Runner(small_cnn(), counters=mine).variant("inside").counters is mine


def test_every_method_knows_its_variant():
    works = {name: found.work for name, found in all_methods().items()}
    assert works["rise"] == works["occlusion"] == works["score-cam"] == works["vit-cx"] == works["lime"] == "scores"
    assert works["tis"] == "scores"
    assert works["gradient"] == works["igos++"] == works["smoothgrad"] == "gradients"
    assert works["grad-cam"] == works["layer-cam"] == works["cgw2"] == works["bt-t"] == "gradients inside"
    assert works["rollout"] == works["raw-attention"] == "inside"
    assert works["cgw1"] == works["partial-lrp"] == works["deep-lift"] == "relevance"


@pytest.mark.parametrize("options", [{}, {"precision": "bf16"}, {"precision": "fp16"}, {"batch_size": 2}])
def test_the_users_module_is_left_bit_for_bit(options):
    net = small_cnn()
    net.module.train()
    before = model_state(net)
    for work in WORKS:
        one = Runner(net, **options).variant(work)
        one.logits(pictures(2))
        assert model_state(net) == before, work


def test_a_runner_keeps_the_weights_it_saw():
    net, inputs = small_cnn(), pictures()
    runner = Runner(net)
    before = runner.logits(inputs)
    with torch.no_grad():
        net.module.head[2].bias += 1
    assert torch.equal(runner.logits(inputs), before)
    assert not torch.allclose(Runner(net).logits(inputs), before)


def test_scores_of_any_number_of_images():
    net, images = small_cnn(), pictures(5)
    runner = Runner(net, batch_size=2)
    torch.testing.assert_close(runner.scores(images), net(images), atol=1e-6, rtol=1e-5)
    assert runner.counters.forwards == 5


def test_backward_passes_are_counted():
    net = small_cnn()
    runner = Runner(net).variant("gradients")
    leaf = net.normalize(pictures()).requires_grad_()
    runner.logits_with_graph(leaf)[:, 1].sum().backward()
    with torch.no_grad():
        runner.logits_with_graph(leaf)
    assert (runner.counters.forwards, runner.counters.backwards) == (6, 3)


@pytest.mark.parametrize(("most", "size"), [(5, 4), (3, 2), (1, 1)])
def test_out_of_memory_means_fewer_inputs_and_the_same_numbers(most, size):
    net, images = small_cnn(), pictures(9)
    expected, runner = Runner(net).scores(images), Runner(net, batch_size=16)
    with out_of_memory_above(runner.module, most) as refused:
        found = runner.scores(images)
    assert refused[0] == {5: 1, 3: 2, 1: 3}[most]  # 9 inputs, then 4, 2, 1
    assert runner.batch_size == size
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


def test_where_one_input_does_not_fit_the_error_is_the_models():
    runner = Runner(small_cnn(), batch_size=4)
    with out_of_memory_above(runner.module, 0), pytest.raises(torch.cuda.OutOfMemoryError, match="0 fit"):
        runner.scores(pictures())


def test_options_without_sense_are_refused():
    for options, message in (
        ({"precision": "fp8"}, "precision='fp8'; it can be 'fp32', 'ieee', 'tf32', 'bf16', 'fp16' or 'auto'"),
        ({"batch_size": 0}, "batch_size=0; it can be a whole number from 1 on or 'auto'"),
        ({"batch_size": 2.5}, "batch_size=2.5"),
    ):
        with pytest.raises(OptionError, match=message):
            Runner(small_cnn(), **options)


class Mean(nn.Module):
    def forward(self, x):
        return x.mean(dim=(2, 3))


def any_cnn(seed, width=4):
    """Ten of them are ten different networks of one and the same code."""
    torch.manual_seed(seed)
    module = nn.Sequential(
        nn.Conv2d(3, width, 3, stride=2), nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, 4, 3), Mean()
    )
    return Classifier(module.eval(), size=16, mean=MEAN, std=STD, name=f"cnn-{seed}")


@pytest.fixture
def compilations(monkeypatch):
    """Names of the functions that torch compiled, once for each graph; no compiler of C++ is needed."""
    found = []
    genuine = torch.compile
    torch._dynamo.reset()

    def counting(function, **options):
        def backend(graph, _inputs):
            found.append(re.sub(r"(_\d+)+$", "", function.__name__))
            return graph.forward

        return genuine(function, **{**options, "backend": backend})

    monkeypatch.setattr(torch, "compile", counting)
    with torch._dynamo.config.patch(fail_on_recompile_limit_hit=True):  # else it would go on uncompiled
        yield found
    torch._dynamo.reset()


def test_ten_models_one_after_the_other_compile_once_each(compilations):
    for number in range(10):
        net = any_cnn(number, width=4 + number)
        for count in (number % 3 + 1, 5):
            probe = Probe(net, pictures(count, 16), compile=True, batch_size=4, grid=4)
            probe.ask(torch.arange(9) % count, torch.arange(9) * 7 + 1)
            assert torch.allclose(probe.whole, net(pictures(count, 16)).amax(dim=1), atol=1e-5)
            # Two probes without a runner in common are two runners: blending and the model, once each.
            assert sorted(compilations) == ["blended", "forward"], (number, count)
            compilations.clear()


def test_a_runner_compiles_once_for_any_number_of_images_and_kind_of_question(compilations):
    net = any_cnn(0)
    runner = Runner(net, compile=True, batch_size=4)
    for count in (3, 1, 6, 2, 9):
        probe = Probe(net, pictures(count, 16), runner=runner, grid=4)
        probe.ask(torch.arange(11) % count, torch.arange(11) * 7 + 1)
    assert sorted(compilations) == ["blended", "forward"]
    for count in (2, 5):
        probe = Probe(net, pictures(count, 16), runner=runner, grid=4)
        probe.ask(torch.arange(7) % count, torch.rand(7, 16, 16))  # masks of floats are blended otherwise
    assert sorted(compilations) == ["blended", "blended", "forward"]


def test_gradient_modes_are_compiled_for_once_each(compilations):
    net = any_cnn(0)
    runner = Runner(net, compile=True, batch_size=4)
    for number in range(4):
        for mode in (torch.enable_grad, torch.no_grad, torch.inference_mode):
            with mode():
                Probe(net, pictures(number + 1, 16), runner=runner, grid=4).ask(0, torch.arange(5))
    # The probe needs no gradients whatever the mode around it, but tensors of inference mode are of another kind.
    assert sorted(compilations) == ["blended", "blended", "forward", "forward"]


def test_more_kinds_of_work_than_torch_has_versions_of_a_function(compilations):
    net = any_cnn(0)
    runner = Runner(net, compile=True, batch_size=4)
    for side in range(2, 13):
        Probe(net, pictures(2, 16), runner=runner, grid=side).ask(0, Grid(side).full(1))
    assert compilations.count("blended") == 11
    assert compilations.count("forward") == 1


METHODS = {
    "rise": ({"masks": 9}, ["blended", "blended", "forward"]),  # whole images, and those seen through masks
    "integrated-gradients": ({"steps": 3}, ["forward"]),
    # Each once with gradients and once without.
    "igos++": ({"steps": 3, "iterations": 2, "size": 8}, ["forward", "forward", "masked_inputs", "masked_inputs"]),
    "vit-cx": ({"threshold": 0.3}, ["blended", "blended", "_noise_where_hidden", "forward"]),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_compiles_nothing_anew_for_other_numbers_of_images(name, compilations):
    options, expected = METHODS[name]
    net = any_cnn(0)
    plain = [attribute(net, pictures(count, 16), name, batch_size=8, **options).maps for count in (5, 2, 1, 3)]
    runner = Runner(net, compile=True, batch_size=8)
    for count, wanted in zip((5, 2, 1, 3), plain, strict=True):
        found = attribute(net, pictures(count, 16), name, runner=runner, **options).maps
        torch.testing.assert_close(found, wanted, atol=2e-4 * float(wanted.abs().max()), rtol=1e-3)
    assert sorted(compilations) == sorted(expected)


def test_out_of_memory_of_a_compiled_model_compiles_the_smaller_shape_once(compilations):
    net = any_cnn(0)
    runner = Runner(net, compile=True, batch_size=8)
    expected = Runner(net).scores(pictures(9, 16))
    real, most = runner._forward, 4

    def cramped(inputs):
        if len(inputs) > most:
            raise torch.cuda.OutOfMemoryError
        return real(inputs)

    runner._forward = cramped
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.testing.assert_close(runner.scores(pictures(9, 16)), expected, atol=1e-5, rtol=1e-4)
    assert compilations == ["forward"]  # all batches are full, the last by padding


def test_without_a_compiler_it_is_said_what_is_missing():
    lacking = {"cpp.cxx": (None, "no-such-compiler"), "force_disable_caches": True}
    runner = Runner(any_cnn(7), compile=True, batch_size=2)
    with torch._inductor.config.patch(lacking), pytest.raises(OptionError, match="needs a C\\+\\+ compiler such as"):
        runner.scores(pictures(2, 16))


@needs_compiler
def test_compiled_gradients_take_full_batches():
    net, images = small_cnn(), pictures(3)
    runner = Runner(net, batch_size=4)
    shapes = set()
    runner.compiled = True
    real = runner._forward
    runner._forward = lambda inputs: (shapes.add(len(inputs)), real(inputs))[1]
    assert runner.logits(net.normalize(images)).shape == (3, 5)
    assert shapes == {4}
    assert runner.counters.forwards == 3


def test_a_method_takes_the_variant_it_needs_of_any_runner(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    net, images = small_cnn(), pictures()
    seen = []

    def function(batch):
        seen.append(batch.runner)
        return batch.pixels.mean(dim=1)

    from suffice.attribution import Method, explain

    runner = Runner(net, compile=True)
    for needs in ((), ("gradients",), ("gradients", "feature maps"), ("tokens",), ("relevance",)):
        one = Method("one", function, needs=needs)
        explain(Batch(net, images, torch.zeros(3, dtype=torch.long), list("abc"), 0, runner), one)
        assert seen[-1] is runner.variant(one.work)
    assert find_method("grad-cam").work == "gradients inside"
    # Where a runner is shared, methods that look inside get what is not compiled rather than an error.
    attribute(net, images, "grad-cam", runner=runner)
    with pytest.raises(OptionError, match="grad-cam looks inside the model"):
        attribute(net, images, "grad-cam", compile=True)


class Caching(torch.nn.Module):
    """A network that keeps what it computed until it is trained again, as LeViT does in older versions of timm."""

    def __init__(self):
        super().__init__()
        self.body, self.bias, self.kept = torch.nn.Linear(3, 4), torch.nn.Parameter(torch.ones(4)), None

    def train(self, mode=True):
        if mode:
            self.kept = None
        return super().train(mode)

    def forward(self, x):
        if self.kept is None:
            self.kept = self.bias * 2
        return self.body(x.mean(dim=(2, 3))) @ torch.diag(self.kept)


@pytest.mark.parametrize("work", ["scores", "gradients"])
def test_what_a_model_has_cached_is_not_mixed_with_another_precision(work):
    net = Classifier(Caching().eval(), size=8, mean=(0,) * 3, std=(1,) * 3)
    inputs = torch.rand(2, 3, 8, 8)
    with torch.no_grad():
        expected = net.module(inputs)
    assert net.module.kept is not None
    half = Runner(net, precision="bf16").variant(work).logits(inputs)
    torch.testing.assert_close(half, expected, atol=0.05, rtol=0.05)
    assert not net.module.training


class Merging(torch.nn.Linear):
    """A layer that adds up its weights on its way to evaluation, as loralib's do."""

    merged = False

    def train(self, mode=True):
        if mode == self.merged:
            self.merged = not mode
            self.weight.data += -1 if mode else 1
        return super().train(mode)

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight if self.merged else self.weight + 1, self.bias)


@pytest.mark.parametrize("training", [True, False])
def test_a_module_is_not_switched_to_training_and_back(training):
    module = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), Merging(3, 4)).train(training)
    net, before = Classifier(module, size=8, mean=(0,) * 3, std=(1,) * 3), model_state(module)
    expected = net(pictures()).detach()
    torch.testing.assert_close(Runner(net, precision="bf16").scores(pictures()), expected, atol=0.05, rtol=0.05)
    assert model_state(module) == before
    torch.testing.assert_close(net(pictures()).detach(), expected)
