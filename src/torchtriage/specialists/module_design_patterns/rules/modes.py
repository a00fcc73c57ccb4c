"""Training in evaluation mode, and evaluation in training mode."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Event, Ring
from torchtriage.examine.source.facts import Block, Call, dotted
from torchtriage.examine.source.flow import reaches
from torchtriage.examine.source.modes import Modes, Switch, called
from torchtriage.examine.source.steps import TrainingStep
from torchtriage.specialists.module_design_patterns.rules.state import has_modes

_EVALUATION = frozenset(
    {"val", "vals", "valid", "validate", "validation", "validating", "dev", "test", "testing", "tests", "holdout"}
    | {"eval", "evaluate", "evaluation", "evaluating", "evaluator"}
)
# Words that say the same only together with no_grad.
_MEASURES = frozenset(
    {"accuracy", "acc", "metric", "metrics", "score", "scores", "predict", "predictions", "infer", "inference"}
    | {"perplexity", "bleu", "estimate", "auc", "correct", "confusion", "report"}
)
# Words for passes that want the training mode: statistics of batch norm, Monte Carlo dropout.
_WANTED = frozenset({"bn", "batchnorm", "calibrate", "calibration", "mc", "montecarlo", "swa", "stats", "statistics"})
# Packages whose models have dropout or batch norm, all but a few.
_LIBRARIES = frozenset({"torchvision", "timm", "transformers", "segmentation_models_pytorch", "efficientnet_pytorch"})
_SIMPLE = (ast.Assign, ast.Return, ast.Expr, ast.AugAssign, ast.AnnAssign)
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
        inside = step.ring.block in event.path and not modes.is_without(event)
        if id(call.node) in told or inside or not _is_evaluation(modes, event, events):
            continue
        told.add(id(call.node))
        if any(keyword.arg in ("is_training", "training", "train", "is_train") for keyword in call.node.keywords):
            continue
        models = called(step.script, call)
        training = next((each for each in modes.trained if each[1] & models), None)
        if training is not None and _is_in_training(modes, event, training[1]):
            where = f"line {training[0].node.lineno} trains it, and no eval() comes before this call"
            yield step.script.seen(call.node, f"the model is evaluated in training mode: {where}")
    yield from _all_phases(step, modes)


def _all_phases(step: TrainingStep, modes: Modes) -> Iterator[Sighting]:
    """A loop over phases, ["train", "val"], that trains in the same mode as it evaluates."""
    for call, loop in _phases(modes):
        models = called(step.script, call)
        ours = [each for each in modes.switches(modes.whole) if not each.models or each.models & models]
        if any(each.to == "eval" or each.call.arguments for each in ours) or "eval" in step.script.aside:
            continue
        if not modes.is_hidden(modes.whole, models) and _is_trained(modes, models) and _differ(modes, models):
            fact = f"each phase of the loop in line {loop.lineno} runs in training mode: no eval() comes"
            yield step.script.seen(call.node, fact)
            return


def _is_evaluation(modes: Modes, event: Event, events: tuple[Event, ...]) -> bool:
    """Whether EVENT stands in a loop of its own, named for evaluation or over such data, without a backward."""
    loop = next((block for block in reversed(event.path) if block.kind == "loop"), None)
    over = _comprehended(event)
    words = {word for block in event.path for word in _words(block)} | set(_read(over))
    if loop is not None:
        words |= {word for node in _drawn(loop, event) for word in _read([node])}
    named = words & _EVALUATION or (words & _MEASURES and modes.is_without(event))
    if not (loop or over) or not named or words & _WANTED or (modes.step.ring.block is loop and not over):
        return False
    if loop is None or over:
        return True
    propagates = (each.call for each in events if each.call is not None and loop in each.path)
    return not any(each.tail == "backward" or _optimizes(modes, each) for each in propagates)


def _optimizes(modes: Modes, call: Call) -> bool:
    """Whether CALL steps an optimizer, or something that may be one; an environment steps as well."""
    plays = modes.script.roles.plays
    known = any(plays(call.receiver, call.scope, role) for role in ("optimizer", "scaler"))
    return call.tail == "step" and (known or "opt" in dotted(call.receiver).lower())


def _words(block: Block) -> Iterator[str]:
    """The words in the name of a function, and in the names of what a loop goes through."""
    match block.owner:
        case ast.FunctionDef(name=name):
            yield from (word.lower() for word in _WORD.findall(name))
        case ast.For(iter=over):
            yield from _read([over])


def _read(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The words in the names, attributes and strings of NODES."""
    for node in nodes:
        for each in ast.walk(node):
            match each:
                case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
                    yield from (word.lower() for word in _WORD.findall(name))


def _comprehended(event: Event) -> list[ast.expr]:
    """What the comprehensions around the call of EVENT go through: [model(x) for x in val_loader]."""
    call = event.call
    if call is None or not isinstance(
        call.statement, ast.Assign | ast.Return | ast.Expr | ast.AugAssign | ast.AnnAssign
    ):
        return []
    return [
        turned.iter
        for each in ast.walk(call.statement)
        if isinstance(each, ast.ListComp | ast.GeneratorExp) and any(node is call.node for node in ast.walk(each.elt))
        for turned in each.generators
    ]


def _drawn(loop: Block, event: Event) -> Iterator[ast.AST]:
    """What the turns of LOOP draw their data from: next(val_iter), get_batch("val")."""
    for each in event.fact.scope.calls:
        if loop in each.path and (each.tail == "next" or "batch" in each.tail.lower()):
            yield from each.node.args


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
    if not begun and not any(each.to == "eval" for each in ours):  # the loop around both comes back to it
        rings = {id(ring.block) for ring in modes.rings}
        begun = any(id(block) in rings for block in event.path)
    if not begun or modes.is_hidden(modes.whole, models) or "eval" in modes.script.aside:
        return False
    return _is_trained(modes, models) and (_differ(modes, models) or _is_switched(modes, models))


def _is_switched(modes: Modes, models: frozenset[object]) -> bool:
    """Whether the code calls train() on models that nothing here makes: to whoever wrote it, the modes differ."""
    known = (
        part
        for call, each in modes.trained
        if each & models
        for part in modes.script.roles.made(call.node.func, call.scope, "model")
    )
    switched = any(each.to == "train" and each.models & models for each in modes.switches(modes.whole))
    return switched and not any(known)


def _phases(modes: Modes) -> Iterator[tuple[Call, ast.For]]:
    """The calls of the trained model under a loop over phases, ["train", "val"], whose evaluation trains as well."""
    for ring in modes.rings:
        match ring.block.owner:
            case ast.For(iter=ast.List(elts=parts) | ast.Tuple(elts=parts)) as loop:
                words = set(_read(parts))
                if "train" in words and words & _EVALUATION:
                    yield from ((call, loop) for call, _ in modes.trained)


def _apart(off: Switch, on: list[Switch]) -> bool:
    """Whether the eval() stands in another branch than the train() after it."""
    return any(off.event.order < each.event.order and not reaches(off.event, each.event) for each in on)
