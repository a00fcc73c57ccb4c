"""What executions show about passes of a module: its mode, its dropout, its hooks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.registration import bare
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, certain
from torchtriage.examine.source.execution.values import Object, Spot, Unknown, Value
from torchtriage.examine.source.nodes import nodes_in, other_branches
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.symbols import symbols

_EVALUATES = re.compile(r"eval|(?<![a-z])val(?!u)|valid|(?<![a-z])test|predict|infer|estimate|accura", re.IGNORECASE)
"""What evaluations are called: val_loader, not q_values or latest."""
_FROZEN = re.compile(r"#.*(freez|frozen|fixed|statistic|batch ?norm|\bbn\b|dropout|on purpose)", re.IGNORECASE)
"""What comments say where a model is trained in evaluation mode on purpose: its statistics stay as they are."""


@detector("source/mode-left-in-eval")
def mode_left_in_eval(trainings: Trainings) -> Iterator[Sighting]:
    """A model is trained further in evaluation mode."""

    def find(training: Training) -> Facts:
        trained: set[int] = set()
        optimized = {id(each) for optimizer in training.optimizers for each in training.parameters_of(optimizer)}
        for forward, backward in training.backwards:
            model = bare(forward.model)
            if forward.training is not False:
                trained.add(id(model))
                continue
            change = training.last_change(model, before=forward)
            if change is None or change.mode is not False or not training.has_modes(model):
                continue
            if _is_chosen(training, change.spot) or not _is_applied(training, backward, change):
                continue
            is_given = model.state.get("is_given", False)
            parameters = [] if is_given else training.executor.parameters(model)
            is_tuned = bool(parameters) and all(id(each) in optimized for each in parameters)  # not only a head
            if id(model) in trained or (is_tuned and _FROZEN.search(training.line(change.spot)) is None):
                yield change.spot, f"{backward.spot} continues training, and nothing calls train() again"

    yield from certain(trainings, find, where_reached=True)


def _is_applied(training: Training, backward: events.Backward, change: events.ModeChange) -> bool:
    """Whether an optimizer, as far as anybody knows, takes the gradients of BACKWARD, which comes after CHANGE."""
    steps = any(isinstance(each, events.OptimizerStep) for each in training.events_after(change))
    return (steps or "step" in training.blind) and not training.asks_for_input(backward)


def _is_chosen(training: Training, spot: Spot) -> bool:
    """Whether the eval() at SPOT is one of two ways to train: if tune: model.train() else: model.eval()."""
    tests = (each for each in ast.walk(training.code_around(spot)) if isinstance(each, ast.If))
    others = (one for each in tests if id(spot.node) in nodes_in(each) for one in other_branches(each, spot.node))
    return any(isinstance(node, ast.Attribute) and node.attr == "train" for each in others for node in ast.walk(each))


@detector("source/mode-left-in-train")
def mode_left_in_train(trainings: Trainings) -> Iterator[Sighting]:
    """A model is evaluated in train mode."""

    def find(training: Training) -> Facts:
        used = {id(forward) for forward, _ in training.backwards}
        trained = {id(bare(forward.model)) for forward, each in training.backwards if not training.asks_for_input(each)}
        for forward in training.of(events.Forward):
            if forward.training is not True or id(bare(forward.model)) not in trained or id(forward) in used:
                continue
            words = (*training.calls(forward.spot), *_goes_over(training, forward.spot))
            is_named = not forward.grad and any(map(_EVALUATES.search, words))
            is_evaluation = training.is_evaluation(forward) or (is_named and not _is_of_step(training, forward))
            if is_evaluation and training.has_modes(forward.model) and not _is_meant(training, forward.spot):
                yield (
                    forward.spot,
                    "the model is in train mode here: dropout and batch statistics are those of training",
                )

    yield from certain(trainings, find, where_reached=True)


def _is_of_step(training: Training, forward: events.Forward) -> bool:
    """Whether a backward pass follows FORWARD in the same iteration: it makes the target of a loss, in Q learning."""
    after = (each for each in training.events_after(forward) if isinstance(each, events.Backward))
    return bool(forward.loops) and any(each.loops == forward.loops for each in after)


def _goes_over(training: Training, spot: Spot) -> list[str]:
    """What the loops around SPOT go over, in its own function: `val_batches`."""
    loops = (each for each in ast.walk(training.code_around(spot)) if isinstance(each, ast.For))
    return [ast.unparse(each.iter) for each in loops if each.lineno <= spot.line <= (each.end_lineno or 0)]


@detector("source/dropout-always-on")
def dropout_always_on(trainings: Trainings) -> Iterator[Sighting]:
    """Dropout drops in evaluation mode as well: it does not know the mode of the module around it."""

    def find(training: Training) -> Facts:
        for call in training.of(events.FunctionCall):
            if call.training is False and _drops(call, trainings) and not _is_meant(training, call.spot):
                if call.name in _RATES:
                    fact = f"{call.name}() knows no mode: its rate is not 0 in evaluation, where it drops values, too"
                    yield call.spot, fact, _no_rate
                else:
                    yield call.spot, "`training` is not given here: values are dropped in evaluation, too"
        for made in training.of(events.LayerMade):
            if made.training is False and is_dropout(made.layer) and not _is_meant(training, made.spot):
                yield made.spot, "a Dropout made in forward() is in train mode: values are dropped in evaluation, too"

    yield from certain(trainings, find, where_reached=True)


_RATES = {"scaled_dot_product_attention": ("dropout_p", 4)}
"""Where functions other than dropout itself take their rate; they know no mode at all."""


def _drops(call: events.FunctionCall, trainings: Trainings) -> bool:
    """Whether CALL drops values whatever the mode is."""
    is_required = call.name.startswith("torch.")  # torch.dropout(x, 0.1, True) cannot leave the mode out
    is_dropout = call.name.removeprefix("torch.").removeprefix("feature_").startswith(("dropout", "alpha_dropout"))
    if not is_dropout and call.name not in _RATES:
        return False
    word, place = _RATES.get(call.name, ("p", 1))
    rate = _argument(call, word, place, 0.5 if is_dropout else 0)
    mode = _argument(call, "train" if is_required else "training", 2, None) if is_dropout else None
    is_forced = mode is True and (is_required or trainings.is_program)
    is_off = rate == 0 or (isinstance(rate, Unknown) and rate.is_option)  # by default
    return "**" not in call.keywords and (mode is None or is_forced) and not is_off


def _no_rate(script: Script, node: ast.AST) -> tuple[Edit, ...]:
    """The rate of NODE, a call of attention in a method, is 0 in evaluation."""
    around = script.definitions_around(getattr(node, "lineno", 0))
    method = around[-1] if len(around) > 1 and isinstance(around[-2], ast.ClassDef) else None
    receiver = method.args.args[0].arg if isinstance(method, ast.FunctionDef) and method.args.args else ""
    word, place = _RATES["scaled_dot_product_attention"]
    if not isinstance(node, ast.Call) or not receiver:
        return ()
    named = [each.value for each in node.keywords if each.arg == word] or node.args[place : place + 1]
    edits = (
        script.replaced("zero-in-evaluation", each, f"{script.source(each)} if {receiver}.training else 0.0")
        for each in named
    )
    return next(edits, ())


def _argument(call: events.FunctionCall, name: str, place: int, default: Value) -> Value:
    return call.keywords.get(name, call.arguments[place] if len(call.arguments) > place else default)


def is_dropout(layer: Object) -> bool:
    """Whether LAYER is one of torch's that drop values."""
    return layer.made.rpartition(".")[2] in symbols().dropout_layers


_MEANT = re.compile(r"mc|monte|bayes|uncertain|stochastic|corrupt|noise|noisy|augment|prenet", re.IGNORECASE)
"""How code is called in which values are dropped on purpose."""
_SAID = re.compile(r"#.*((?<!dropout-)always|infer|stochast|even (in|at)|keep|monte)", re.IGNORECASE)


def _is_meant(training: Training, spot: Spot) -> bool:
    """Whether the function or class around SPOT, or a comment there, says that it drops on purpose."""
    names = [each.name for each in training.definitions_around(spot)]
    return any(map(_MEANT.search, names)) or _SAID.search(training.line(spot)) is not None


@detector("source/forward-called-directly")
def forward_called_directly(trainings: Trainings) -> Iterator[Sighting]:
    """The forward of a module is called by its name: its hooks do not run."""

    def find(training: Training) -> Facts:
        inside = {id(each) for wrapper in training.replicas for each in training.executor.modules(wrapper)[1:]}
        for direct in training.of(events.DirectForward):
            if id(direct.module) not in inside and direct.module.method("__call__") is None:
                yield direct.spot, "forward() runs none of the module's hooks: calling the module does", _call_it

    yield from certain(trainings, find, where_reached=True)


def _call_it(script: Script, node: ast.AST) -> tuple[Edit, ...]:
    """model.forward(x) → model(x)."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return script.replaced("call-it", node.func, script.source(node.func.value))
    return ()


@detector("source/hook-handle-dropped")
def hook_handle_dropped(trainings: Trainings) -> Iterator[Sighting]:
    """A hook is registered again and again on one module, and none is removed."""

    def find(training: Training) -> Facts:
        removed = {id(each.handle) for each in training.of(events.Handle)}
        first: dict[tuple[int, int, int], events.HookMade] = {}
        for hook in training.of(events.HookMade):
            key = id(hook.module), id(hook.spot.node), id(hook.hook) if isinstance(hook.hook, Unknown) else 0
            before = first.setdefault(key, hook)
            is_kept = not removed & {id(before.handle), id(hook.handle)} and not hook.handle.has_escaped
            is_other_pass = before.is_in_forward and hook.is_in_forward
            is_again = before is not hook and (before.loops != hook.loops or is_other_pass)
            # what hooks all parts of a model in turn does so once: it runs in between where it is done again
            is_again = is_again and any(
                isinstance(each, events.Forward) for each in training.events_between(before, hook)
            )
            if is_again and is_kept:
                yield hook.spot, "one more hook is registered on the same module each time, and all of them run"

    yield from certain(trainings, find)
