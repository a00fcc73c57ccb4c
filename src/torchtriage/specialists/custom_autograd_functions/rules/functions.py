"""What an execution of the program shows about functions of autograd that the project writes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.lore import is_loss
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, certain, wherever
from torchtriage.examine.source.execution.values import Class, External, Function, Object, Spot
from torchtriage.examine.source.nodes import nodes_in
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.families import DTYPE_CASTS
from torchtriage.examine.source.torch_api.operators import names


@detector("source/tensor-on-ctx")
def tensor_on_ctx(trainings: Trainings) -> Iterator[Sighting]:
    """An input or output of forward is kept as an attribute of the context."""
    yield from wherever(
        trainings, events.ContextValue, lambda kept: f"ctx.{kept.name} keeps a tensor past save_for_backward"
    )


@detector("source/saved-non-tensor")
def saved_non_tensor(trainings: Trainings) -> Iterator[Sighting]:
    """save_for_backward is given something that is no tensor."""
    yield from wherever(
        trainings, events.SavedValue, lambda saved: f"save_for_backward takes tensors and None, and not {saved.value!r}"
    )


@detector("source/grad-output-edited")
def grad_output_edited(trainings: Trainings) -> Iterator[Sighting]:
    """Backward changes the gradient in place that it is given."""

    def find(training: Training) -> Facts:
        for edit in training.of(events.GradientEdit):
            fact = "this changes the gradient that autograd has given, which others may read"
            yield _in_function(training, edit.spot), fact, _clone_first

    yield from certain(trainings, find, where_reached=True)


def _clone_first(script: Script, node: ast.AST) -> tuple[Edit, ...]:
    """A copy made in the line before; only where it is the parameter's own name that is changed."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if attr.endswith("_"):
            pass
        case ast.Call(args=[ast.Name(id=name), *_]) | ast.AugAssign(target=ast.Name(id=name)):
            pass
        case ast.Subscript(value=ast.Name(id=name)):
            pass
        case _:
            return ()
    for function in script.definitions:
        if isinstance(function, ast.FunctionDef) and name in [each.arg for each in function.args.args]:
            for statement in function.body:
                if any(each is node for each in ast.walk(statement)):
                    return script.insertion("clone-first", statement, f"{name} = {name}.clone()")
    return ()


def _in_function(training: Training, spot: Spot) -> Spot:
    """Where SPOT is reached from within the autograd function: the call of a helper."""
    inside = [Spot(*one) for one in spot.chain if not isinstance(one[1], ast.ClassDef)]  # a class that is tried out
    for each in reversed(inside):  # a function that recomputes layers runs those of the layers
        classes = [one for one in training.definitions_around(each) if isinstance(one, ast.ClassDef)]
        if any("Function" in ast.unparse(base) for one in classes for base in one.bases):
            return each
    return spot


@detector("source/gradient-count")
def gradient_count(trainings: Trainings) -> Iterator[Sighting]:
    """Backward gives another number of gradients than forward has inputs."""
    yield from wherever(
        trainings,
        events.GradientCount,
        lambda count: f"{count.number} gradients are returned, and apply() was given {count.wanted} inputs",
    )


@detector("source/no-gradient-by-design")
def no_gradient_by_design(trainings: Trainings) -> Iterator[Sighting]:
    """A loss, a term of it or a layer is reached only through an operation that has no gradient."""

    def find(training: Training) -> Facts:
        backwards = training.of(events.Backward)
        learning = {each for backward in backwards for each in backward.loss.graph - backward.loss.dead}
        for backward in backwards:
            loss, by = backward.loss, f"the backward of {backward.spot}"
            is_cut_off = loss.cut is not None and not loss.graph
            tried = backward.spot.node  # a network that nothing trains in sight: what it gives may be a prediction
            is_loss_known = not isinstance(tried, ast.ClassDef) or is_loss(tried.name)
            if loss.flat is not None and not loss.is_open and not is_cut_off and is_loss_known:
                yield loss.flat, f"{_word(loss.flat)} has no gradient: {by} teaches the model nothing"
            for spot in loss.idle:
                yield spot, f"{_word(spot)} has no gradient: this term of the loss teaches the model nothing ({by})"
            for parameter, spot in loss.buried if loss.flat is None else ():
                is_lost = parameter not in learning and parameter.requires_grad and parameter.owner is not None
                if is_lost and not _is_one_of_two(training, spot):
                    yield spot, f"{_word(spot)} has no gradient: what it is computed of gets nothing to learn from"

    yield from certain(trainings, find, where_reached=True)


def _is_one_of_two(training: Training, spot: Spot) -> bool:
    """Whether SPOT stands in a branch that a caller who is not in sight chooses: a gate that is hard when it is used,
    and soft while it is learnt.
    """
    around = training.executor.entry is not None and training.code_around(spot)
    tests = (each for each in ast.walk(around) if isinstance(each, ast.If) and each.orelse) if around else ()
    return any(id(spot.node) in nodes_in(each) for each in tests)


def _word(spot: Spot) -> str:
    """What the operation at SPOT is called."""
    match spot.node:
        case ast.Call(func=ast.Attribute(attr=name)) | ast.Call(func=ast.Name(id=name)):
            return f"{name}()"
        case ast.Compare():
            return "A comparison"
    return "This"


@detector("source/dirty-not-marked")
def dirty_not_marked(trainings: Trainings) -> Iterator[Sighting]:
    """An input is changed in place by forward, which does not say so."""

    def find(training: Training) -> Facts:
        for edit in training.of(events.DirtyInput):
            yield _in_function(training, edit.spot), "an input is changed here, and ctx.mark_dirty does not name it"

    yield from certain(trainings, find)  # `if settings.inplace:` may never hold


@detector("source/function-called-directly")
def function_called_directly(trainings: Trainings) -> Iterator[Sighting]:
    """An autograd function is called as an object, or its forward by hand, instead of through apply."""
    mended: set[int] = set()

    def find(training: Training) -> Facts:
        for instance in training.of(events.FunctionInstance):
            name, made = instance.cls.name, instance.made
            if made is None:
                fact = f"this makes an object of {name}, which is no tensor: the way in is {name}.apply"
                yield instance.spot, fact, partial(_apply, cls=instance.cls)
                continue
            fact = f"an object of {name} is called, which torch refuses with RuntimeError: the way in is {name}.apply"
            forward = instance.cls.method("forward")
            if forward is not None and forward.kind != "static":
                fact += ", once forward and backward are static methods that take a ctx"
            yield instance.spot, fact, partial(_apply_made, made=made, mended=mended)
        for call in training.of(events.FunctionForward):
            wrong = _wrong_forward(trainings.script, call)
            if wrong:
                yield call.spot, wrong, partial(_apply_missing, call=call)

    yield from certain(trainings, find, where_reached=True)


def _wrong_forward(script: Script, call: events.FunctionForward) -> str:
    """What is wrong with calling a forward by hand: it lacks its context, or nothing uses the backward."""
    cls, name = call.cls, call.cls.name
    forward = cls.method("forward")
    if forward is None or cls.method("setup_context") is not None:
        return ""
    least, most = _bounds(forward)
    number = len(call.arguments)
    if least - 1 <= number < least:
        return f"{name}.forward needs a ctx that only apply can give: TypeError, one argument is missing"
    if call.arguments[:1] == (None,) and _asks_context(forward):
        return f"{name}.forward gets None for ctx, which it writes to: AttributeError, and the way in is {name}.apply"
    is_applied = cls.is_applied or _is_handed_on(script, name)
    if least <= number <= most and call.grad and not is_applied:
        return f"{name}.forward is called directly, so autograd never calls {name}.backward: call {name}.apply"
    return ""


def _bounds(forward: Function) -> tuple[int, int]:
    """How many arguments FORWARD takes at least and at most, its context among them."""
    wanted = forward.node.args
    count = len(wanted.posonlyargs) + len(wanted.args)
    return count - len(wanted.defaults), 99 if wanted.vararg or wanted.kwarg else count


def _asks_context(forward: Function) -> bool:
    """Whether FORWARD surely asks its ctx for something: ctx.save_for_backward(…), ctx.n = n."""
    body = forward.node.body if isinstance(forward.node, ast.FunctionDef) else []
    names = [each.arg for each in (*forward.node.args.posonlyargs, *forward.node.args.args)]
    plain = (each for each in body if isinstance(each, ast.Expr | ast.Assign))
    asked = (node.value for each in plain for node in ast.walk(each) if isinstance(node, ast.Attribute))
    return any(isinstance(each, ast.Name) and each.id in names[:1] for each in asked)


def _is_handed_on(script: Script, name: str) -> bool:
    """Whether the file names the apply of NAME, or gives the class to something: gradcheck, a registry, a subclass."""
    for node in ast.walk(script.tree):
        match node:
            case ast.Attribute(value=ast.Name(id=own), attr=attr) if own == name and attr != "forward":
                return True
            case ast.Constant(value=str(text)) if text == name:
                return True
            case ast.Call(args=given) | ast.ClassDef(bases=given):
                if any(isinstance(each, ast.Name) and each.id == name for each in given):
                    return True
    return False


def _apply(script: Script, node: ast.AST, *, cls: Class) -> tuple[Edit, ...]:
    """Clamp(x) → Clamp.apply(x), where the class is called by its own name."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == cls.name:
        return script.replaced("call-apply", node.func, f"{cls.name}.apply")
    return ()


def _apply_made(script: Script, _: ast.AST, *, made: Object, mended: set[int]) -> tuple[Edit, ...]:
    """self.swish = Swish() → self.swish = Swish.apply, once for all that call it."""
    node, path = (made.spot.node, made.spot.path) if made.spot is not None else (None, "")
    if not isinstance(node, ast.Call) or node.args or node.keywords or path != script.text.path or id(node) in mended:
        return ()
    mended.add(id(node))
    return script.replaced("call-apply", node, f"{ast.unparse(node.func)}.apply")


def _apply_missing(script: Script, node: ast.AST, *, call: events.FunctionForward) -> tuple[Edit, ...]:
    """Swish.forward(x) → Swish.apply(x), where the context is what is missing."""
    forward = call.cls.method("forward")
    is_missing = forward is not None and len(call.arguments) < _bounds(forward)[0]
    if is_missing and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return script.replaced("call-apply", node.func, f"{ast.unparse(node.func.value)}.apply")
    return ()


@detector("source/backward-not-static")
def backward_not_static(trainings: Trainings) -> Iterator[Sighting]:
    """A method of an autograd function is not static."""

    def find(training: Training) -> Facts:
        for method in training.of(events.FunctionMethod):
            fact = f"{method.name} of {method.cls.name} lacks @staticmethod: its first argument is ctx, no object"
            yield method.spot, fact, partial(_make_static, cls=method.cls)

    yield from certain(trainings, find, where_reached=True)


def _make_static(script: Script, node: ast.AST, *, cls: Class) -> tuple[Edit, ...]:
    """A line with @staticmethod; only for a class that never meant to have objects."""
    if cls.has("__init__") or not isinstance(node, ast.FunctionDef):
        return ()
    line = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    return script.line_above("make-static", line, "@staticmethod")


@detector("source/not-once-differentiable")
def not_once_differentiable(trainings: Trainings) -> Iterator[Sighting]:
    """Backward leaves the graph and does not say that it can be differentiated only once."""

    def find(training: Training) -> Facts:
        said: set[int] = set()
        for left in training.of(events.GraphLeft):
            if id(left.backward) not in said:
                fact = f"{left.word} cuts the graph of a second derivative: with create_graph=True the result is wrong"
                yield _in_function(training, left.spot), fact, partial(_mark_once, backward=left.backward)
            said.add(id(left.backward))

    yield from certain(trainings, find, where_reached=True)


def _mark_once(script: Script, _: ast.AST, *, backward: Function) -> tuple[Edit, ...]:
    """The decorator under the others, by its full name; only where the file says `torch`."""
    is_here = backward.frame.file.path == script.text.path and isinstance(backward.node, ast.FunctionDef)
    if not is_here or backward.frame.file.values.get("torch") != External("torch"):
        return ()
    return script.line_above("mark-it", backward.node.lineno, "@torch.autograd.function.once_differentiable")


@detector("source/autocast-not-handled")
def autocast_not_handled(trainings: Trainings) -> Iterator[Sighting]:
    """An autograd function with matrix products is used under autocast, without custom_fwd and custom_bwd."""

    def find(training: Training) -> Facts:
        for applied in training.of(events.FunctionApplied):
            both = [applied.cls.method(name) for name in ("forward", "backward")]
            methods = [each.node for each in both if each is not None and isinstance(each.node, ast.FunctionDef)]
            is_bare = all(len(each.decorator_list) == 1 for each in methods)  # @staticmethod
            if applied.autocast and len(methods) == 2 and is_bare and all(map(_multiplies, methods)):
                yield (
                    Spot(applied.cls.path, methods[0]),
                    f"forward of {applied.cls.name} runs under autocast, its backward does not: the products get half "
                    "precision on one side and float32 on the other, and torch raises RuntimeError",
                )

    yield from certain(trainings, find)


_CARED = DTYPE_CASTS | {"is_autocast_enabled", "autocast"}
"""What takes care of precision by hand."""


def _multiplies(method: ast.FunctionDef) -> bool:
    """Whether METHOD has a product that autocast computes in half precision, and casts nothing itself."""
    called = (node.func for node in ast.walk(method) if isinstance(node, ast.Call))
    words = {each.attr if isinstance(each, ast.Attribute) else ast.unparse(each) for each in called}
    has_product = any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult) for node in ast.walk(method))
    return not words & _CARED and (has_product or bool(words & names(trait="lowered")))
