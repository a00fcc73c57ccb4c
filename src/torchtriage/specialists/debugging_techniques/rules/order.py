"""What the source alone shows about the order of the calls in one training step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Event, Ring
from torchtriage.examine.source.facts import Block, Call, Scope, dotted
from torchtriage.examine.source.flow import reaches, shared, surely
from torchtriage.examine.source.roles import Part
from torchtriage.examine.source.steps import Backward, TrainingStep
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.debugging_techniques.rules.likeness import (
    between,
    given,
    is_strange,
    measures,
    moved,
    reads_gradients,
    same,
    stepped,
)

_CLIPS = symbols().clips
_SCHEDULES = ("torch.optim.lr_scheduler.", "transformers.get_")
# It looks at a metric of the epoch that has passed, and its first call changes nothing.
_BY_METRIC = "torch.optim.lr_scheduler.ReduceLROnPlateau"


@detector("source/zeroed-before-step")
def zeroed_before_step(step: TrainingStep) -> Iterator[Sighting]:
    """Gradients are cleared between backward and the optimizer's step."""
    cleared = list(step.calls("zero_grad"))
    for zero, call in cleared if step.backwards else ():
        for event, stepping, parts in step.optimizing():
            if not surely(zero, event) or not _is_of(step, call, stepping, parts):
                continue
            backward = _emptied(step, zero, event)
            if backward is not None:
                yield step.script.seen(
                    call.node,
                    f"the gradients of line {backward.call.node.lineno} are cleared here, before the step() of line "
                    f"{stepping.node.lineno} could apply them: the weights do not move",
                    edits=_put_before(step, call, backward),
                )
                break


def _emptied(step: TrainingStep, zero: Event, stepping: Event) -> Backward | None:
    """The last backward whose gradients ZERO clears unused, when no other fills them before STEPPING."""
    backward = next((each for each in reversed(step.backwards) if reaches(each.event, zero)), None)
    if backward is None or zero.call is None or stepping.call is None:
        return None
    kept = [*between(step, backward.event, zero)]
    later = [*between(step, zero, stepping)]
    if any(_fills(step, call) for call in later):
        return None
    if any(_steps(step, call) for call in (*kept, *later)):
        return None
    if any(is_strange(step.script, call) for call in (*kept, *later)):
        return None
    return None if reads_gradients(step.script, backward.call, stepping.call) else backward


def _fills(step: TrainingStep, call: Call) -> bool:
    """Whether CALL computes gradients; functions of this file are written out, so their own name says nothing."""
    named = "backward" in call.tail or call.tail == "grad"
    return named and step.script.trace.definition(call.node.func, call.scope) is None


def _steps(step: TrainingStep, call: Call) -> bool:
    """Whether CALL may step an optimizer; functions of this file are written out here as well."""
    if not call.tail.endswith("step") or _is_schedule(step, call):
        return False
    return step.script.trace.definition(call.node.func, call.scope) is None


def _is_schedule(step: TrainingStep, call: Call) -> bool:
    return step.script.roles.plays(call.receiver, call.scope, "scheduler")


def _is_of(step: TrainingStep, zero: Call, stepping: Call, parts: list[Part]) -> bool:
    """Whether what ZERO clears is what STEPPING applies: the same optimizer, or the model that it was given."""
    script, target = step.script, stepped(step.script, stepping)
    if same(script, zero.receiver, zero.scope, target, stepping.scope):
        return True
    if not script.roles.plays(zero.receiver, zero.scope, "model"):
        return False
    made = [part for part in parts if part.made is not None and part.scope is not None]
    if not made:
        name = dotted(zero.receiver)
        called = any(dotted(event.call.node.func) == name for event in step.events if event.call is not None)
        return bool(name) and called and len(step.optimizing()) == 1
    return all(
        any(same(script, zero.receiver, zero.scope, each, part.scope) for each in given(script, part.made, part.scope))
        for part in made
        if part.made is not None and part.scope is not None
    )


def _put_before(step: TrainingStep, zero: Call, backward: Backward) -> tuple[Edit, ...]:
    """Before backward, where both are lines of one block and nothing else is propagated."""
    alone = isinstance(zero.statement, ast.Expr) and isinstance(backward.call.statement, ast.Expr)
    if not alone or len(step.backwards) != 1 or zero.block is not backward.call.block:
        return ()
    return moved(step.script, "zero-before-backward", zero.statement, backward.call.statement)


@detector("source/clip-after-step")
def clip_after_step(step: TrainingStep) -> Iterator[Sighting]:
    """Gradients are clipped after the optimizer has used them."""
    for clip, call in step.named(_CLIPS) if step.backwards else ():
        if measures(call) or any(reaches(clip, event) for event, _, _ in step.optimizing()):
            continue
        used = [(event, each) for event, each, _ in step.optimizing() if surely(event, clip)]
        if not used or _is_for_later(step, used[-1][0], clip):
            continue
        yield step.script.seen(
            call.node,
            f"the step() of line {used[-1][1].node.lineno} has used these gradients already, unclipped",
            edits=_put_first(step, call, used[-1][1]),
        )


def _is_for_later(step: TrainingStep, used: Event, clip: Event) -> bool:
    """Whether the clipped gradients may still go into a step: new ones, or ones that are not cleared in each turn."""
    again = any(_fills(step, call) or is_strange(step.script, call) for call in between(step, used, clip))
    if again or not any(reaches(backward.event, used) for backward in step.backwards):
        return True
    if any(reaches(event, used) or reaches(event, clip) for event, call in step.named(_CLIPS) if event is not clip):
        return True
    zeros = [event for event, _ in step.calls("zero_grad")]
    return not any(surely(zero, used) or (reaches(used, zero) and surely(used, zero)) for zero in zeros)


def _put_first(step: TrainingStep, clip: Call, stepping: Call) -> tuple[Edit, ...]:
    """Before the step, where that is one line of the same block and no scaler's."""
    scaled = step.script.roles.plays(stepping.receiver, stepping.scope, "scaler")
    alone = isinstance(clip.statement, ast.Expr) and isinstance(stepping.statement, ast.Expr)
    if scaled or not alone or clip.block is not stepping.block:
        return ()
    return moved(step.script, "clip-first", clip.statement, stepping.statement)


@detector("source/scheduler-before-optimizer")
def scheduler_before_optimizer(step: TrainingStep) -> Iterator[Sighting]:
    """The learning rate schedule moves on before the optimizer has made its first step."""
    script = step.script
    if step.hidden or not any(script.roles.plays(c.receiver, c.scope, "scheduler") for c in script.calls("step")):
        return
    whole = step.around[-1] if step.around else step.ring
    turns = script.written.events(whole)
    stepping = [(event, event.call) for event in turns if event.call is not None and event.call.tail == "step"]
    for event, call in stepping:
        made = _schedule(step, call)
        if made is None or call.arguments:
            continue
        steps = [each for each in _of_optimizer(step, made, stepping) if each[0] is not event]
        late = next((each for each in steps if _comes_first(event, each[0])), None)
        if late is None or any(reaches(each[0], event) for each in steps) or _is_stepped_before(step, whole, made):
            continue
        yield script.seen(
            call.node,
            f"this runs before the first step() of line {late[1].node.lineno}: that is taken with the schedule's "
            "second learning rate, the first is skipped",
            edits=_put_after(step, call, late[1]),
        )


def _comes_first(event: Event, late: Event) -> bool:
    """Whether EVENT runs before LATE on every way; if phase == "train" above and below is one way."""
    if surely(event, late) or not reaches(event, late):
        return surely(event, late)
    tests = {_test(block, late) for block in late.path} - {""}
    own = [block for block in event.path[shared(event, late) :] if block.kind in ("arm", "loop", "handler")]
    return all(_test(block, event) in tests or _goes_through(block, event) for block in own)


def _goes_through(block: Block, event: Event) -> bool:
    """Whether BLOCK is a loop over the schedules themselves: for each in schedulers: each.step()."""
    owner = block.owner
    root = dotted(event.call.receiver) if event.call is not None else ""
    return isinstance(owner, ast.For) and any(
        isinstance(node, ast.Name) and node.id == root for node in ast.walk(owner.target)
    )


def _test(block: Block, event: Event) -> str:
    """What is asked where EVENT stands in the first arm of an if, when asking again gives the same; else ""."""
    call, owner = event.call, block.owner
    if call is None or block.kind != "arm" or not isinstance(owner, ast.If):
        return ""
    simple = (ast.Compare, ast.Name, ast.Attribute, ast.Constant, ast.expr_context, ast.cmpop)
    asks = all(isinstance(node, simple) for node in ast.walk(owner.test)) and block in call.path
    inside = owner.body[0].lineno <= call.node.lineno <= (owner.body[-1].end_lineno or 0)
    return ast.dump(owner.test) if asks and inside else ""


def _schedule(step: TrainingStep, call: Call) -> Part | None:
    """The construction of the schedule that CALL moves on, when it is torch's and the only one it can be."""
    parts = step.script.roles.parts(call.receiver, call.scope)
    known = [part for part in parts if part.role == "scheduler" and part.by in ("made", "annotated")]
    if len(parts) != 1 or not known or known[0].name == _BY_METRIC:
        return None
    return known[0] if known[0].name.startswith(_SCHEDULES) or known[0].made is None else None


def _of_optimizer(step: TrainingStep, made: Part, steps: list[tuple[Event, Call]]) -> list[tuple[Event, Call]]:
    """Those of STEPS that are steps of the optimizer which the schedule was made for.

    Where its construction is not seen: the steps of the one optimizer there is.
    """
    owner = _owner(made)
    if owner is None or made.scope is None or not _is_bound(step, owner, made.scope):
        found = step.optimizing()
        whose = {dotted(stepped(step.script, call)) for _, call, _ in found}
        inside = {id(call) for _, call, _ in found}
        return [each for each in steps if id(each[1]) in inside] if len(whose) == 1 else []
    return [
        (event, call)
        for event, call in steps
        if made.scope is not None and _may_be(step, owner, made.scope, stepped(step.script, call), call.scope)
    ]


def _may_be(step: TrainingStep, one: ast.expr | None, here: Scope, other: ast.expr | None, there: Scope) -> bool:
    """Whether both are one optimizer, or one of those that the other may be: each schedule in a loop has its own."""
    if same(step.script, one, here, other, there):
        return True
    ends = [step.script.trace.origins(one, here), step.script.trace.origins(other, there)]
    calls = [{id(end.call) for end in side if end.call is not None} for side in ends]
    return len(ends[0]) > 1 and bool(calls[0] & calls[1])


def _is_bound(step: TrainingStep, owner: ast.expr, scope: Scope) -> bool:
    """Whether OWNER is a name of its scope: the variable of a comprehension is not, [StepLR(o, 9) for o in optims]."""
    return not isinstance(owner, ast.Name) or step.script.names.home(owner.id, scope) is not None


def _owner(made: Part) -> ast.expr | None:
    if made.made is None:
        return None
    words = [keyword.value for keyword in made.made.keywords if keyword.arg == "optimizer"]
    return words[0] if words else next(iter(made.made.args), None)


def _is_stepped_before(step: TrainingStep, whole: Ring, made: Part) -> bool:
    """Whether the optimizer steps outside of the loop as well, or under a name that hides it: then who knows."""
    inside = {id(event.fact) for event in step.script.written.events(whole)}
    outside = [call for call in step.script.calls("step") if id(call) not in inside]
    return made.scope is not None and any(
        same(step.script, _owner(made), made.scope, stepped(step.script, call), call.scope) for call in outside
    )


def _put_after(step: TrainingStep, schedule: Call, stepping: Call) -> tuple[Edit, ...]:
    alone = isinstance(schedule.statement, ast.Expr) and isinstance(stepping.statement, ast.Expr)
    if not alone or schedule.block is not stepping.block:
        return ()
    return moved(step.script, "scheduler-last", schedule.statement, stepping.statement, after=True)
