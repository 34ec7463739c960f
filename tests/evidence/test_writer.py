"""Rows written while the search goes on."""

import pyarrow.parquet as pq
import pytest

from suffice.evidence import EvidenceSet
from suffice.evidence.storage import TableWriter
from suffice.testing import AnyOf
from tests.evidence.twins import search_oracle


@pytest.fixture(scope="module")
def evidence():
    one = search_oracle(AnyOf([(0, 1), (2,)], grid=2))
    return EvidenceSet([one] * 4, "model", "family")


def test_writer_equals_the_table_and_survives_an_interruption(evidence, tmp_path):
    with TableWriter("model", "family", tmp_path / "whole.parquet", block=3) as writer:
        for e in evidence:
            writer.add(e)
    assert pq.read_table(tmp_path / "whole.parquet").equals(evidence.to_arrow())
    assert writer.to_arrow().equals(evidence.to_arrow())

    with pytest.raises(KeyboardInterrupt), TableWriter("model", "family", tmp_path / "part.parquet", block=2) as writer:  # noqa: PT012
        for e in evidence[:3]:
            writer.add(e)
        raise KeyboardInterrupt
    assert pq.read_table(tmp_path / "part.parquet").num_rows == 3
