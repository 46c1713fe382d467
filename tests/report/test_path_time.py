"""Whether a further number of groups ends in time, and leaves time for the fit."""

import pytest

from numpyro_rankings.report.path_time import PathTime


def take(time, clock, seconds):
    """Let the sweeps of a number take some seconds."""
    time.begin()
    clock.step(seconds)
    time.sweep()
    time.end()


def started(clock, minutes, fit=0.0, compilation=20.0):
    """A path whose first program took so long to compile, and its first number 10 seconds."""
    time = PathTime(minutes, fit)
    clock.step(compilation)
    time.sweep()
    clock.step(10)
    time.end()
    return time


@pytest.mark.parametrize(
    ("seconds", "fit", "compiles", "expected"),
    [
        # the second number would take half as long again as the first one, 15 s from 30 s on
        (44.9, 0, False, False),
        (45, 0, False, True),
        (64.9, 0, True, False),  # and another program the 20 s of the first
        (65, 0, True, True),
        # a fit has a program, and of twice as many ladders 30 s of sweeps
        (94.9, 2, False, False),
        (95, 2, False, True),
        (115, 2, True, True),
    ],
)
def test_a_number_begins_if_it_would_end_in_time(clock, seconds, fit, compiles, expected):
    assert started(clock, seconds / 60, fit).suffices(compiles) == expected


def test_times_grow_as_from_the_number_before(clock):
    time = started(clock, 100 / 60)
    take(time, clock, 12)  # at 42 s; then 14.4 s, and 17.28 s
    assert time.suffices(False) and time.suffices(False, numbers=2)
    clock.step(27)
    assert time.suffices(False) and not time.suffices(False, numbers=2)
    take(time, clock, 2)  # at 71 s; no number is expected to take less than the one before it
    assert time.suffices(False, numbers=14) and not time.suffices(False, numbers=15)
    take(time, clock, 9)  # at 80 s; nor more than twice as long
    assert time.suffices(False)
    take(time, clock, 3)
    assert time.suffices(False)


def test_what_takes_long_is_stopped(clock):
    time = started(clock, 2, fit=1)  # 30 s of 120 s; a fit takes 20 s and as long as the ladders
    time.begin()
    clock.step(35)
    assert not time.is_over()
    clock.step(0.1)  # with a fit of 35.1 s and its program this is the end
    assert time.is_over()
    time.end()
    assert not time.suffices(False)


def test_the_first_number_has_all_the_time(clock):
    time = PathTime(1, fit=2)
    clock.step(50)
    time.sweep()
    clock.step(9)
    assert not time.is_over()
    clock.step(1.1)
    assert time.is_over()


def test_without_an_end_there_is_always_time(clock):
    time = started(clock, None, fit=2, compilation=1e6)
    assert time.suffices(True, numbers=9) and not time.is_over()
