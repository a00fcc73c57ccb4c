"""The first words about how a job ended."""

from __future__ import annotations

import pytest

from torchtriage.core.end import End


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (End("exception", "ValueError", "heads 3\nDo not divide"), "ValueError: heads 3"),
        (End("exception", "RuntimeError", "Error(s) in loading:\n\n\tsize mismatch"), "RuntimeError: Error(s) in loading: size mismatch"),
        (End("exception", "RuntimeError", "Missing:"), "RuntimeError: Missing:"),
        (End("exception", "RuntimeError", "\n   An attempt has been made before the\n  current process is done.\n\n Then"), "RuntimeError: An attempt has been made before the current process is done."),
        (End("exception", "RuntimeError", "a\nb\nc\nd\ne"), "RuntimeError: a b c d"),
        (End("exception", "KeyError", "Caught KeyError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n  File\nKeyError: 'okapi'"), "KeyError: 'okapi' (in DataLoader worker process 0)"),
        (End("exception", "RuntimeError", "Caught UnicodeDecodeError in DataLoader worker process 1.\nUnicodeDecodeError: 0xff"), "UnicodeDecodeError: 0xff (in DataLoader worker process 1)"),
        (End("exception", "KeyError", "Caught KeyError in replica 1 on device 1.\nKeyError"), "KeyError: in replica 1 on device 1"),
        (End("exception", "KeyError", "Caught KeyError in DataLoader worker process 0.\ncut off"), "KeyError: Caught KeyError in DataLoader worker process 0."),
        (End("exception", "ValueError", "Caught fish in a net.\nValueError"), "ValueError: Caught fish in a net."),
        (End("signal", "SIGKILL"), "SIGKILL"),
        (End("exception", "", "terminate called"), "terminate called"),
        (End("exit"), ""),
    ],
)  # fmt: skip
def test_the_headline_is_the_type_with_the_first_line_that_says_something(end: End, said: str) -> None:
    assert end.headline == said
