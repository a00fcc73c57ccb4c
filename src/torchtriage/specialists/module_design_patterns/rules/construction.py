"""What executions show of how a module is built: its base class, what is made once or too often, empty memory."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.autograd import Parameter
from torchtriage.examine.source.execution.lore import kind_of
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, certain
from torchtriage.examine.source.execution.values import Class, Function, Object, Spot
from torchtriage.examine.source.script import Script
from torchtriage.specialists.module_design_patterns.rules.modes import is_dropout


@detector("source/super-init-missing")
def super_init_missing(trainings: Trainings) -> Iterator[Sighting]:
    """A part is assigned to a module before, or without, super().__init__()."""

    def find(training: Training) -> Facts:
        for early in training.of(events.EarlyAssignment):
            node = early.constructor.node
            if _names_base_alone(node):
                continue
            late = [each for each in _super_calls(node) if each.lineno > early.spot.line]
            when = f"only in line {late[0].lineno}" if late else "never"
            what = f"assigning `self.{early.name}`" if early.name else "calling the module"
            fact = f"nn.Module.__init__ runs {when}: {what} raises AttributeError"
            yield early.spot, fact, partial(_begin_first, init=node)

    yield from certain(trainings, find, where_reached=True)


def _names_base_alone(init: ast.AST) -> bool:
    """Whether INIT calls the constructor of a class by its name, and without the object: nn.Module.__init__(). Modular
    files of transformers do, of which the models are written out; run as it stands, it raises TypeError.
    """
    called = {each: each.func.value for each in _super_calls(init) if isinstance(each.func, ast.Attribute)}
    named = (each for each, of in called.items() if not isinstance(of, ast.Call))
    first = init.args.args[0].arg if isinstance(init, ast.FunctionDef) and init.args.args else ""
    return any(not each.args or ast.unparse(each.args[0]) != first for each in named)


def _super_calls(init: ast.AST) -> list[ast.Call]:
    """The calls of another constructor in INIT: super().__init__(…), nn.Module.__init__(self)."""
    called = (each for each in ast.walk(init) if isinstance(each, ast.Call))
    return [each for each in called if isinstance(each.func, ast.Attribute) and each.func.attr == "__init__"]


def _begin_first(script: Script, _: ast.AST, *, init: ast.AST) -> tuple[Edit, ...]:
    """Puts super().__init__() first; where it comes later, in a line of its own, that line goes."""
    if not isinstance(init, ast.FunctionDef):
        return ()
    first = init.body[1] if len(init.body) > 1 and ast.get_docstring(init) is not None else init.body[0]
    late = _super_calls(init)
    if not late:
        return script.insertion("call-it-first", first, "super().__init__()")
    statement = next((each for each in init.body if isinstance(each, ast.Expr) and each.value is late[0]), None)
    if len(late) > 1 or statement is None or not _is_of_parameters(late[0], init):
        return ()
    code, line = script.source(late[0]), statement.lineno
    edits = script.insertion("call-it-first", first, code)
    if not edits or statement.end_lineno != line or script.text.line(line).strip() != code:
        return ()
    return (*edits, *script.line_removed("call-it-first", line))


def _is_of_parameters(call: ast.Call, init: ast.FunctionDef) -> bool:
    """Whether the arguments of CALL name nothing but parameters of INIT that it leaves as they are."""
    words = {each.arg for each in (*init.args.posonlyargs, *init.args.args, *init.args.kwonlyargs)}
    stored = {each.id for each in ast.walk(init) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    given = (*call.args, *(each.value for each in call.keywords))
    names = {each.id for one in given for each in ast.walk(one) if isinstance(each, ast.Name)}
    return names <= words - stored


@detector("source/module-as-default-argument")
def module_as_default_argument(trainings: Trainings) -> Iterator[Sighting]:
    """A layer with weights is made once, as a default argument or class attribute, for all instances."""

    def find(training: Training) -> Facts:
        for shared in training.of(events.SharedModule):
            module, owner = shared.module, shared.owner
            if isinstance(module, Object) and not training.executor.parameters(module):
                continue
            is_of_module = owner is not None and any(kind_of(name) == "module" for name in owner.externals)
            if shared.is_default:
                # of functions outside of modules only torch's own layers count: they are built into a model
                if is_of_module or (owner is None and isinstance(module, Object) and module.cls is None):
                    made = f"`{ast.unparse(shared.spot.node)}` is made once, when {shared.name} is defined"
                    yield shared.spot, f"{made}: every call that leaves it out shares its weights"
            elif owner is not None and owner.fields is not None:
                fact = f"the default of `{shared.name}` is one module, made once: every {owner.name} holds it"
                yield shared.spot, fact
            elif owner is not None and not _is_taken_up(owner, shared.name):
                lost = "parameters() and state_dict() do not hold it"
                yield shared.spot, f"`{shared.name}` belongs to the class, not to its instances: {lost}"

    yield from certain(trainings, find, where_reached=True)


def _is_taken_up(cls: Class, name: str) -> bool:
    """Whether the constructor of CLS copies or registers its class attribute NAME."""
    init = cls.method("__init__")
    return init is not None and any(
        isinstance(node, ast.Attribute) and node.attr == name for node in ast.walk(init.node)
    )


@detector("source/layer-built-in-forward")
def layer_built_in_forward(trainings: Trainings) -> Iterator[Sighting]:
    """A layer with parameters is made anew in each forward pass."""

    def find(training: Training) -> Facts:
        seen: dict[tuple[str, int, int], Object] = {}
        for made in training.of(events.LayerMade):
            key = (made.spot.path, made.spot.line, id(made.user))
            if (
                not is_dropout(made.layer)
                and seen.get(key, made.layer) is not made.layer
                and not any(_RANDOM.search(each.name) for each in training.definitions_around(made.spot))
            ):
                yield made.spot, f"{made.layer.made.rpartition('.')[2]} is made here in every forward pass"
            seen.setdefault(key, made.layer)

    yield from certain(trainings, find, where_reached=True)


_RANDOM = re.compile(r"rand|augment|noise|perturb", re.IGNORECASE)
"""How code is called to which new random weights are the point."""


@detector("source/uninitialised-parameter")
def uninitialised_parameter(trainings: Trainings) -> Iterator[Sighting]:
    """A parameter is made of memory that nothing fills before it is used."""

    def find(training: Training) -> Facts:
        for backward in training.of(events.Backward):
            for each in backward.loss.graph:
                is_empty = each.is_empty and not each.has_escaped and not _has_filling_method(training, each)
                if is_empty and each.spot is not None and not _is_filled_elsewhere(training, each.spot):
                    yield each.spot, "torch.empty leaves what was in memory, and nothing writes to it"

    yield from certain(trainings, find)


def _has_filling_method(training: Training, parameter: Parameter) -> bool:
    """Whether the class of the module of PARAMETER has a method for that, which this execution has not called: a base
    class of another file, whose init_states() the whole model asks for.
    """
    cls = parameter.owner.cls if parameter.owner is not None else None
    inside = (each for one in cls.lineage if isinstance(one, Class) for each in one.namespace.values()) if cls else ()
    methods = (each for each in inside if isinstance(each, Function) and _FILLS.search(each.name))
    return any(id(each.node) not in training.executor.visited for each in methods)


_FILLS = re.compile(r"^_*(init|reset)_+(?!_)\w*(weight|param|state)")


def _is_filled_elsewhere(training: Training, spot: Spot) -> bool:
    """Whether other code of the file takes care of the parameter made at SPOT, or says that a library does.

    Models of transformers make their parameters empty: _init_weights() of the whole model fills those of its parts.
    """
    tree = training.script.tree
    made = (each for each in ast.walk(tree) if isinstance(each, ast.Assign) and each.lineno <= spot.line)
    targets = [each.targets[0] for each in made if (each.end_lineno or 0) >= spot.line]
    names = {each.attr for each in targets if isinstance(each, ast.Attribute)}
    text = training.script.text.data
    calls = (each for each in ast.walk(tree) if isinstance(each, ast.Call) and ast.unparse(each.func).endswith("_"))
    filled = (node for call in calls for each in (call.func, *call.args[:1]) for node in ast.walk(each))
    return (
        b"init_weights" in text
        or b"PreTrainedModel" in text
        or any(
            isinstance(node, ast.Attribute)
            and node.attr in names
            and not (isinstance(node.value, ast.Name) and node.value.id == "self")
            for node in filled
        )
    )
