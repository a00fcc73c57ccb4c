"""What `check --fix` makes of torch.tensor(x): the copy without a gradient only where there is none to lose."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchtriage import triage

HEAD = "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\n\n\n"
PENALTY = """\
def loss(model: nn.Module, x: torch.Tensor, y: torch.Tensor):
    error = nn.functional.mse_loss(model(x), y)
    {before}
    penalty = torch.tensor({given}) * 0.1
    return error + penalty
"""
BATCHES = """\
def epoch(model: nn.Module, dataset):
    for inputs, targets in DataLoader(dataset, batch_size=8):
        targets = torch.tensor(targets)
        yield model(inputs), targets
"""


def offered(tmp_path: Path, code: str) -> list[tuple[str, str, str]]:
    """(Remedy, its safety, what is written) of each edit for tensor-of-tensor."""
    file = tmp_path / "train.py"
    file.write_text(HEAD + code)
    findings = [each for each in triage.check([file]).findings if each.fault.slug == "tensor-of-tensor"]
    assert findings
    safety = {each.id: each.edit for each in findings[0].remedies}
    edits = [edit for finding in findings for item in finding.evidence for edit in item.edits]
    return [(edit.remedy, safety[edit.remedy].value, edit.text) for edit in edits]


@pytest.mark.parametrize("given", ["error", "model(x)", "(2 * error).exp()"])
def test_where_a_gradient_may_be_lost_the_edit_keeps_it_and_is_not_safe(tmp_path: Path, given: str) -> None:
    code = PENALTY.format(before="", given=given)
    assert offered(tmp_path, code) == [("keep-the-gradient", "unsafe", f"{given}.clone()")]
    [finding] = (
        each for each in triage.check([tmp_path / "train.py"]).findings if each.fault.slug == "tensor-of-tensor"
    )
    assert "no gradient reaches what computed it" in finding.evidence[0].fact
    assert ".clone() keeps the gradient" in finding.evidence[0].fact


@pytest.mark.parametrize(
    ("before", "given"),
    [
        ("fixed = error.detach()", "fixed"),
        ("fixed = torch.rand(4)", "fixed"),
        ("fixed = model(x).argmax(1)", "fixed"),
        ("fixed = torch.rand(4) * 2 + torch.ones(4, dtype=torch.float32).sum()", "fixed[0]"),
        ("", "error.detach()"),
    ],
)
def test_where_there_is_no_gradient_the_copy_without_one_is_safe(tmp_path: Path, before: str, given: str) -> None:
    code = PENALTY.format(before=before or "pass", given=given)
    assert offered(tmp_path, code) == [("detach-and-clone", "safe", f"{given}.detach().clone()")]


@pytest.mark.parametrize(
    "before",
    [
        "fixed = torch.rand(4, requires_grad=True)",
        "fixed = torch.rand(4).requires_grad_()",
        "fixed = torch.rand(4)\n    fixed.requires_grad = True",
        "fixed = torch.rand(4)\n    fixed.requires_grad_()",
        "fixed = torch.rand(4)\n    fixed += error",
        "fixed = torch.rand(4)\n    if len(x):\n        fixed = error * 2",
    ],
)
def test_what_may_ask_for_a_gradient_is_not_safe(tmp_path: Path, before: str) -> None:
    edits = offered(tmp_path, PENALTY.format(before=before, given="fixed"))
    assert edits == [("keep-the-gradient", "unsafe", "fixed.clone()")]


def test_labels_of_a_loader_carry_no_gradient(tmp_path: Path) -> None:
    assert offered(tmp_path, BATCHES) == [("detach-and-clone", "safe", "targets.detach().clone()")]


def test_under_no_grad_nothing_is_lost(tmp_path: Path) -> None:
    code = """\
def frozen(model: nn.Module, x: torch.Tensor):
    with torch.no_grad():
        goal = model(x).exp()
    return torch.tensor(goal)
"""
    assert offered(tmp_path, code) == [("detach-and-clone", "safe", "goal.detach().clone()")]
