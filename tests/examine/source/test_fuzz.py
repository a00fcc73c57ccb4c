"""Whatever a program looks like, no rule fails on it. bench/fuzz.py does the same ten thousand times."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from types import ModuleType

import pytest

from torchtriage.examine.source.seen import look
from torchtriage.triage import detectors

BENCH = Path(__file__).parents[3] / "bench/fuzz.py"


@pytest.fixture(scope="module")
def fuzz() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_fuzz", BENCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_rule_fails_on_training_code_whose_parts_were_exchanged(fuzz: ModuleType) -> None:
    rules, known, chance = tuple(detectors("rules")), fuzz.trees(), random.Random(0)
    made = 0
    while made < 80:
        try:
            text = fuzz.exchanged(known, chance)
        except (ValueError, TypeError, AttributeError):  # ast.unparse knows no text for some trees
            continue
        made += 1
        seen = look("fuzz.py", text.encode("utf-8", "replace"), rules)
        assert [each.why for each in seen.inconclusive if "the detector failed" in each.why] == [], text


OWN_OPTIMIZER = """
import torch

class Sharded(torch.optim.Optimizer):
    def __init__(self, params, **defaults):
        self.extended = False
        super().__init__(params, defaults)

    def add_param_group(self, group):
        super().add_param_group(group)
        if self.extended:
            self.inner.add_param_group(group)
"""


def test_no_rule_fails_on_an_optimizer_that_nothing_makes() -> None:
    """As torch's ZeroRedundancyOptimizer, whose methods are executed by themselves."""
    seen = look("sharded.py", OWN_OPTIMIZER.encode(), tuple(detectors("rules")))
    assert [each.why for each in seen.inconclusive] == []
