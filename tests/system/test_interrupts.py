"""Signals: held back in chunks, raised elsewhere, and as they were afterwards."""

import argparse
import gc
import os
import signal
import subprocess
import sys
import threading
from unittest import mock

import pytest

from numpyro_rankings._system.interrupts import (
    SignalInterrupt,
    end_by_signal,
    ended_by,
    ended_by_signals,
    exit_status,
    held_interrupts,
    postponed_interrupts,
)
from numpyro_rankings.cli import main
from numpyro_rankings.cli.streams import outlived_streams

pytestmark = pytest.mark.usefixtures("usual_signals")

OTHERS = {signal.SIGTERM: 143, signal.SIGHUP: 129}


@pytest.mark.parametrize("number", OTHERS)
def test_they_are_held_back(number, capfd):
    """Also when they come twice, as timeout and shells send them."""
    with ended_by_signals():
        is_after = False
        with pytest.raises(SignalInterrupt) as raised, postponed_interrupts() as check:
            check()
            signal.raise_signal(number)
            signal.raise_signal(number)
            is_after = True
            check()
        assert is_after and exit_status(raised.value) == OTHERS[number]
        assert signal.getsignal(number) is end_by_signal
    assert signal.getsignal(number) is signal.SIG_DFL
    assert capfd.readouterr().err.count("stopping after this chunk") == 1


@pytest.mark.parametrize("number", OTHERS)
def test_elsewhere_they_are_raised_once(number):
    with ended_by_signals():
        with pytest.raises(SignalInterrupt):
            signal.raise_signal(number)
        signal.raise_signal(number)
    assert signal.getsignal(number) is signal.SIG_DFL


@pytest.mark.parametrize("number", OTHERS)
def test_one_that_python_drops_is_not_lost(number):
    """As in a callback of the garbage collector, whose exceptions are told and dropped."""

    def come(phase, about):
        gc.callbacks.remove(come)
        signal.raise_signal(number)

    with ended_by_signals():
        with mock.patch("sys.unraisablehook") as hook:
            gc.callbacks.append(come)
            gc.collect()
        assert hook.called and signal.getsignal(number) is signal.SIG_IGN
        with pytest.raises(SignalInterrupt) as raised, postponed_interrupts() as check:
            check()
            pytest.fail("it was lost")
        assert exit_status(raised.value) == OTHERS[number]
    with ended_by_signals(), postponed_interrupts() as check:  # another command
        check()


def test_one_that_an_import_makes_an_error_of(monkeypatch, capsys):
    """As a compiled module does that is being loaded."""

    def do(args, command):
        try:
            signal.raise_signal(signal.SIGTERM)
        except SignalInterrupt:
            raise ImportError("initialization failed") from None

    parser = argparse.Namespace(command="describe", do=do)
    monkeypatch.setattr(argparse.ArgumentParser, "parse_known_args", lambda *_: (parser, []))
    assert main(["describe"]) == 143
    assert "interrupted, nothing was written" in capsys.readouterr().err


@pytest.mark.parametrize("number", OTHERS)
def test_ctrl_c_after_them_does_not_wait(number):
    with ended_by_signals(), pytest.raises(KeyboardInterrupt) as raised:
        with postponed_interrupts():
            signal.raise_signal(number)
            signal.raise_signal(signal.SIGINT)
            pytest.fail("it waited")
    assert exit_status(raised.value) == 130


def test_only_ctrl_c_that_comes_second_is_raised_and_nothing_after_it():
    with ended_by_signals(), held_interrupts() as held:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGTERM):
            signal.raise_signal(number)
        assert held.came == signal.SIGTERM and ended_by() is None
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert ended_by() == signal.SIGINT
        for number in (signal.SIGINT, *OTHERS):
            signal.raise_signal(number)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_once_it_is_over_they_are_noted(capfd):
    with ended_by_signals(), held_interrupts() as held:
        held.is_over = True
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)
        assert held.came == signal.SIGINT and ended_by() is None
    assert capfd.readouterr().err == ""


def test_they_are_held_back_by_the_outer_context(capfd):
    """In which a run in a command is extended; what was done then is said."""
    with held_interrupts() as held:
        held.doing = "counting"
        with pytest.raises(KeyboardInterrupt), postponed_interrupts() as check:
            signal.raise_signal(signal.SIGINT)
            check()
        assert held.came == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert capfd.readouterr().err == "\nCtrl-C: counting; Ctrl-C again stops at once\n"


@pytest.mark.parametrize("number", [signal.SIGINT, *OTHERS])
def test_one_after_the_last_chunk_is_not_lost(number):
    with ended_by_signals(), pytest.raises(KeyboardInterrupt):
        with postponed_interrupts() as check:
            check()
            signal.raise_signal(number)


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda *_: None])
def test_other_dispositions_stay(handler):
    for number in (signal.SIGINT, *OTHERS):
        signal.signal(number, handler)
    with ended_by_signals(), postponed_interrupts() as check:
        for number in (signal.SIGINT, *OTHERS):
            assert signal.getsignal(number) is handler
            signal.raise_signal(number)
        check()


def test_other_threads_have_no_handlers(capsys):
    statuses = []
    thread = threading.Thread(target=lambda: statuses.append(main(["--version"])))
    thread.start()
    thread.join()
    assert statuses == [0]


def test_streams_are_as_before():
    before = sys.stdout, sys.stderr
    with outlived_streams():
        assert sys.stdout is not before[0]
        assert sys.stderr.isatty() == before[1].isatty()
    assert (sys.stdout, sys.stderr) == before


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "none.soi", "--alpha", "x"]])
def test_a_pipe_without_a_reader(arguments):
    """Python itself would complain, and end with status 120."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "numpyro_rankings", *arguments]
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}
    done = subprocess.run(command, stdout=write, stderr=write, env=buffered)
    os.close(write)
    assert done.returncode == (0 if arguments == ["--help"] else 2)
