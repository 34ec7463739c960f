"""The checks on networks for which it is known what must come out."""

import pytest
import torch
from scipy.stats import spearmanr
from torch import nn

import suffice
from suffice.attribution import from_function
from suffice.errors import OptionError
from suffice.metrics import data_randomization, sanity_check
from suffice.metrics.sanity import Randomizer, checks
from suffice.vision import Classifier
from tests.attribution.nets import MEAN, STD, pictures, small_cnn
from tests.metrics.sanity.test_randomize import as_if_trained

SIZE = 12


def gaussian(model, inputs, targets):
    line = torch.linspace(-1, 1, inputs.shape[-1])
    return torch.exp(-(line[:, None] ** 2 + line**2)).expand(len(inputs), -1, -1)


CENTRE = from_function(gaussian, "center")


def weighted_pixels(classes=3, seed=0):
    """A linear network: the gradient of a class is its row of weights."""
    torch.manual_seed(seed)
    module = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIZE * SIZE, classes))
    return Classifier(module, size=SIZE, mean=MEAN, std=STD, name="weighted-pixels")


def test_a_method_that_ignores_the_model_does_not_depend_on_it():
    net = small_cnn()
    for check in ("cascading", "independent"):
        found = sanity_check(net, pictures(4), CENTRE, check=check)
        for similarity in ("spearman", "absolute", "ssim"):
            torch.testing.assert_close(found.row("center").values[similarity], torch.ones(1, 5, 4).double())
        assert found.verdict("center").depends is False
    assert str(found.verdict("center")) == "hardly depends on head.2, head.0, second.0, first.0"


@pytest.mark.parametrize("how", ["reinitialize", "permute"])
def test_the_gradient_depends_on_the_weights(how):
    found = sanity_check(small_cnn(), pictures(12), ["gradient", CENTRE], how=how, draws=2)
    assert found.steps == ("trained", "head.2", "head.0", "second.0", "first.0")
    mean = found.row("gradient").means()
    assert float(mean[0]) == pytest.approx(1)
    assert float(mean[-1]) < 0.4
    assert found.verdict("gradient").text == "depends on the weights"
    assert found.verdict("center").text == "does not depend on the weights"


def test_similarities_are_those_of_the_weights_where_maps_are_the_weights():
    net = weighted_pixels()
    images = pictures(5, size=SIZE)
    found = sanity_check(net, images, "gradient", how="permute", seed=3, options={"gradient": {"reduction": "sum"}})
    random = Randomizer(net.module, "permute", seed=3)
    random.randomize(random.layers)
    targets = net.predict(images).targets
    assert found.targets.equal(targets)
    for image, target in enumerate(targets.tolist()):
        before, after = (m[1].weight[target].detach().view(3, -1).sum(dim=0) for m in (net.module, random.module))
        expected = spearmanr(before, after).statistic
        assert float(found.row("gradient").values["spearman"][0, 1, image]) == pytest.approx(expected, abs=1e-6)
        expected = spearmanr(before.abs(), after.abs()).statistic
        assert float(found.row("gradient").values["absolute"][0, 1, image]) == pytest.approx(expected, abs=1e-6)


def test_the_class_stays_the_one_that_the_trained_model_decided():
    net = small_cnn()
    seen = []

    def spy(model, inputs, targets):
        seen.append(targets.clone())
        return inputs.mean(dim=1)

    images = pictures(3)
    found = sanity_check(net, images, from_function(spy, "spy"))
    assert all(targets.equal(net.predict(images).targets) for targets in seen)
    assert len(seen) == 1 + len(found.steps)
    given = sanity_check(net, images, from_function(spy, "spy"), targets=[4, 0, 2])
    assert given.targets.tolist() == [4, 0, 2]
    assert seen[-1].tolist() == [4, 0, 2]


def test_cascading_keeps_what_is_random_and_independent_does_not():
    def weights(model, inputs, targets):
        parts = [model.head[2].weight, model.head[0].weight, model.second[0].weight, model.first[0].weight]
        seen.append([part.detach().clone() for part in parts])
        return inputs.mean(dim=1)

    net, patterns = small_cnn(), {}
    for check in ("cascading", "independent"):
        seen = []
        sanity_check(net, pictures(1), from_function(weights, "weights"), check=check)
        patterns[check] = [[bool(w.equal(t)) for w, t in zip(s, seen[0], strict=True)] for s in seen[1:]]
    assert patterns["cascading"] == [[i >= step for i in range(4)] for step in range(5)]
    assert patterns["independent"] == [[i != step - 1 for i in range(4)] for step in range(5)]


def test_the_first_layer_alone_is_the_first_step_of_both():
    runs = [sanity_check(small_cnn(), pictures(3), "gradient", check=c) for c in ("cascading", "independent")]
    values = [run.row("gradient").values["spearman"][0] for run in runs]
    torch.testing.assert_close(values[0][1], values[1][1], rtol=0, atol=1e-4)
    assert not values[0][2].equal(values[1][2])


def test_results_follow_from_the_seed_alone_and_the_model_is_left_as_it_was():
    net = small_cnn()
    net.module.train()
    before = {n: t.clone() for n, t in net.module.state_dict().items()}
    state = torch.get_rng_state()
    first = sanity_check(net, pictures(3), "smoothgrad", seed=7, options={"smoothgrad": {"samples": 3}})
    assert torch.get_rng_state().equal(state)
    assert all(m.training for m in net.module.modules())
    assert all(t.equal(before[n]) for n, t in net.module.state_dict().items())
    assert all(p.requires_grad and p.grad is None for p in net.module.parameters())
    again = sanity_check(net, pictures(3), "smoothgrad", seed=7, options={"smoothgrad": {"samples": 3}})
    other = sanity_check(net, pictures(3), "smoothgrad", seed=8, options={"smoothgrad": {"samples": 3}})
    values = [run.row("smoothgrad").values["spearman"] for run in (first, again, other)]
    torch.testing.assert_close(values[0], values[1], rtol=0, atol=1e-4)
    assert not values[0].equal(values[2])


def test_batches_and_blocks_change_nothing(monkeypatch):
    runs = [sanity_check(small_cnn(), pictures(5), ["gradient", "grad-cam"], batch_size=5)]
    monkeypatch.setattr(checks, "BLOCK", 2)
    runs.append(sanity_check(small_cnn(), pictures(5), ["gradient", "grad-cam"], batch_size=1))
    for method in ("gradient", "grad-cam"):
        whole, parts = (run.row(method) for run in runs)
        for similarity in ("spearman", "absolute", "ssim"):
            torch.testing.assert_close(whole.values[similarity], parts.values[similarity], atol=1e-4, rtol=0)
        torch.testing.assert_close(whole.example, parts.example, atol=1e-5, rtol=1e-4)
    assert runs[0].targets.equal(runs[1].targets)


def test_draws_are_independent_of_each_other_and_of_their_number():
    one, two = (sanity_check(small_cnn(), pictures(2), "gradient", draws=d) for d in (1, 2))
    values = two.row("gradient").values["spearman"]
    assert values.shape == (2, 5, 2)
    torch.testing.assert_close(values[0], one.row("gradient").values["spearman"][0], rtol=0, atol=1e-4)
    assert not values[0, -1].equal(values[1, -1])


def test_progress_counts_every_map():
    seen = []
    sanity_check(small_cnn(), pictures(2), ["gradient", CENTRE], on_progress=lambda *numbers: seen.append(numbers))
    total = 2 * 2 * (1 + 5)
    assert seen[-1] == (total, total)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_two_models_are_compared_for_data_randomization():
    net, permuted = weighted_pixels(seed=0), weighted_pixels(seed=1)
    found = data_randomization(net, permuted, pictures(6, size=SIZE), ["gradient", CENTRE])
    assert found.steps == ("trained", "permuted labels")
    assert found.verdict("gradient").text == "depends on the labels"
    assert found.verdict("center").text == "does not depend on the labels"
    same = data_randomization(net, net, pictures(6, size=SIZE), "gradient")
    torch.testing.assert_close(same.row("gradient").values["spearman"], torch.ones(1, 2, 6).double())
    assert same.verdict("gradient").depends is False


def test_the_second_model_may_have_options_of_its_own():
    net, images = weighted_pixels(), pictures(4, size=SIZE)
    own = {"gradient": {"reduction": "sum"}}
    found = data_randomization(net, weighted_pixels(), images, "gradient", permuted_options=own)
    before, after = (suffice.attribute(net, images, "gradient", **given).maps for given in ({}, own["gradient"]))
    wanted = [spearmanr(a.flatten(), b.flatten()).statistic for a, b in zip(before, after, strict=True)]
    assert max(wanted) < 0.9
    similar = found.row("gradient").values["spearman"][0]
    assert similar[0].tolist() == pytest.approx([1.0] * 4)
    assert similar[1].tolist() == pytest.approx(wanted, abs=1e-6)
    assert found.about["settings"]["permuted_options"] == own


def test_maps_of_another_size_are_refused():
    net = small_cnn()
    quarter = from_function(lambda model, inputs, targets: inputs[:, 0, :: 1 + (model is net.module)], "quarter")
    other = net.with_module(as_if_trained(small_cnn().module))
    with pytest.raises(OptionError, match="same architecture"):
        data_randomization(net, other, pictures(2), quarter)


def test_methods_that_do_not_fit_are_left_out():
    found = sanity_check(small_cnn(), pictures(1), ["rollout", "gradient"])
    assert [row.method for row in found.rows] == ["gradient"]
    with pytest.raises(OptionError, match="None of rollout fits small-cnn"):
        sanity_check(small_cnn(), pictures(1), "rollout")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"check": "data"}, "data_randomization"),
        ({"how": "shuffle"}, "'reinitialize' or 'permute'"),
        ({"draws": 0}, "draws=0"),
        ({"methods": ["gradient", "gradient"]}, "different"),
        ({"targets": [1]}, "1 targets were given for 2"),
    ],
)
def test_mistakes_are_named(arguments, said):
    with pytest.raises(OptionError, match=said):
        sanity_check(small_cnn(), pictures(2), **{"methods": "gradient", **arguments})
