"""Resumed without the scheduler's state the weights come out otherwise; with it they are the same to the last bit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch


@pytest.mark.parametrize(("section", "same"), [("Bad", False), ("Good", True)])
def test_a_resumed_training_ends_with_the_weights_of_one_that_never_stopped(
    shown, section: str, same: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = shown("resume-differs", section).train
    monkeypatch.chdir(tmp_path)
    whole = train(4).state_dict()
    train(1)
    resumed = train(4, "ckpt.pt").state_dict()
    assert all(torch.equal(whole[name], resumed[name]) for name in whole) is same
