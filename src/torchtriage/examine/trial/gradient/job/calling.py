"""The same function, called in other ways: some inputs only, twice, two calls at once, one output only, batched."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from .problem import Problem, differ, flat, settle
from .refusing import said
from .results import Base, Result, absent, right, unseen, wrong


def needs_input_grad(base: Base) -> Result:
    """Each combination of the inputs that need a gradient gives the gradients that all together give."""
    known = [at for at, each in enumerate(base.gradients) if each is not None]
    if len(known) < 2:
        return absent("one input gets a gradient")
    sizes = range(1, len(known)) if len(known) <= 4 else (1, len(known) - 1)
    tried = 0
    for wanted in (each for size in sizes for each in combinations(known, size)):
        names = ", ".join(base.problem.names[at] for at in wanted)
        words = f"when only {names} need{'s' if len(wanted) == 1 else ''} a gradient"
        tried += 1
        try:
            found = base.problem.gradients(base.weights, wanted)
        except Exception as error:  # noqa: BLE001 - the user's backward raised it
            return wrong(f"{words}, it raises {said(error)}", input=base.problem.numbers[wanted[0]])
        for at in wanted:
            gone = base.unlike([found[at]], words, [base.gradients[at]])
            if gone:
                return base.between(at, found[at], base.gradients[at], words)
    return right(f"{tried} combinations")


def unneeded(base: Base) -> str:
    """Inputs for which backward computes a gradient that nobody asked for: a note, no fault."""
    own = base.subject.own
    if own is None or len(base.problem.values) < 2 or "backward" not in vars(own):
        return ""
    wasted: set[str] = set()
    original = vars(own)["backward"]
    backward = original.__func__ if isinstance(original, staticmethod) else original

    def watched(ctx: Any, *grads: Any) -> Any:
        found = backward(ctx, *grads)
        for at, each in enumerate(found if isinstance(found, tuple) else (found,)):
            if each is not None and at < len(ctx.needs_input_grad) and not ctx.needs_input_grad[at]:
                wasted.add(base.given.names[at] if at < len(base.given.names) else f"input {at}")
        return found

    own.backward = staticmethod(watched)
    try:
        for at in range(len(base.problem.values)):
            base.problem.gradients(base.weights, [at])
    finally:
        own.backward = original
    return f"also computed when not needed: {', '.join(sorted(wasted))}" if wasted else ""


def twice(base: Base) -> Result:
    """Two backward passes through one graph give the same bits, and leave inputs and outputs alone."""
    traced = base.problem.traced()
    before = [flat(each).clone() for each in [*traced.given, *traced.outputs]]
    settle(1)
    first = traced.gradients(base.weights, retain_graph=True)
    kept = [None if each is None else each.clone() for each in first]
    names = [*base.problem.names, *(f"output {at}" for at in range(len(traced.outputs)))]
    now = zip(names, [*traced.given, *traced.outputs], before, strict=True)
    changed = [name for name, each, old in now if not bool(((flat(each) == old) | old.isnan()).all())]
    settle(2)
    try:
        again = traced.gradients(base.weights, retain_graph=True)
    except Exception as error:  # noqa: BLE001 - the user's backward raised it
        if changed:
            return wrong(f"backward changes {changed[0]} in place, which it was given to look at")
        return right(f"one backward only: {said(error)}")
    unlike = base.unlike(again, "a second backward through the same graph gives other gradients", kept)
    traced.gradients([None if each is None else each * -0.5 for each in base.weights], retain_graph=True)
    unlike = unlike or base.unlike(
        first, "a second backward overwrites what the first one gave: one buffer for both", kept
    )
    if changed:
        return {**(unlike or {}), **wrong(f"backward changes {changed[0]} in place, which it was given to look at")}
    return unlike or right()


def two_calls(base: Base) -> Result:
    """A second call before the first one's backward changes nothing: no state is shared."""
    import torch

    other = [each * 0.5 + 0.1 for each in base.problem.values]
    settle()
    traced = base.problem.traced()
    second = Problem(base.problem.function, other, base.problem.names)
    try:
        with torch.enable_grad():
            held = second.traced()
    except Exception as error:  # noqa: BLE001 - other numbers need not be in its domain
        return unseen(f"with other numbers forward raises {said(error)}", "Nothing, if they are out of its domain.")
    words = "when forward is called again before backward"
    if differ(traced.outputs, base.outputs, base.same) is not None:
        return wrong(f"{words}, the first call's output is overwritten: one buffer for both", "forward")
    try:
        found = traced.gradients(base.weights)
    except Exception as error:  # noqa: BLE001 - the user's backward raised it
        return wrong(f"{words}, it raises {said(error)}")
    del held
    return base.unlike(found, f"{words}, it uses what the later call left: state is shared between calls") or right()


def same_twice(base: Base) -> Result:
    """One tensor in the place of two inputs gets the sum of their gradients."""
    values = base.problem.values
    pairs = [(a, b) for a, b in combinations(range(len(values)), 2) if values[a].shape == values[b].shape]
    pairs = [pair for pair in pairs if all(base.gradients[at] is not None for at in pair)]
    if not pairs or base.is_random:
        return absent("no two inputs of one shape")
    first, second = pairs[0]

    def function(tensors: list[Any], *, copied: bool = False) -> list[Any]:
        given = list(tensors)
        given[second] = tensors[first].clone() if copied else tensors[first]
        return base.problem.function(given)

    try:
        known = Problem(lambda tensors: function(tensors, copied=True), values, base.problem.names).gradients(
            base.weights
        )
        found = Problem(function, values, base.problem.names).gradients(base.weights)
    except Exception as error:  # noqa: BLE001 - equal inputs need not be in its domain, nor be allowed in place
        return absent(f"one tensor for two inputs is refused: {said(error)}")
    names = f"{base.problem.names[first]} and {base.problem.names[second]}"
    return base.unlike(found, f"when {names} are one tensor", known) or right()


def one_output(base: Base) -> Result:
    """Of several outputs one is used: the others' gradients are zeros, or None with set_materialize_grads(False)."""
    used = [at for at, each in enumerate(base.weights) if each is not None]
    if len(used) < 2:
        return absent("one output")
    for only in used:
        some = [each if at == only else None for at, each in enumerate(base.weights)]
        zeros = [None if each is None else each if at == only else each * 0 for at, each in enumerate(base.weights)]
        words = f"when only output {only} is used"
        known = base.problem.gradients(zeros)
        try:
            found = base.problem.gradients(some)
        except Exception as error:  # noqa: BLE001 - the user's backward raised it
            return wrong(f"{words}, it raises {said(error)}")
        found = [_filled(each, like) for each, like in zip(found, known, strict=True)]
        unlike = base.unlike(found, words, known)
        if unlike:
            return unlike
    return right(f"{len(used)} outputs")


def _filled(found: Any, like: Any) -> Any:
    """None is as good as zeros."""
    return None if like is None else like * 0 if found is None else found


def batched(base: Base) -> Result:
    """Several grad_outputs at once, as torch.autograd.functional and is_grads_batched give them."""
    import torch

    traced = base.problem.traced()
    pairs = [(out, by) for out, by in zip(traced.outputs, base.weights, strict=True) if by is not None]
    if not pairs:
        return absent("no output needs a gradient")
    many = [torch.stack([by, by * -0.5, by.flip(0) if by.dim() else by * 3]) for _, by in pairs]
    outs = [out for out, _ in pairs]
    try:
        found = torch.autograd.grad(
            outs, traced.roots, many, allow_unused=True, is_grads_batched=True, retain_graph=True
        )
    except Exception as error:  # noqa: BLE001 - vmap says what it cannot do
        return unseen(
            f"it does not run under vmap: {said(error)}", "Use operations of torch in backward, none in place."
        )
    for at in range(3):
        known = base.problem.traced().gradients(_placed([each[at] for each in many], base.weights))
        unlike = base.unlike([None if each is None else each[at] for each in found], "batched by vmap", known)
        if unlike:
            return unlike
    return right()


def _placed(found: list[Any], like: list[Any]) -> list[Any]:
    left = iter(found)
    return [None if each is None else next(left) for each in like]
