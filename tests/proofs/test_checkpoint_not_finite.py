"""What resumes from NaN stays NaN."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from torchtriage import triage


def made() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(4, 2)


def test_a_training_that_resumes_from_it_begins_with_nan(shown, tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    shown("checkpoint-not-finite", "Bad").save(made(), str(path))
    model = made()
    model.load_state_dict(torch.load(path)["model"])
    assert not torch.isfinite(model(torch.ones(1, 4))).all()
    (finding,) = triage.read([path], verify=True).findings
    assert finding.fault.slug == "checkpoint-not-finite"
    assert "model/weight" in {item.place.module for item in finding.evidence}


def test_what_was_looked_at_before_it_was_saved_is_finite(shown, tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    shown("checkpoint-not-finite", "Good").save(made(), str(path))
    model = made()
    model.load_state_dict(torch.load(path)["model"])
    assert torch.isfinite(model(torch.ones(1, 4))).all()
    assert triage.read([path], verify=True).findings == ()
