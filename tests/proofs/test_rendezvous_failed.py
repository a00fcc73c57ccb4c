"""A port that another process holds cannot be opened; one that the system chooses can."""

from __future__ import annotations

import socket

import pytest


def test_a_port_that_is_taken_is_refused(shown) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(RuntimeError, match="EADDRINUSE"):
            shown("rendezvous-failed", "Bad").start(other.getsockname()[1])


def test_a_free_one_is_opened(shown) -> None:
    shown("rendezvous-failed", "Good").start(0)
