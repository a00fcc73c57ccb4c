"""Whether a script divides its learning rate by the number of micro-batches."""

from __future__ import annotations

import ast

import pytest

from torchtriage.examine.run.job.code import source
from torchtriage.specialists.mixed_precision_and_optimization.probes._rates import is_divided, remarks


@pytest.mark.parametrize(
    ("text", "divided"),
    [
        ("SGD(p, lr=args.lr / args.accumulation_steps)", True),
        ("n = 4\nSGD(p, lr=lr / n)", True),
        ("lr /= accum", True),
        ("SGD(p, lr=0.001 / 4)", True),
        ("k = 4\nSGD(p, 1e-3 / k)", True),
        ("SGD(p, config['lr'] / 4)", True),
        ("SGD(p, lr * (1 / every))", True),
        ("SGD(p, 2.5e-4)", False),
        ("warmup = 5\nrate = lr * step / warmup", False),
        ("rate = lr * step / warmup_steps", False),
        ("scale = 1 / 8\nSGD(p, 2.5e-4)", False),
        ("lr = lr * 0.5", False),
        ("lr *= 4", False),
        ("head = width / 4", False),
    ],
)
def test_a_division_counts_where_it_is_by_the_number_of_passes(text: str, divided: bool) -> None:
    assert is_divided([ast.parse(text)], 2.5e-4, 4, source.words) is divided


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("lr = 2.5e-4  # 1e-3 over 4 accumulation steps", True),
        ("lr = 2.5e-4  # tuned", False),
        ("width = 8  # accumulated", False),
        ("lr = 2.5e-4", False),
    ],
)
def test_a_remark_beside_the_rate_counts(line: str, meant: bool) -> None:
    assert remarks([line], source.words) is meant
