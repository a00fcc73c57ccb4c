"""Derivatives of another order or direction: double backward, forward mode, and rules for vmap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .judging import NotJudged, judge
from .problem import Problem, dense, differ, flat, settle, weights
from .refusing import said
from .results import Base, Result, absent, right, unseen, wrong
from .slopes import WRONG

if TYPE_CHECKING:
    from collections.abc import Sequence

ONCE = "once_differentiable"


def double_backward(base: Base, reference: Base | None = None) -> Result:
    """The gradient's own gradient, by the inputs and by grad_output, against differences of backward."""
    if _is_once(base):
        return absent("marked as once_differentiable: a second derivative is refused, loudly")
    known = [at for at, each in enumerate(base.gradients) if each is not None]
    doubled = _doubled(base.problem, base.weights, known)
    against = _doubled(reference.problem, base.weights, known) if reference is not None else None
    try:
        judged = judge(doubled, against, seed=3)
    except NotJudged as reason:
        return unseen(reason.why, reason.unblock)
    except _Cut:
        words = "the second derivative is missing: what backward returns is cut from the graph, without an error"
        return wrong(words, input=base.problem.numbers[0], name=base.problem.names[0], explains="cut")
    except Exception as error:  # noqa: BLE001 - the user's backward raised it
        return unseen(
            f"it raises {said(error)}", "Mark backward with once_differentiable where no second derivative is wanted."
        )
    for row in [*judged.of("wrong"), *judged.of("none")]:
        words = f"the second derivative by {row['name']} is wrong"
        if row["state"] == "none":
            words = f"the second derivative by {row['name']} is missing: what backward returns is cut from it"
        return wrong(words, **{name: row[name] for name in ROW if name in row})
    return right()


ROW = ("input", "name", "entry", "analytical", "numerical", "explains", "factor", "differ", "judged")


class _Cut(Exception):
    """Nothing that backward returned has a graph."""


def _doubled(problem: Problem, by: Sequence[Any], known: Sequence[int]) -> Problem:
    """Backward as a function of the inputs and of grad_output."""
    import torch

    count = len(problem.values)
    used = [at for at, each in enumerate(by) if each is not None]

    def function(tensors: list[Any]) -> list[Any]:
        traces = torch.is_grad_enabled()
        with torch.enable_grad():
            inner = [each if each.requires_grad else each.detach().requires_grad_() for each in tensors]
            settle()
            outputs = problem.function([each.clone() for each in inner[:count]])
            grads = torch.autograd.grad(
                [outputs[at] for at in used],
                [inner[at] for at in known],
                inner[count:],
                create_graph=traces,
                allow_unused=True,
            )
        found = [dense(each) for each in grads if each is not None]
        if traces and not any(each.requires_grad for each in found):
            raise _Cut
        return found

    names = [*problem.names, *("grad_output" if len(used) == 1 else f"grad_output {at}" for at in used)]
    numbers = [*problem.numbers, *(max(problem.numbers) + 1 + at for at in range(len(used)))]
    return Problem(function, [*problem.values, *(by[at] for at in used)], names, numbers)


def _is_once(base: Base) -> bool:
    """Whether a second derivative ends in once_differentiable's error: a plain backward through everything shows it."""
    by = [None if each is None else each.clone().requires_grad_() for each in base.weights]
    traced = base.problem.traced()
    grads = traced.gradients(by, as_they_are=True, create_graph=True)
    loss: Any = sum((each.abs() ** 2).sum() for each in grads if each is not None)
    if not loss.requires_grad:
        return False
    try:
        loss.backward()
    except Exception as error:  # noqa: BLE001 - its words decide
        return ONCE in str(error)
    return False


def forward_mode(base: Base) -> Result:
    """jvp, where the Function has one: each input moved alone, and all together, against differences of forward."""
    import torch

    own = base.subject.own
    if own is None or own.jvp is torch.autograd.Function.jvp:
        return absent("it defines no jvp")
    moving = range(len(base.problem.values))
    for some in [*([at] for at in moving), list(moving)] if len(base.problem.values) > 1 else [[0]]:
        tangents = [each if at in some else None for at, each in enumerate(weights(base.problem.values, 7))]
        words = f"forward mode, moved along {', '.join(base.problem.names[at] for at in some)}"
        try:
            found = _forward(base.problem, tangents)
        except Exception as raised:  # noqa: BLE001 - the user's jvp raised it
            return wrong(f"{words}: it raises {said(raised)}", "jvp", input=base.problem.numbers[some[0]])
        for number, (got, known, error) in enumerate(zip(found, *_moved(base.problem, tangents), strict=True)):
            told = _unlike(got, known, error, f"{words}, output {number}" if len(found) > 1 else words)
            if told:
                return {**told, "input": base.problem.numbers[some[0]], "name": base.problem.names[some[0]]}
    return right()


def _unlike(got: Any, known: Any, error: Any, words: str) -> Result | None:
    row = flat(known)
    mine = row * 0 if got is None else flat(got)
    if got is not None and mine.shape != row.shape:
        return wrong(f"{words}: the tangent has the shape {tuple(got.shape)}", "jvp")
    bound = 10 * WRONG * max(float(row.abs().max()) if row.numel() else 0.0, 1e-12) + 30 * flat(error).abs()
    bad = (mine - row).abs() > bound
    if not bool(bad.any()):
        return None
    at = int((mine - row).abs().argmax())
    factor = float(mine[at] / row[at]) if float(row[at]) else None
    constant = factor is not None and bool(((mine - factor * row).abs() <= bound).all())
    explains = (
        {"explains": "sign" if factor == -1 or abs((factor or 0) + 1) < 1e-3 else "factor", "factor": factor}
        if constant
        else {}
    )
    return wrong(words, "jvp", entry=[at], analytical=float(mine[at]), numerical=float(row[at]), **explains)


def _forward(problem: Problem, tangents: Sequence[Any]) -> list[Any]:
    from torch.autograd import forward_ad

    with forward_ad.dual_level():
        settle()
        given = [
            each.clone() if tangent is None else forward_ad.make_dual(each.clone(), tangent)
            for each, tangent in zip(problem.values, tangents, strict=True)
        ]
        outputs = problem.function(given)
        return [forward_ad.unpack_dual(each).tangent for each in outputs]


def _moved(problem: Problem, tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Central differences along TANGENTS, and how far two steps differ."""

    def central(step: float) -> list[Any]:
        sides = [
            [
                each if tangent is None else each + sign * step * tangent
                for each, tangent in zip(problem.values, tangents, strict=True)
            ]
            for sign in (1, -1)
        ]
        return [(a - b) / (2 * step) for a, b in zip(problem.outputs(sides[0]), problem.outputs(sides[1]), strict=True)]

    fine, coarse = central(1e-5), central(1e-4)
    return fine, [a - b for a, b in zip(fine, coarse, strict=True)]


def own_vmap(base: Base) -> Result:
    """A Function's own rule for vmap, or the one that torch makes from its parts, against a loop."""
    import torch

    own = base.subject.own
    if own is None or (own.vmap is torch.autograd.Function.vmap and not own.generate_vmap_rule):
        return absent("it has no rule for vmap")
    if base.is_random:
        return absent("what it draws goes by the sample")
    values = base.problem.values
    for some in [*({at} for at in range(len(values))), set(range(len(values)))]:
        for dim in (0, -1):
            words = f"under vmap over {', '.join(base.problem.names[at] for at in sorted(some))}, dimension {dim}"
            many = [torch.stack([v, v * 0.5, v * 0.8 + 0.1], dim) if at in some else v for at, v in enumerate(values)]
            told = _as_loop(base, many, some, dim, words)
            if told:
                return told
    return _by_sample(base) or right()


def _by_sample(base: Base) -> Result | None:
    """The gradient of each sample, as vmap of grad gives it."""
    import torch

    known = [at for at, each in enumerate(base.gradients) if each is not None]

    def loss(*tensors: Any) -> Any:
        found = base.problem.function(list(tensors))
        return sum((out * by).sum() for out, by in zip(found, base.weights, strict=True) if by is not None)

    parts = [[v * size for v in base.problem.values] for size in (1.0, 0.5)]
    words = "the gradient of each sample, by vmap of grad"
    try:
        loop = [Problem(base.problem.function, part, base.problem.names).gradients(base.weights) for part in parts]
        many = [torch.stack(pair) for pair in zip(*parts, strict=True)]
        found = torch.vmap(torch.func.grad(loss, argnums=tuple(known)))(*many)
    except Exception as error:  # noqa: BLE001 - the user's rule raised it
        return unseen(f"{words}: it raises {said(error)}", "Save tensors by save_for_backward only, in setup_context.")
    for number, at in enumerate(known):
        for sample in range(2):
            told = base.unlike([found[number][sample]], words, [loop[sample][at]])
            if told:
                return base.between(at, found[number][sample], loop[sample][at], words)
    return None


def _as_loop(base: Base, many: list[Any], some: set[int], dim: int, words: str) -> Result | None:
    import torch

    def one(*tensors: Any) -> Any:
        found = base.problem.function(list(tensors))
        return found[0] if len(found) == 1 else tuple(found)

    parts = [[v.select(dim, at) if place in some else v for place, v in enumerate(many)] for at in range(3)]
    try:
        known = [base.problem.outputs([each.contiguous() for each in part]) for part in parts]
        found = torch.vmap(one, in_dims=tuple(dim if at in some else None for at in range(len(many))))(*many)
    except Exception as error:  # noqa: BLE001 - the user's rule raised it
        return wrong(f"{words}, it raises {said(error)}", "vmap")
    found = [found] if isinstance(found, torch.Tensor) else list(found)
    for place, each in enumerate(found):
        like = torch.stack([row[place] for row in known])
        if each.shape != like.shape or differ([each], [like], base.same) is not None:
            return wrong(f"{words}, forward gives other values than in a loop", "vmap")
    return None
