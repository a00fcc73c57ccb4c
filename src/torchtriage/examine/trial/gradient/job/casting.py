"""Under autocast: forward in bfloat16 where autocast casts, backward outside of it, as a training step has them."""

from __future__ import annotations

import inspect
from typing import Any

from .problem import flat
from .refusing import said
from .results import Base, Result, absent, right, unseen, wrong

OFF = 0.1
"""Of the gradient's norm. bfloat16 rounds to 0.4 %, and a sum of hundreds of such terms stays far below this."""
AGAIN = 10.0
"""Times what rounding the inputs to bfloat16 changes by itself."""


def under_autocast(base: Base) -> Result:
    """Gradients under autocast against those of float32, within what rounding to bfloat16 explains."""
    import torch

    if base.is_random:
        return absent("what it draws goes by the format")
    problem = base.given.problem(torch.float32)
    by = [
        None if each is None else each.to(torch.complex64 if each.is_complex() else torch.float32)
        for each in base.weights
    ]
    try:
        known = problem.gradients(by)
        rounded = _rounded(problem, by)
    except Exception as error:  # noqa: BLE001 - the user's function raised it
        return unseen(f"in float32 it raises {said(error)}", "Let it take float32, or it is not used under autocast.")
    declared, device = _declared(base.subject)
    try:
        found, dtypes = _cast(problem, by)
    except Exception as error:  # noqa: BLE001 - the user's function raised it
        return _raised(error, declared, device)
    for at, (got, like) in enumerate(zip(found, known, strict=True)):
        if got is None or like is None or not like.numel():
            continue
        name = problem.names[at]
        if got.dtype != like.dtype:
            return wrong(
                f"under autocast the gradient of {name} is {got.dtype}, the input {like.dtype}",
                input=problem.numbers[at],
            )
        told = _far(base, at, got, like, rounded[at])
        if told:
            return told
    return right(f"output {', '.join(sorted(dtypes))}")


def _far(base: Base, at: int, got: Any, like: Any, rounded: Any) -> Result | None:
    one, two = flat(got), flat(like)
    norm = float(two.norm())
    moved = float((flat(rounded) - two).norm()) if rounded is not None else 0.0
    if float((one - two).norm()) <= OFF * norm + AGAIN * moved + 1e-6:
        return None
    return base.between(at, got, like, "under autocast to bfloat16 it is far from that of float32")


def _cast(problem: Any, by: list[Any]) -> tuple[list[Any], set[str]]:
    import torch

    with torch.autocast("cpu", dtype=torch.bfloat16):
        traced = problem.traced()
    given = [None if each is None else each.to(out.dtype) for each, out in zip(by, traced.outputs, strict=True)]
    found = traced.gradients(given)
    return found, {str(each.dtype).removeprefix("torch.") for each in traced.outputs}


def _rounded(problem: Any, by: list[Any]) -> list[Any]:
    """The gradients in float32 of inputs that are rounded to bfloat16."""
    import torch

    values = problem.values
    try:
        problem.values = [each if each.is_complex() else each.to(torch.bfloat16).to(each.dtype) for each in values]
        found: list[Any] = problem.gradients(by)
        return found
    finally:
        problem.values = values


def _raised(error: Exception, declared: bool, device: str) -> Result:
    words = f"under autocast to bfloat16 it raises {said(error)}"
    if declared and device in {"", "cpu"}:
        return {**wrong(words), "autocast": words}
    if declared:
        return unseen(
            f"custom_fwd and custom_bwd name {device}, and this check runs on the CPU",
            "Run it where that device is, or name cpu.",
        )
    do = "If it is used under autocast: custom_fwd and custom_bwd (torchtriage explain autocast-not-handled)."
    return {**unseen(words, do), "autocast": words}


def _declared(subject: Any) -> tuple[bool, str]:
    """Whether forward or backward say that they are made for autocast, and for which device."""
    own = subject.own or (subject.inner[0] if getattr(subject, "inner", None) else None)
    for name in ("forward", "backward"):
        code = getattr(getattr(own, name, None), "__code__", None)
        if code is not None and code.co_name in {"decorate_fwd", "decorate_bwd"}:
            return True, _device(getattr(own, name))
    return False, ""


def _device(decorated: Any) -> str:
    closure = inspect.getclosurevars(decorated).nonlocals
    return str(closure.get("device_type", ""))
