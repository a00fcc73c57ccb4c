"""What is kept does not grow from window to window, and the state still goes from one window to the next."""

from typing import Any

import torch

from torchtriage_evals.programs.seen import Held


def check(program: Any) -> None:
    torch.manual_seed(0)
    windows = [(torch.randn(2, 5, 4), torch.randint(3, (2, 5))) for _ in range(12)]
    model, kept = program.Tagger(), []
    passed: list[Any] = []
    with Held() as held:

        def look(module: Any, given: Any) -> None:
            kept.append(held.now)
            passed.append(given[1:])

        model.register_forward_pre_hook(look)
        losses, _ = program.train(model, windows)
    assert len(losses) == len(windows)
    assert kept[-1] <= kept[2], f"kept for a backward when a window begins: {kept}"
    states = [given[0] for given in passed[1:] if given]
    assert len(states) == len(windows) - 1, "the state no longer goes from window to window"
    assert all(isinstance(state, torch.Tensor) and state.abs().sum() > 0 for state in states), "the state is cleared"
