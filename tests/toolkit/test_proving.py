from __future__ import annotations

from pathlib import Path

import pytest
import torch

from torchtriage.toolkit import ResumeDiffers, prove_resume

pytestmark = pytest.mark.usefixtures("lean_forks")


def training(*, keeps: bool):
    """A function that trains in its folder, and keeps the optimizer's state or does not."""

    def train(folder: str) -> None:
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        path, step = Path(folder) / "state.pt", 0
        if path.exists():
            state = torch.load(path)
            model.load_state_dict(state["model"])
            if keeps:
                optimizer.load_state_dict(state["optimizer"])
            step = state["step"]
        while step < 8:
            optimizer.zero_grad()
            model(torch.ones(2, 3) * step).sum().backward()
            optimizer.step()
            step += 1
            if step % 2 == 0:
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, path)

    return train


def test_a_function_that_resumes_is_proven() -> None:
    case = prove_resume(training(keeps=True), stop=5)
    assert case.findings == ()
    assert case.measurements["resume"]["ranks"][0]["step"] == 4
    assert case.observed


def test_a_function_that_forgets_is_refuted_in_a_sentence(tmp_path: Path) -> None:
    before = Path.cwd()
    with pytest.raises(ResumeDiffers, match=r"the optimizer's state \(optimizer, 6 of 6 entries\)") as raised:
        prove_resume(training(keeps=False), tmp_path / "proof")
    assert raised.value.case.findings[0].fault.slug == "resume-differs"
    assert Path.cwd() == before
