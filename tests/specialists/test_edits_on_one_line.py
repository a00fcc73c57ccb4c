"""Edits of one line, as they leave it."""

from __future__ import annotations

import pytest

from torchtriage import triage
from torchtriage.examine.source.edits import changed
from torchtriage.examine.source.seen import look


@pytest.mark.parametrize(
    ("slug", "line", "after"),
    [
        ("created-then-moved", "x = torch.zeros(2, 3).to(device)", "x = torch.zeros(2, 3, device=device)"),
        ("created-then-moved", "x = torch.zeros(2, ).to(device)", "x = torch.zeros(2, device=device)"),
        ("layers-shared-by-repetition", "x = nn.ModuleList([nn.Linear(d, d)] * 3)",
         "x = nn.ModuleList([nn.Linear(d, d) for _ in range(3)])"),
        ("layers-shared-by-repetition", "x = nn.ModuleList([nn.Linear(_, _)] * 3)", None),
    ],
)  # fmt: skip
def test_an_edit_leaves_the_line_as_one_would_write_it(slug: str, line: str, after: str | None) -> None:
    text = f"import torch\nfrom torch import nn\n\n\ndef f(d, device, model, loader, _):\n    for y in loader:\n        {line}\n        model(x, y).backward()\n"
    found = look("a.py", text.encode(), tuple(triage.detectors("rules"))).evidence
    (evidence,) = [each for each in found if each.detector == f"source/{slug}"]
    mended = changed(text.encode(), evidence.edits).decode().splitlines()[6].strip()
    assert mended == (after or line)


@pytest.mark.parametrize(
    ("order", "is_mended"),
    [
        (("loss.backward()", "optimizer.zero_grad()", "optimizer.step()"), True),
        (("optimizer.zero_grad()", "optimizer.step()", "loss.backward()"), False),
    ],
    ids=["cleared between", "stepped before backward"],
)
def test_no_edit_puts_a_step_between_a_forward_pass_and_its_backward(order: tuple[str, ...], is_mended: bool) -> None:
    head = """import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(9):
    loss = model(torch.randn(8, 4)).square().mean()
"""
    text = head + "".join(f"    {line}\n" for line in order)
    found = look("a.py", text.encode(), tuple(triage.detectors("rules"))).evidence
    (evidence,) = [each for each in found if each.detector == "source/zeroed-before-step"]
    assert bool(evidence.edits) is is_mended
