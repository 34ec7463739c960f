"""The loop that halves the batch size when memory runs out."""

import warnings
import weakref

import pytest
import torch

from suffice.errors import SufficeWarning
from suffice.vision.batching import BatchLoop, is_out_of_memory

CPU = torch.device("cpu")


class Limited:
    """Work that runs out of memory above so many inputs, and remembers the pieces that went through."""

    def __init__(self, limit, cost=1):
        self.limit, self.cost, self.pieces = limit, cost, []

    def __call__(self, rows):
        if (rows.stop - rows.start) * self.cost > self.limit:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory.")
        self.pieces.append((rows.start, rows.stop))
        return list(range(rows.start, rows.stop))


def flat(pieces):
    return [row for piece in pieces for row in piece]


def test_pieces_are_in_order_and_complete():
    work = Limited(100)
    assert flat(BatchLoop(4, CPU).run(10, work)) == list(range(10))
    assert work.pieces == [(0, 4), (4, 8), (8, 10)]


def test_no_rows_no_work():
    assert list(BatchLoop(4, CPU).run(0, Limited(0))) == []


def test_cost_divides_the_size():
    work = Limited(100, cost=3)
    assert flat(BatchLoop(8, CPU).run(5, work, cost=3)) == list(range(5))
    assert work.pieces == [(0, 2), (2, 4), (4, 5)]


def test_one_row_at_least():
    work = Limited(100, cost=50)
    assert flat(BatchLoop(8, CPU).run(2, work, cost=50)) == [0, 1]
    assert work.pieces == [(0, 1), (1, 2)]


def test_halves_until_it_fits_and_stays_there():
    loop, work = BatchLoop(16, CPU), Limited(5)
    with pytest.warns(SufficeWarning, match="Out of memory at batch size 10; going on"):
        assert flat(loop.run(10, work)) == list(range(10))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert flat(loop.run(2, work)) == [0, 1]
    assert loop.size == 5
    assert work.pieces == [(0, 5), (5, 10), (0, 2)]


def test_goes_on_from_the_row_that_failed():
    calls = []

    def work(rows):
        calls.append((rows.start, rows.stop))
        if rows.start == 4 and rows.stop > 6:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory.")
        return list(range(rows.start, rows.stop))

    with pytest.warns(SufficeWarning):
        assert flat(BatchLoop(4, CPU).run(9, work)) == list(range(9))
    assert calls == [(0, 4), (4, 8), (4, 6), (6, 8), (8, 9)]


def test_a_short_last_piece_halves_from_what_it_was():
    loop = BatchLoop(64, CPU)
    with pytest.warns(SufficeWarning):
        list(loop.run(6, Limited(3)))
    assert loop.size == 3


def test_cost_counts_as_inputs_when_halving():
    loop, work = BatchLoop(64, CPU), Limited(20, cost=8)
    with pytest.warns(SufficeWarning):
        assert flat(loop.run(8, work, cost=8)) == list(range(8))
    assert loop.size == 16
    assert work.pieces == [(0, 2), (2, 4), (4, 6), (6, 8)]


def test_one_warning_a_loop():
    loop = BatchLoop(32, CPU)
    with pytest.warns(SufficeWarning) as seen:
        list(loop.run(32, Limited(2)))
    assert len(seen) == 1


def test_raises_where_one_row_does_not_fit():
    loop = BatchLoop(8, CPU)
    with pytest.warns(SufficeWarning), pytest.raises(torch.cuda.OutOfMemoryError):
        list(loop.run(8, Limited(0)))
    assert loop.size == 1


def test_raises_without_a_warning_where_fewer_rows_cannot_help():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(torch.cuda.OutOfMemoryError):
            list(BatchLoop(8, CPU).run(1, Limited(10, cost=20), cost=20))


@pytest.mark.parametrize("error", [RuntimeError("shapes do not fit"), ValueError("no"), KeyboardInterrupt()])
def test_other_errors_pass(error):
    def work(rows):
        raise error

    loop = BatchLoop(8, CPU)
    with pytest.raises(type(error)):
        list(loop.run(8, work))
    assert loop.size == 8


def test_nested_loops_inner_raises_and_outer_goes_on_with_fewer():
    """Each row of the outer loop keeps something in memory that the inner loop cannot make smaller."""
    loop = BatchLoop(16, CPU)

    def outer(rows):
        def inner(steps):
            if rows.stop - rows.start > 3:
                raise torch.cuda.OutOfMemoryError("CUDA out of memory.")
            return steps.stop - steps.start

        assert sum(loop.run(5, inner)) == 5
        return list(range(rows.start, rows.stop))

    with pytest.warns(SufficeWarning) as seen:
        assert flat(loop.run(16, outer)) == list(range(16))
    assert len(seen) == 1


def test_nested_loops_inner_helps_itself_where_it_can():
    loop, outer_pieces = BatchLoop(8, CPU), []

    def outer(rows):
        outer_pieces.append((rows.start, rows.stop))
        return flat(loop.run(rows.stop - rows.start, Limited(4)))

    with pytest.warns(SufficeWarning):
        assert sum(map(len, loop.run(8, outer))) == 8
    assert outer_pieces == [(0, 8)]


def test_nested_cost_of_a_single_inner_row():
    """An inner row that is a whole batch cannot be cut; the rows around it can."""
    loop, inner = BatchLoop(8, CPU), []

    def outer(rows):
        cost = rows.stop - rows.start
        inner.append(cost)
        return flat(loop.run(1, Limited(3, cost=cost), cost=cost)) * cost

    with pytest.warns(SufficeWarning):
        assert len(flat(loop.run(9, outer))) == 9
    assert max(inner[2:]) <= 3


def test_a_generator_left_early_does_no_more_work():
    work = Limited(100)
    for _ in BatchLoop(2, CPU).run(10, work):
        break
    assert work.pieces == [(0, 2)]


def test_the_error_lets_go_of_its_tensors_before_the_next_try():
    alive = []

    def work(rows):
        assert not any(reference() is not None for reference in alive), "what the failed piece held is still there"
        tensor = torch.zeros(rows.stop - rows.start)
        alive.append(weakref.ref(tensor))
        if len(tensor) > 2:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory.")
        return len(tensor)

    with pytest.warns(SufficeWarning):
        assert sum(BatchLoop(8, CPU).run(8, work)) == 8


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (torch.cuda.OutOfMemoryError("CUDA out of memory."), True),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
            True,
        ),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes"), True),
        (RuntimeError("MPS backend out of memory (MPS allocated: 7.64 GiB, max allowed: 9.07 GiB)"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("not enough memory"), False),
    ],
)
def test_what_counts_as_out_of_memory(error, is_one):
    assert is_out_of_memory(error) is is_one
