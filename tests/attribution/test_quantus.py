"""Methods as the ``explain_func`` of the real Quantus."""

import numpy as np
import pytest

import suffice
from tests.attribution.nets import pictures, small_cnn
from tests.attribution.test_conformance import vision_transformer

quantus = pytest.importorskip("quantus", reason="Quantus is not installed")
IMAGES, TARGETS = pictures(2), [1, 2]
METRICS = {
    "faithfulness correlation": lambda: quantus.FaithfulnessCorrelation(
        nr_runs=5, subset_size=64, perturb_baseline="black", return_aggregate=False, disable_warnings=True
    ),
    "pixel flipping": lambda: quantus.PixelFlipping(
        features_in_step=256, perturb_baseline="black", disable_warnings=True
    ),
    "max sensitivity": lambda: quantus.MaxSensitivity(nr_samples=2, disable_warnings=True),
}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("make", "method", "options"),
    [(small_cnn, "grad-cam", {}), (small_cnn, "gradient", {}), (vision_transformer, "rollout", {})],
)
def test_quantus_scores_our_methods(metric, make, method, options):
    net = make()
    explain = suffice.as_explain_func(net, method, **options)
    inputs = net.normalize(IMAGES).numpy()
    scores = METRICS[metric]()(
        model=net.module, x_batch=inputs, y_batch=np.array(TARGETS), explain_func=explain, device="cpu"
    )
    assert len(scores) == len(IMAGES)
    assert np.isfinite(np.array(scores, dtype=float)).all()


@pytest.mark.parametrize("method", ["grad-cam", "gradient"])
def test_maps_have_the_size_of_the_input(method):
    net = small_cnn()
    maps = suffice.as_explain_func(net, method)(net.module, net.normalize(IMAGES).numpy(), TARGETS)
    expected = suffice.attribute(net, IMAGES, method, TARGETS).resized()
    np.testing.assert_allclose(maps, expected.numpy(), rtol=1e-3, atol=1e-5)
    assert maps.shape == (2, *net.size)
