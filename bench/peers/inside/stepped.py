"""A script under TraceML as its page shows it for one's own loop: each step within `trace_step(model)`.

    traceml run stepped.py --args SCRIPT [ARG…]

A step is opened by the first call of a model with gradients since the last one, and closed after the optimizer's step.
"""

from __future__ import annotations

import runpy
import sys
from contextlib import AbstractContextManager
from typing import Any

import torch
import traceml_ai as traceml
from torch.optim.optimizer import register_optimizer_step_post_hook


class Steps:
    """Opens and closes the step of the loop that runs."""

    def __init__(self) -> None:
        self.open: AbstractContextManager[None] | None = None
        self.hook: Any = None

    def called(self, model: torch.nn.Module) -> None:
        if self.open is None and torch.is_grad_enabled():
            self.open = traceml.trace_step(model)
            self.open.__enter__()
            # Registered after TraceML's own hooks, so that the optimizer's time is still within the step.
            self.hook = self.hook or register_optimizer_step_post_hook(self.stepped)

    def stepped(self, *_: Any) -> None:
        if self.open is not None:
            self.open.__exit__(None, None, None)
            self.open = None


def main() -> None:
    traceml.init(mode="auto")
    steps, call = Steps(), torch.nn.Module.__call__

    def stepping(module: torch.nn.Module, *args: Any, **named: Any) -> Any:
        steps.called(module)
        return call(module, *args, **named)

    torch.nn.Module.__call__ = stepping
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
