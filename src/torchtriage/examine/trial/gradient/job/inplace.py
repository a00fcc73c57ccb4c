"""What a Function does to what it is given: inputs changed unmarked, grad_output edited, tensors left on ctx."""

from __future__ import annotations

from typing import Any

from .judging import NotJudged, judge
from .problem import Problem, flat
from .refusing import said
from .results import Base, Result, absent, right, unseen, wrong


def inputs(base: Base) -> Result:
    """An input that forward changes has to be marked as dirty, so that whoever uses it again gets the new gradient."""
    changed = [at for at in changes(base) if base.gradients[at] is not None]  # others are buffers, there to be changed
    if not changed:
        return absent("forward leaves its inputs as they are")
    traced = base.problem.traced()
    nodes = {id(each.grad_fn) for each in traced.outputs if each.grad_fn is not None}
    unmarked = [at for at in changed if not _is_marked(traced, at, nodes)]
    names = ", ".join(base.problem.names[at] for at in changed)
    used_again = Problem(
        _with_inputs(base.problem, changed), base.problem.values, base.problem.names, base.problem.numbers
    )
    try:
        rows = judge(used_again, seed=5).of("wrong")
    except NotJudged as reason:
        return unseen(reason.why, reason.unblock)
    except Exception as error:  # noqa: BLE001 - torch itself refuses a change that it has noticed
        return right(f"{names} changed; used again, torch refuses: {said(error)}")
    if not rows:
        return right(f"{names} changed in place, and marked")
    words = f"forward changes {names} in place" + (" without ctx.mark_dirty" if unmarked else "")
    row = _plain(rows[0])
    told = wrong(f"{words}: used again after the call, its gradient is that of the old values", "forward", **row)
    return {**told, "dirty": [base.problem.names[at] for at in unmarked]}


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("input", "name", "entry", "analytical", "numerical") if name in row}


def changes(base: Base) -> list[int]:
    """The differentiated inputs that forward changes."""
    traced = base.problem.traced()
    pairs = zip(traced.given, base.problem.values, strict=True)
    return [at for at, (now, before) in enumerate(pairs) if now.numel() and not bool((flat(now) == flat(before)).all())]


def _is_marked(traced: Any, at: int, nodes: set[int]) -> bool:
    """Whether the changed input has become an output of the Function's node, or of an operation of torch."""
    node = traced.given[at].grad_fn
    return node is not None and (id(node) in nodes or "Clone" not in type(node).__name__)


def _with_inputs(problem: Problem, changed: list[int]) -> Any:
    """The function, and after it what it was given, used again."""

    def function(tensors: list[Any]) -> list[Any]:
        outputs = problem.function(tensors)
        return [*outputs, *(tensors[at] * 1.5 for at in changed)]

    return function


def grad_output(base: Base) -> Result:
    """Backward leaves the gradient that it is given alone: others are given the same tensor."""
    by = [None if each is None else each.clone() for each in base.weights]
    traced = base.problem.traced()
    seen = _Seen(traced.outputs)
    try:
        traced.gradients(by, as_they_are=True)
    finally:
        seen.over()
    edited = [(at, each) for at, each in enumerate(by) if each is not None and not _same(each, base.weights[at])]
    if not edited and not seen.edited:
        return right()
    told = wrong("backward changes the gradient that it is given in place", edited=True)
    if edited:
        at, now = edited[0]
        before = base.weights[at]
        row = int((flat(now) - flat(before)).abs().argmax())
        numbers = {"analytical": float(flat(now)[row]), "numerical": float(flat(before)[row])}
        told["says"] = (
            f"backward changes grad_output{f' {at}' if len(by) > 1 else ''} in place: another branch that shares it "
            f"is given {numbers['analytical']:.6g} where {numbers['numerical']:.6g} is right"
        )
    return told


class _Seen:
    """The gradients that the Functions' nodes get, before and after."""

    def __init__(self, outputs: list[Any]) -> None:
        self.edited = False
        self.handles: list[Any] = []
        for node in functions_in(outputs):
            held: list[Any] = []
            self.handles.append(node.register_prehook(self._before(held)))
            self.handles.append(node.register_hook(self._after(held)))

    def _before(self, held: list[Any]) -> Any:
        def before(grads: Any) -> None:
            held[:] = [(each, each.detach().clone()) for each in grads if each is not None]

        return before

    def _after(self, held: list[Any]) -> Any:
        def after(_inputs: Any, _outputs: Any) -> None:
            self.edited = self.edited or any(not _same(each, old) for each, old in held)

        return after

    def over(self) -> None:
        for each in self.handles:
            each.remove()


def _same(one: Any, two: Any) -> bool:
    a, b = flat(one), flat(two)
    return bool(((a == b) | (a.isnan() & b.isnan())).all())


def functions_in(outputs: list[Any]) -> list[Any]:
    """The nodes of the user's Functions in the graph of OUTPUTS, at most 64."""
    import torch

    todo = [each.grad_fn for each in outputs if each.grad_fn is not None]
    known: set[int] = set()
    found: list[Any] = []
    while todo and len(known) < 4096 and len(found) < 64:
        node: Any = todo.pop()
        if node is None or id(node) in known:
            continue
        known.add(id(node))
        found += [each for each in (node,) if isinstance(each, torch.autograd.function.FunctionCtx)]
        todo += [each for each, _ in node.next_functions]
    return found


def on_ctx(base: Base) -> Result:
    """Outputs, and inputs that get a gradient, belong into save_for_backward."""
    traced = base.problem.traced()
    known = [at for at, each in enumerate(base.gradients) if each is not None]
    inner = {id(traced.given[at]): base.problem.names[at] for at in known}
    outer = {id(each) for each in traced.outputs}
    nodes = functions_in(traced.outputs)
    held = [(node, name, value) for node in nodes for name, value in list(vars(node).items())]
    found = [
        (node, name, "an output" if id(tensor) in outer else f"the input {inner[id(tensor)]}")
        for node, name, value in held
        for tensor in _tensors(value)
        if id(tensor) in inner or id(tensor) in outer
    ]
    traced.gradients(base.weights, retain_graph=True)
    stayed = [(name, what) for node, name, what in found if name in vars(node) and vars(node)[name] is not None]
    if not stayed:
        return right() if nodes else absent("there is no autograd Function in the graph")
    name, what = stayed[0]
    return {"state": "right", "note": "", "on_ctx": {"attribute": name, "what": what}}


def _tensors(value: Any) -> list[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [each for each in value[:64] if isinstance(each, torch.Tensor)]
    return []
