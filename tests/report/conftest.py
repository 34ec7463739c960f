"""One small study with everything that figures are made of."""

import pytest
import torch
from safetensors.torch import save_file

import suffice
from suffice import Study


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    """Three small networks, one of them trained twice (its weights, and the same a little moved), and a few scenes."""
    folder = tmp_path_factory.mktemp("figures")
    weights = {k: v.contiguous() for k, v in suffice.load("zoo/deit", device="cpu").module.state_dict().items()}
    for seed, shift in enumerate((0.0, 0.02)):
        torch.manual_seed(seed)
        moved = {
            k: v + shift * v.std() * torch.randn_like(v) if v.is_floating_point() else v for k, v in weights.items()
        }
        save_file(moved, folder / f"deit-{seed}.safetensors")
    made = Study(
        "figures",
        "scenes:test[:4]",
        [
            "zoo/vgg",
            "zoo/resnet",
            {"name": "zoo/deit", "label": "deit", "seeds": str(folder / "deit-*.safetensors")},
        ],
        {
            "said": {"kind": "predictions"},
            "evidence": {"kind": "evidence", "grid": 2, "max_mses": 3, "regions": True},
            "maps": {"kind": "attribution", "methods": ["grad-cam", "gradient"]},
            "scores": {"kind": "metrics", "maps": "maps", "metrics": ["insertion", "deletion"], "steps": 4},
            "crossed": {"kind": "cross-test", "maps": "maps/grad-cam", "metrics": ["insertion"], "steps": 3},
            "channels": {"kind": "activations"},
            "random": {"kind": "sanity", "method": "grad-cam", "models": ["zoo/vgg"]},
        },
        {"misfits": "skip"},
    )
    return made.run(folder / "run", device="cpu")


def _moved(values, shift):
    return values + shift * values.std() * torch.randn_like(values) if values.is_floating_point() else values


@pytest.fixture(scope="session")
def drawings(study):
    """All figures of it that ask no model again, by name."""
    from suffice.report.figures import figures_of

    return {one.name: one for one in figures_of(study)}
