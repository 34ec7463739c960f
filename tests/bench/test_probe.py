"""The benchmark of the probe."""

from suffice.bench import benchmark_probe
from tests.attribution.nets import small_cnn


def test_three_kinds_of_questions_each_with_a_ratio():
    timings = list(benchmark_probe(small_cnn(), images=2, batch_size=4, batches=2, rounds=1))
    assert [timing.questions for timing in timings] == ["regions", "float masks", "ranks"]
    assert all(timing.bare > 0 and timing.probe > 0 and timing.efficiency > 0 for timing in timings)
