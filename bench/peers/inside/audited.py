"""A script under torch-audit's zero-touch mode: `autopatch(model, optimizer=…, every_n_steps=1)` as its page shows it.

    python audited.py SCRIPT FINDINGS.json

The call is made when a model that shares parameters with an optimizer is first called: everything is built by then.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import torch
from torch_audit import autopatch


class Audit:
    """Every optimizer that was built and every model that is audited."""

    def __init__(self) -> None:
        self.optimizers: list[torch.optim.Optimizer] = []
        self.auditors: dict[int, Any] = {}
        self.inside = 0

    def called(self, model: torch.nn.Module) -> None:
        if self.inside or id(model) in self.auditors:
            return
        parameters = set(map(id, model.parameters()))
        for optimizer in self.optimizers:
            if any(id(each) in parameters for group in optimizer.param_groups for each in group["params"]):
                self.auditors[id(model)] = autopatch(model, optimizer=optimizer, every_n_steps=1)
                return

    def findings(self) -> list[tuple[str, str]]:
        """The rule and severity of each, once."""
        results = [auditor.finish() for auditor in self.auditors.values()]
        return sorted({(each.rule_id, each.severity.value) for result in results for each in result.findings})


def main() -> None:
    audit, call, build = Audit(), torch.nn.Module.__call__, torch.optim.Optimizer.__init__

    def calling(module: torch.nn.Module, *args: Any, **named: Any) -> Any:
        audit.called(module)
        audit.inside += 1
        try:
            return call(module, *args, **named)
        finally:
            audit.inside -= 1

    def building(optimizer: torch.optim.Optimizer, *args: Any, **named: Any) -> None:
        build(optimizer, *args, **named)
        audit.optimizers.append(optimizer)

    torch.nn.Module.__call__, torch.optim.Optimizer.__init__ = calling, building
    try:
        runpy.run_path(sys.argv[1], run_name="__main__")
    finally:
        Path(sys.argv[2]).write_text(json.dumps(audit.findings()), encoding="utf-8")


if __name__ == "__main__":
    main()
