"""What tests of benchmarks share."""

import pytest

from suffice.bench import BareModel


@pytest.fixture(autouse=True)
def _short_timings(monkeypatch):
    """Timings so short that they mean nothing; what is tested is what they are timings of."""
    for option, value in {"seconds": 0.001, "rounds": 1}.items():
        monkeypatch.setitem(BareModel.forwards_per_second.__kwdefaults__, option, value)
