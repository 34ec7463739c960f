"""What tests of the report share: studies that are made up, with differences that are known."""

import pytest

from benchmarks.report_size import made_up_study


@pytest.fixture(scope="session")
def made_up(tmp_path_factory):
    """Seven models and forty images; no model was asked."""
    return made_up_study(tmp_path_factory.mktemp("reports") / "made-up", models=7, images=40, block=16)


@pytest.fixture(scope="session")
def report(made_up):
    return made_up.report()
