"""What the readings of autograd functions say of events made by hand."""

from __future__ import annotations

from typing import Any

import pytest
from records import evidence, found, steps

from torchtriage.specialists.custom_autograd_functions.readings import functions

ON_CTX = {
    "kind": "on-ctx", "step": 30, "function": "Squash", "attribute": "out", "what": "output", "calls": 32,
    "bytes": 16384, "stayed": 20, "looked": 29, "taken": False, "path": "t.py", "line": 9,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({}, {"tensor-on-ctx"}, id="an output in every call"),
        pytest.param({"calls": 1}, set(), id="once"),
        pytest.param({"taken": True}, set(), id="backward takes it off"),
    ],
)
def test_a_tensor_on_ctx(change: dict[str, Any], slugs: set[str]) -> None:
    assert found(functions.tensor_on_ctx, [*steps(40), {**ON_CTX, **change}]) == slugs


def test_what_stays_is_counted_and_what_holds_it_is_named() -> None:
    (item,) = evidence(functions.tensor_on_ctx, [*steps(40), ON_CTX])
    assert "ctx.out is an output of forward (16.0 KiB a call), in 32 calls; 20 of 29 were still there" in item.fact
    assert (item.place.line, item.place.container) == (9, "ctx.out")
    (item,) = evidence(functions.tensor_on_ctx, [*steps(40), {**ON_CTX, "looked": 0, "bytes": 2**21}])
    assert item.fact.endswith("(2.0 MiB a call), in 32 calls")


CHANGED = {
    "kind": "changed-input", "step": 30, "function": "Scale", "input": "x", "changed": 32, "calls": 32, "path": "t.py",
    "line": 9,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({}, {"dirty-not-marked"}, id="in every call"),
        pytest.param({"changed": 1, "calls": 1}, set(), id="a single call"),
        pytest.param({"changed": 10}, set(), id="in some calls only"),
    ],
)
def test_an_input_changed_in_place(change: dict[str, Any], slugs: set[str]) -> None:
    assert found(functions.dirty_not_marked, [*steps(40), {**CHANGED, **change}]) == slugs
