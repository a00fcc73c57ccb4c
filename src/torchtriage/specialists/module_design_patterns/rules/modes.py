"""Training in evaluation mode, and evaluation in training mode."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Event, Ring
from torchtriage.examine.source.facts import Block, Call
from torchtriage.examine.source.flow import reaches
from torchtriage.examine.source.modes import Modes, Switch, roots
from torchtriage.examine.source.steps import TrainingStep
from torchtriage.specialists.module_design_patterns.rules.state import has_modes

_EVALUATION = frozenset(
    {"val", "vals", "valid", "validate", "validation", "validating", "dev", "test", "testing", "tests", "holdout"}
    | {"eval", "evaluate", "evaluation", "evaluating", "evaluator"}
)
# Words that say the same only together with no_grad.
_MEASURES = frozenset(
    {"accuracy", "acc", "metric", "metrics", "score", "scores", "predict", "predictions", "infer", "inference"}
    | {"perplexity", "bleu", "auc", "correct", "confusion", "report"}
)
# Words for passes that want the training mode: statistics of batch norm, Monte Carlo dropout.
_WANTED = frozenset({"bn", "batchnorm", "calibrate", "calibration", "mc", "montecarlo", "swa", "stats", "statistics"})
# Packages whose models have dropout or batch norm, all but a few.
_LIBRARIES = frozenset({"torchvision", "timm", "transformers", "segmentation_models_pytorch", "efficientnet_pytorch"})
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


@detector("source/mode-left-in-eval")
def mode_left_in_eval(step: TrainingStep) -> Iterator[Sighting]:
    """The model is put into evaluation mode inside the training loop and never back."""
    if step.hidden is not None or step.unseen_method() is not None or not any(step.script.calls("eval", "train")):
        return
    modes = Modes(step)
    told: set[int] = set()
    for call, models in modes.trained:
        for ring in modes.rings:
            for switch in _stuck(modes, ring, models):
                if id(switch.call.node) not in told:
                    told.add(id(switch.call.node))
                    fact = _left(step, switch, ring, call)
                    yield step.script.seen(switch.call.node, fact)
        for switch in _never(modes, call, models):
            if id(switch.call.node) not in told:
                told.add(id(switch.call.node))
                name = step.script.source(switch.call.receiver or call.node)
                fact = f"{name} is trained in line {call.node.lineno}, and no train() comes in between"
                yield step.script.seen(switch.call.node, fact)


def _never(modes: Modes, call: Call, models: frozenset[object]) -> list[Switch]:
    """The eval() calls before the training of MODELS, where nothing ever calls train()."""
    own = [each for each in modes.switches(modes.whole) if not models.isdisjoint(each.models) or not each.models]
    if any(each.to == "train" for each in own) or not any(each.models for each in own):
        return []
    events = modes.script.written.events(modes.whole)
    first = next((each for each in events if each.call is call), None)
    off = [each for each in own if each.models and first is not None and reaches(each.event, first)]
    off = [each for each in off if not any(block.kind == "loop" for block in each.event.path)]
    if not off or modes.is_hidden(modes.whole, models) or any(_is_said(modes, each) for each in off):
        return []
    return off if modes.is_given(models) and _differ(modes, models) else []


def _is_said(modes: Modes, switch: Switch) -> bool:
    """Whether a comment close by says that the evaluation mode is wanted."""
    line = switch.call.node.lineno
    near = " ".join(modes.script.text.line(number).lower() for number in range(max(1, line - 2), line + 1))
    return any(word in near for word in ("freez", "frozen", "fix", "keep", "statistic"))


def _left(step: TrainingStep, switch: Switch, ring: Ring, call: Call) -> str:
    name = step.script.source(switch.call.receiver or call.node)
    loop, line = getattr(ring.block.owner, "lineno", 0), call.node.lineno
    return f"{name} stays in evaluation mode: nothing in the loop of line {loop} calls train() again for line {line}"


def _stuck(modes: Modes, ring: Ring, models: frozenset[object]) -> list[Switch]:
    """The eval() calls of RING after which it trains MODELS again without train()."""
    own = [each for each in modes.switches(ring) if not models.isdisjoint(each.models) or not each.models]
    off = [each for each in own if each.to == "eval" and each.models and not _ends(each.event, ring)]
    if not off or any(each.to == "train" for each in own) or modes.is_hidden(ring, models):
        return []
    return off if _is_trained(modes, models) and _may_differ(modes, models) else []


def _ends(event: Event, ring: Ring) -> bool:
    """Whether the way of EVENT leaves RING: a last evaluation before a break."""
    inside = event.path[event.path.index(ring.block) + 1 :] if ring.block in event.path else ()
    for block in inside:
        if block.kind == "body":
            return False
        if block.leaves:
            return True
    return False


def _is_trained(modes: Modes, models: frozenset[object]) -> bool:
    """Whether MODELS are what the step is to train.

    The optimizer holds them, or, where it is made out of sight, train() is called on them or no other model is trained.
    """
    given = modes.is_given(models)
    if given is not None:
        return given
    alone = all(each & models for _, each in modes.trained) and bool(modes.step.optimizing())
    return alone or any(each.to == "train" and models & each.models for each in modes.switches(modes.whole))


def _may_differ(modes: Modes, models: frozenset[object]) -> bool:
    """Whether the two modes may differ: not where this file makes the model of layers that have none."""
    parts = [
        part
        for call, each in modes.trained
        if each & models
        for part in modes.script.roles.parts(call.node.func, call.scope)
        if part.role == "model"
    ]
    known = bool(parts) and all(part.made and (not part.name or part.name.startswith("torch.nn.")) for part in parts)
    return not known or has_modes(modes.script)


def _differ(modes: Modes, models: frozenset[object]) -> bool:
    """Whether the two modes surely differ: layers of this file do, or the model is one of a library of such."""
    script = modes.script
    origins = (
        origin
        for call, each in modes.trained
        if each & models
        for origin in script.trace.origins(call.node.func, call.scope)
    )
    made = {script.names.resolve(each.call.func, each.scope) for each in origins if each.call is not None}
    return has_modes(script) or any(name.partition(".")[0] in _LIBRARIES for name in made)


@detector("source/mode-left-in-train")
def mode_left_in_train(step: TrainingStep) -> Iterator[Sighting]:
    """The model is evaluated in training mode."""
    if step.hidden is not None or step.unseen_method() is not None:
        return
    modes = Modes(step)
    events = step.script.written.events(modes.whole)
    told: set[int] = set()
    for event, call in modes.forwards(events) if modes.trained else ():
        if id(call.node) in told or step.ring.block in event.path or not _is_evaluation(modes, event, events):
            continue
        told.add(id(call.node))
        if any(keyword.arg in ("is_training", "training", "train", "is_train") for keyword in call.node.keywords):
            continue
        called = roots(step.script, call.node.func, call.scope)
        training = next((each for each in modes.trained if each[1] & called), None)
        if training is not None and _is_in_training(modes, event, training[1]):
            where = f"line {training[0].node.lineno} trains it, and no eval() comes before this call"
            yield step.script.seen(call.node, f"the model is evaluated in training mode: {where}")


def _is_evaluation(modes: Modes, event: Event, events: tuple[Event, ...]) -> bool:
    """Whether EVENT stands in a loop of its own, named for evaluation or over such data, without a backward."""
    loop = next((block for block in reversed(event.path) if block.kind == "loop"), None)
    words = {word for block in event.path for word in _words(block)}
    named = words & _EVALUATION or (words & _MEASURES and modes.is_without(event))
    if loop is None or not named or words & _WANTED or modes.step.ring.block is loop:
        return False
    propagates = (each.call for each in events if each.call is not None and loop in each.path)
    return not any(each.tail in ("backward", "step") for each in propagates)


def _words(block: Block) -> Iterator[str]:
    """The words in the name of a function, and in the names of what a loop goes through."""
    match block.owner:
        case ast.FunctionDef(name=name):
            names = [name]
        case ast.For(iter=over):
            inside = list(ast.walk(over))
            names = [each.id for each in inside if isinstance(each, ast.Name)]
            names += [each.attr for each in inside if isinstance(each, ast.Attribute)]
        case _:
            names = []
    for name in names:
        yield from (word.lower() for word in _WORD.findall(name))


def _is_in_training(modes: Modes, event: Event, models: frozenset[object]) -> bool:
    """Whether MODELS are in training mode at EVENT: trained before, and no eval() on any way from there."""
    ours = [each for each in modes.switches(modes.whole) if not each.models or each.models & models]
    before = [each for each in ours if each.event.order < event.order]
    after = [each for each in before if each.to == "train"]
    last = max((each.event.order for each in after), default=-1)
    off = [each for each in before if each.to == "eval"]
    if any(each.event.order > last or _apart(each, after) or not reaches(each.event, event) for each in off):
        return False
    trained = {id(call.node) for call, each in modes.trained if each & models}
    events = modes.script.written.events(modes.whole)
    begun = any(each.call is not None and id(each.call.node) in trained for each in events[: event.order])
    if not begun or modes.is_hidden(modes.whole, models) or "eval" in modes.script.aside:
        return False
    return _is_trained(modes, models) and _differ(modes, models)


def _apart(off: Switch, on: list[Switch]) -> bool:
    """Whether the eval() stands in another branch than the train() after it."""
    return any(off.event.order < each.event.order and not reaches(off.event, each.event) for each in on)
