"""Resumed without the scheduler's state the weights come out otherwise; with it they are the same to the last bit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from torchtriage.catalog import page, walk


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


LEFT_OUT = {
    "the scheduler, as in Bad": 'scheduler.load_state_dict(state["scheduler"])',
    "the optimizer's state": 'optimizer.load_state_dict(state["optimizer"])',
    "the state of torch's generator: another order, another dropout": 'torch.set_rng_state(state["rng"])',
}


@pytest.mark.parametrize("row", LEFT_OUT)
def test_the_figures_of_the_page_are_those_of_its_code(
    row: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = page.read(walk.pages()["resume-differs"])
    code, line = found.snippet("Good"), f"        {LEFT_OUT[row]}\n"
    assert line in code
    if row.endswith("Bad"):
        assert code.replace(line, "") == found.snippet("Bad")
    names: dict = {}
    exec(compile(code.replace(line, ""), "resume-differs.md", "exec"), names)
    monkeypatch.chdir(tmp_path)
    whole = names["train"](4).state_dict()
    assert sum(each.numel() for each in whole.values()) == 161
    names["train"](1)
    resumed = names["train"](4, "ckpt.pt").state_dict()
    text = walk.pages()["resume-differs"].read_text(encoding="utf-8")
    assert f"| {row} | {100 * away(whole, resumed):.0f} % |" in text


def away(whole: dict[str, torch.Tensor], resumed: dict[str, torch.Tensor]) -> float:
    apart, size = (torch.cat([each.flatten() for each in parts]) for parts in (_gaps(whole, resumed), whole.values()))
    return float(apart.norm() / size.norm())


def _gaps(whole: dict[str, torch.Tensor], resumed: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    return [whole[name] - resumed[name] for name in whole]
