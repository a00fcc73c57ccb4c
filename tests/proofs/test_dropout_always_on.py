"""A function cannot know that the module is in evaluation."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from torchtriage import triage


@pytest.mark.parametrize("section", ["Bad", "Good"])
def test_in_evaluation_only_the_told_dropout_stops(shown, section: str) -> None:
    torch.manual_seed(0)
    model = shown("dropout-always-on", section).Head(64, 4).eval()
    x = torch.randn(8, 64)
    assert torch.equal(model(x), model(x)) == (section == "Good")


def test_half_of_the_values_are_zero_and_the_rest_doubled() -> None:
    torch.manual_seed(0)
    dropped = nn.functional.dropout(torch.ones(10_000), p=0.5)
    assert set(dropped.tolist()) == {0.0, 2.0}
    assert (dropped == 0).float().mean().item() == pytest.approx(0.5, abs=0.05)


def test_a_layer_made_on_the_spot_is_in_training_mode() -> None:
    assert nn.Dropout(0.5).training


ATTENTION = """\
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, rate: float = 0.5):
        super().__init__()
        self.rate = rate

    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, {how})
"""


@pytest.mark.parametrize(
    ("how", "mended"),
    [
        ("dropout_p=self.rate", "dropout_p=self.rate if self.training else 0.0"),
        ("None, 0.5, is_causal=True", "None, 0.5 if self.training else 0.0, is_causal=True"),
    ],
)
def test_attention_takes_no_training_and_its_edit_gives_no_rate_in_evaluation(
    how: str, mended: str, tmp_path: Path
) -> None:
    file = tmp_path / "attention.py"
    file.write_text(ATTENTION.format(how=how))
    q = torch.randn(1, 1, 8, 8)
    assert not torch.equal(*_twice(file, q))
    [finding] = triage.check([file]).findings
    [edit] = finding.evidence[0].edits
    assert edit.remedy == "zero-in-evaluation"
    text = file.read_bytes()
    file.write_bytes(text[: edit.start] + edit.text.encode() + text[edit.end :])
    assert file.read_text() == ATTENTION.format(how=mended)
    assert torch.equal(*_twice(file, q))
    assert triage.check([file]).findings == ()
    with pytest.raises(TypeError, match="training"):
        nn.functional.scaled_dot_product_attention(q, q, q, training=False)


def _twice(file: Path, q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    names: dict = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    model = names["Attention"]().eval()
    return model(q, q, q), model(q, q, q)
