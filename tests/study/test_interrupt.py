"""Ctrl-C where Python drops it."""

import os
import signal

import pytest

from suffice.study.interrupt import noticing_interrupts


class Finalized:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)


def lose_an_interrupt():
    with noticing_interrupts() as check:
        check()
        Finalized()  # which prints the interruption, and goes on
        check()


def press():
    with noticing_interrupts():
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("it went on")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("interrupt", [lose_an_interrupt, press])
def test_an_interrupt_is_not_lost(interrupt):
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert signal.getsignal(signal.SIGINT) is before


def test_handlers_of_others_stay():
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(True))
    try:
        with noticing_interrupts() as check:
            os.kill(os.getpid(), signal.SIGINT)
            check()
        assert seen == [True]
    finally:
        signal.signal(signal.SIGINT, before)
