"""What operators ask of a program: its calls, numbers, batches, networks, and where it trains and evaluates."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from mutants.source import Function, Project, Source

Number = int | float
LABELS = re.compile(
    r"y|yb|ys|labels?|targets?|tgt|answers?|ratings?|masks?|clicks?|truth|gold|next_\w+|\w*_labels?|y_\w+"
)
OPTIMIZER = re.compile(r"(?i)opt(im(izer)?s?)?(_\w+)?|\w*_opt(im(izer)?)?|optimi[sz]ers?\w*")
SCHEDULER = re.compile(r"(?i)\w*sched(ule|uler)?\w*|\w*warmup\w*")
TRAINING = re.compile(r"training_step|train_step|compute_loss|step_fn")
EVALUATION = re.compile(r"(?i)_?(eval|valid|test|infer|predict|sample|score)\w*")
OPTIMIZERS = ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam", "RAdam", "Adamax", "Adadelta")


def last_name(node: ast.AST) -> str:
    """`c` of a.b.c, also of a call or subscript of it."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=inner) | ast.Subscript(value=inner):
            return last_name(inner)
    return ""


def receiver(call: ast.Call) -> str:
    """`b` of a.b.c()."""
    return last_name(call.func.value) if isinstance(call.func, ast.Attribute) else ""


def calls(project: Project, *names: str) -> Iterator[tuple[Source, ast.Call]]:
    """Calls of functions or methods by their last name."""
    for source in project.sources:
        for call in source.walk(ast.Call):
            if last_name(call.func) in names:
                yield source, call


def statements(project: Project, *names: str) -> Iterator[tuple[Source, ast.Expr, ast.Call]]:
    """Calls that are a statement of their own."""
    for source, call in calls(project, *names):
        parent = source.parent(call)
        if isinstance(parent, ast.Expr):
            yield source, parent, call


def keyword(call: ast.Call, *names: str) -> ast.keyword | None:
    return next((each for each in call.keywords if each.arg in names), None)


def first_argument(call: ast.Call) -> ast.expr | None:
    return call.args[0] if call.args else None


def differentiated(call: ast.Call) -> ast.expr | None:
    """The loss of loss.backward() and of accelerator.backward(loss)."""
    return call.func.value if isinstance(call.func, ast.Attribute) and not call.args else first_argument(call)


def number(node: ast.AST | None) -> Number | None:
    match node:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
    return None


def named_numbers(project: Project, pattern: str) -> Iterator[tuple[Source, ast.expr, Number]]:
    """Literals that have a name: an argument, a field, an assignment, a default, an entry, an option of argparse."""
    is_named = re.compile(pattern).fullmatch
    for source in project.sources:
        for node in ast.walk(source.tree):
            for name, value in _named(node):
                found = number(value)
                if value is not None and found is not None and is_named(name.strip("-").replace("-", "_").lower()):
                    yield source, value, found


def _named(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    match node:
        case ast.Call(func=ast.Attribute(attr="add_argument"), args=[ast.Constant(value=str() as flag), *_]):
            default = keyword(node, "default")
            yield flag, default.value if default else None
        case ast.keyword(arg=str() as name, value=value):
            yield name, value
        case ast.AnnAssign(target=target, value=value):
            yield last_name(target), value
        case ast.Assign(targets=[target], value=value):
            yield last_name(target), value
        case ast.Dict(keys=keys, values=values):
            for key, each in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, each
        case ast.arguments():
            yield from _defaults(node)


def _defaults(node: ast.arguments) -> Iterator[tuple[str, ast.expr | None]]:
    names = [each.arg for each in (*node.posonlyargs, *node.args)]
    if node.defaults:
        yield from zip(names[-len(node.defaults) :], node.defaults, strict=True)
    yield from zip((each.arg for each in node.kwonlyargs), node.kw_defaults, strict=True)


def backwards(project: Project) -> Iterator[tuple[Source, ast.Expr, ast.Call]]:
    yield from statements(project, "backward", "manual_backward")


def optimizer_steps(project: Project) -> Iterator[tuple[Source, ast.Expr, ast.Call]]:
    """optimizer.step(), and scaler.step(optimizer)."""
    for source, statement, call in statements(project, "step"):
        if OPTIMIZER.fullmatch(receiver(call)) or (call.args and OPTIMIZER.fullmatch(last_name(call.args[0]))):
            yield source, statement, call


def scheduler_steps(project: Project) -> Iterator[tuple[Source, ast.Expr, ast.Call]]:
    for source, statement, call in statements(project, "step"):
        if SCHEDULER.fullmatch(receiver(call)):
            yield source, statement, call


def optimizers(project: Project) -> Iterator[tuple[Source, ast.Call]]:
    """Calls that build an optimizer of torch from parameters."""
    yield from ((source, call) for source, call in calls(project, *OPTIMIZERS) if call.args)


def training_functions(project: Project) -> Iterator[tuple[Source, ast.FunctionDef]]:
    """Functions in which a backward is, and those that a framework calls for it."""
    for source in project.sources:
        for each in source.walk(ast.FunctionDef):
            own = any(last_name(call.func) in ("backward", "manual_backward") for call in source.walk(ast.Call, each))
            if own or TRAINING.fullmatch(each.name):
                yield source, each


def evaluation_functions(project: Project) -> Iterator[tuple[Source, ast.FunctionDef]]:
    training = {id(each) for _, each in training_functions(project)}
    for source in project.sources:
        for each in source.walk(ast.FunctionDef):
            if id(each) not in training and EVALUATION.match(each.name):
                yield source, each


@dataclass(frozen=True)
class Batch:
    """Where a training takes its batch apart: code goes after the statement, or before the first one of a body."""

    source: Source
    anchor: ast.stmt
    is_before: bool
    inputs: str
    targets: str


def batches(project: Project) -> Iterator[Batch]:
    """`for inputs, targets in loader:`, also enumerated, and `inputs, targets = batch`, where a training is."""
    for source, function in training_functions(project):
        for node in source.walk(ast.For, function):
            target = node.target
            if (
                isinstance(target, ast.Tuple)
                and isinstance(node.iter, ast.Call)
                and last_name(node.iter) == "enumerate"
            ):
                target = target.elts[-1]
            if isinstance(target, ast.Tuple) and last_name(node.iter) not in ("zip", "items", "named_parameters"):
                yield from _batch(source, node.body[0], True, target)
        for assign in source.walk(ast.Assign, function):
            found = assign.targets[0]
            if isinstance(found, ast.Tuple) and re.fullmatch(
                r"\w*(batch|inputs|data|sample|next)", last_name(assign.value)
            ):
                yield from _batch(source, assign, False, found)


def _batch(source: Source, anchor: ast.stmt, is_before: bool, target: ast.Tuple) -> Iterator[Batch]:
    names = [each.id for each in target.elts if isinstance(each, ast.Name)]
    if len(names) < 2 or len(names) != len(target.elts):
        return
    labels = [name for name in names[1:] if LABELS.fullmatch(name)] or [names[-1]]
    yield Batch(source, anchor, is_before, names[0], labels[0])


def put(batch: Batch, code: str) -> Iterator[str]:
    """CODE with the batch's names."""
    yield code.format(x=batch.inputs, y=batch.targets)


def networks(project: Project) -> Iterator[tuple[Source, ast.ClassDef]]:
    """Classes with a forward and an __init__."""
    for source in project.sources:
        for each in source.walk(ast.ClassDef):
            names = {item.name for item in each.body if isinstance(item, ast.FunctionDef)}
            if {"forward", "__init__"} <= names and any("Module" in source.code(base) for base in each.bases):
                yield source, each


def method(network: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    return next((item for item in network.body if isinstance(item, ast.FunctionDef) and item.name == name), None)


def children(source: Source, network: ast.ClassDef) -> Iterator[tuple[str, ast.Assign, ast.Call]]:
    """`self.NAME = Layer(...)` of its __init__."""
    init = method(network, "__init__")
    for assign in source.walk(ast.Assign, init) if init else ():
        match assign:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=ast.Call() as call):
                if last_name(call.func)[:1].isupper():
                    yield name, assign, call


def models(project: Project) -> Iterator[tuple[Source, ast.Assign, str, ast.ClassDef]]:
    """`name = Network(...)`, also of self and within other calls: the statement, the name and the class."""
    known = {each.name: each for _, each in networks(project)}
    for source in project.sources:
        for assign in source.walk(ast.Assign):
            target = assign.targets[0]
            made = [call for call in source.walk(ast.Call, assign.value) if last_name(call.func) in known]
            made = [call for call in made if not source.code(call.func).startswith("torch.")]
            if len(assign.targets) == 1 and made and re.fullmatch(r"(self\.)?[A-Za-z_]\w*", source.code(target)):
                owner = next((each for each in source.ancestors(assign) if isinstance(each, ast.ClassDef)), None)
                if owner is None or owner.name not in known or method(owner, "training_step"):
                    yield source, assign, source.code(target), known[last_name(made[0].func)]


def home(project: Project, network: ast.ClassDef) -> Source:
    """The file that defines a network."""
    return next(source for source in project.sources if any(each is network for each in source.walk(ast.ClassDef)))


def model_in(project: Project, source: Source, node: ast.AST) -> str | None:
    """The name of a network in the function around NODE: one that is built there, or comes under the same name."""
    function = source.function(node)
    text = source.code(function) if function else ""
    names = dict.fromkeys(name for _, _, name, _ in models(project))
    own = [name for name in names if re.search(rf"(?<![\w.]){re.escape(name)}\b(?!\.to\()", text)]
    return own[0] if own else None


def innermost(source: Source, node: ast.AST) -> bool:
    """Whether no loop is in the loop NODE."""
    return not any(other is not node for kind in (ast.For, ast.While) for other in source.walk(kind, node))


def step_loops(project: Project) -> Iterator[tuple[Source, ast.For | ast.While, ast.Expr]]:
    """The loops in which an optimizer steps, with the statement of the step."""
    for source, statement, _ in optimizer_steps(project):
        loop = source.loop(statement)
        if loop is not None:
            yield source, loop, statement


def is_function(node: ast.AST | None) -> bool:
    return isinstance(node, Function)
