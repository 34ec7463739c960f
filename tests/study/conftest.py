"""What tests of studies share."""

import pytest

from suffice.study import Study
from tests.study.processes import contents
from tests.study.small import write_study


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """A study, and what it finds where nothing interrupts it."""
    folder = tmp_path_factory.mktemp("whole")
    file = write_study(folder)
    Study.open(file).run(folder / "run", device="cpu")
    return file, contents(folder / "run")
