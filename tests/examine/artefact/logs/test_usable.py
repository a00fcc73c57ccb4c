"""Silence about a text that says nothing of a training means nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import torchtriage
from torchtriage.report.outline import outline


@pytest.mark.parametrize("text", ["x\n", "hello\nworld\n", "Installing packages\ndone in 3 s\n"])
def test_a_text_without_a_sign_of_a_training_is_not_taken_as_examined(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(text)
    case = torchtriage.read([tmp_path / "a.log"])
    assert case.observed == ()
    story = outline(case)
    assert (story.tone, story.verdict[:25]) == ("unknown", "Nothing usable was found:")


def test_a_log_with_a_loss_says_how_far_it_was_read_and_where_the_loss_went(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("".join(f"step {step} loss {2.5 - step / 10}\n" for step in range(9)))
    verdict = outline(torchtriage.read([tmp_path / "a.log"])).verdict
    assert verdict.startswith("No known fault in 9 lines of logs (")
    assert verdict.endswith("The logged loss went from 2.5 to 1.7.")
