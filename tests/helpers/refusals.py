"""Calls that must end in an error, as a table of messages and arguments."""

import pytest


def assert_refused(call, *cases, error=ValueError):
    """Each case is a pattern that the message of the error matches, and the arguments of a call."""
    for message, *arguments in cases:
        with pytest.raises(error, match=message):
            call(*arguments)
