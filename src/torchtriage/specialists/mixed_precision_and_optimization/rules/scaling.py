"""What the source alone shows about mixed precision."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Block, Call, dotted
from torchtriage.examine.source.flow import reaches, shared, surely
from torchtriage.examine.source.steps import Backward, TrainingStep

_CLIPS = frozenset({"torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_"})

# Read off the scaler and not called: unscale_ under a name of its own, or the factor for division by hand.
_UNSCALERS = frozenset({"unscale_", "get_scale", "_scale"})


@detector("source/clip-before-unscale")
def clip_before_unscale(step: TrainingStep) -> Iterator[Sighting]:
    """Gradients are clipped after a scaled backward, with no unscale_ before."""
    script = step.script
    if any(step.calls("get_scale")) or step.handed_over("scaler"):  # unscaled by hand, or out of sight
        return
    for backward in step.backwards:
        if backward.scaler is None or _is_disabled(step, backward):
            continue
        for clip, call in _clips(step):
            if _is_scaled(step, backward, clip) and not script.aside & _UNSCALERS:
                yield script.seen(
                    call.node,
                    f"the gradients of line {backward.call.node.lineno} are still multiplied by the loss scale here "
                    "(65536 at first), so what is left after clipping is that much too small",
                    edits=_edit(step, backward, clip, call),
                )


def _is_scaled(step: TrainingStep, backward: Backward, clip: Event) -> bool:
    """Whether the gradients of BACKWARD come to CLIP as they are: neither unscaled nor used up by then."""
    if not reaches(backward.event, clip) or step.before(clip, "unscale_") is not None:
        return False
    if _is_elsewhere(step, backward, clip) or _is_overtaken(step, backward, clip):
        return False
    steps = (
        event for event, call in step.calls("step") if step.script.roles.plays(call.receiver, call.scope, "scaler")
    )
    return not any(reaches(backward.event, event) and reaches(event, clip) for event in steps)


def _is_elsewhere(step: TrainingStep, backward: Backward, clip: Event) -> bool:
    """Whether the two may never run in one step: `if fp16: …` around the one, `if not fp16: …` around the other.

    What the scaler is enabled by counts as a condition of the backward.
    """
    common = shared(backward.event, clip)
    inside = _tests(clip.path[common:])
    if {*_words([*_tests(backward.event.path[common:]), *_enabled(step, backward)])} & {*_words(inside)}:
        return True
    return any(isinstance(node, ast.Not) for test in inside for node in ast.walk(test))


def _tests(path: Iterable[Block]) -> list[ast.expr]:
    return [block.owner.test for block in path if isinstance(block.owner, ast.If)]


def _words(tests: Iterable[ast.expr]) -> Iterator[str]:
    """The last words of the names in TESTS: a flag may be args.fp16 here and self.fp16 there."""
    for test in tests:
        inside = list(ast.walk(test))
        parts = {id(node.value) for node in inside if isinstance(node, ast.Attribute)}
        yield from (dotted(node).rpartition(".")[2] for node in inside if dotted(node) and id(node) not in parts)


def _is_overtaken(step: TrainingStep, backward: Backward, clip: Event) -> bool:
    """Whether an unscaled backward in between may be what the clip is for: a GAN that scales one network only."""
    return any(
        other.scaler is None and reaches(backward.event, other.event) and reaches(other.event, clip)
        for other in step.backwards
        if step.script.trace.definition(other.call.node.func, other.call.scope) is None
    )


def _clips(step: TrainingStep) -> Iterator[tuple[Event, Call]]:
    yield from step.named(_CLIPS)
    for event, call in step.calls("clamp_"):
        if dotted(call.receiver).endswith((".grad", ".grad.data")):
            yield event, call


def _is_disabled(step: TrainingStep, backward: Backward) -> bool:
    return any(isinstance(each, ast.Constant) and each.value is False for each in _enabled(step, backward))


def _enabled(step: TrainingStep, backward: Backward) -> list[ast.expr]:
    """What the scaler is given as enabled=."""
    made = step.script.roles.made(backward.scaler, backward.call.scope, "scaler")
    return [keyword.value for part in made if part.made for keyword in part.made.keywords if keyword.arg == "enabled"]


def _edit(step: TrainingStep, backward: Backward, clip: Event, call: Call) -> tuple[Edit, ...]:
    """Safe only where nothing unscales already, and the clip runs exactly once for each step of one optimizer."""
    scaler = dotted(backward.scaler)
    steps = [(event, each) for event, each in step.calls("step") if dotted(each.receiver) == scaler]
    if not scaler or len(steps) != 1 or any(step.calls("unscale_")) or not surely(backward.event, clip):
        return ()
    event, stepping = steps[0]
    optimizer = dotted(stepping.argument("optimizer", 0))
    alike = event.path == clip.path and reaches(clip, event) and stepping.scope is call.scope is backward.call.scope
    if not alike or not optimizer:
        return ()
    return step.script.insertion("unscale-first", call.statement, f"{scaler}.unscale_({optimizer})")
