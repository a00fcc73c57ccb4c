"""Whoever experiments may be killed at any moment."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from torchtriage.examine.trial.experiment.job.conductor import Conductor


def test_one_that_lives_is_not_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHTRIAGE_CONDUCTOR", str(os.getpid()))
    assert not Conductor().is_gone()


def test_one_that_ended_before_the_job_had_begun_is_gone_as_one_that_ends_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    monkeypatch.setenv("TORCHTRIAGE_CONDUCTOR", str(process.pid))
    early = Conductor()
    assert not early.is_gone()
    process.communicate()
    assert early.is_gone()
    assert Conductor().is_gone()
