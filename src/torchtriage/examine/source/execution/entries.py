"""Where an execution may begin in a file that nobody in sight calls into, and what it is given there.

Trainers and engines of repositories are files without a program of their own: `train_one_epoch(model, loader, opt)`.
What calls them is not seen, so each of their functions is executed by itself, on things of which only the role is
known.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from torchtriage.examine.source.execution.autograd import Parameter, Tensor
from torchtriage.examine.source.execution.inputs import is_of_tensors, names_compared_with_none
from torchtriage.examine.source.execution.lore import FUNCTION, kind_of, lore
from torchtriage.examine.source.execution.ranks import names_rank
from torchtriage.examine.source.execution.values import Class, Function, Object, Spot, Unknown, Value, given_model
from torchtriage.examine.source.facts import Call, Scope
from torchtriage.examine.source.nodes import once
from torchtriage.examine.source.roles import Roles

MOST = 40
"""Functions of one file: large modules have hundreds, of which few train."""
MADE = 2
"""Statements of a function that makes one thing, and hands it on."""
_OF_MODULES = frozenset(
    {"forward", "train", "eval", "to", "cuda", "cpu", "parameters", "state_dict", "load_state_dict"}
)
"""Methods that every model has."""
_LISTS = frozenset({"list", "List", "Sequence", "Iterable", "tuple", "Tuple"})
_CRITERION = "Criterion"
_TEXTS = {"str": "builtins.str", "Path": "pathlib.Path"}
"""Annotations of what is a text, or a path, and no state."""
_COUNTS = re.compile(r"(updates|iters|iterations|epochs|rounds|repeats)$")
"""What a parameter for a number of iterations is called: whoever calls the function may ask for more than one."""
_NO_RANK = (None, 0, -1)
"""What a parameter for the rank is by default: rank=8 is that of a matrix."""
_LOOKS = frozenset({"dict", "list", "set", "tuple", "len", "isinstance", "getattr", "hasattr"})
"""Functions that accessors call: they look at things, and change none."""
_STATES = frozenset({"training", "requires_grad", "data", "grad", "state_dict"})
"""Attributes that faults are about: what touches them is no mere accessor."""
_ACTIONS = (
    ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.AugAssign, ast.BinOp, ast.Delete, ast.Yield,
    ast.YieldFrom, ast.Await,
)  # fmt: skip


class Entries:
    """The functions and methods of one file that nothing in it calls, with their arguments."""

    def __init__(self, roles: Roles) -> None:
        self.roles, self.is_strict = roles, True
        self._names: dict[int, ast.Name] = {}
        """By parameter, the name that stands for it: kept, since what is known of a node is kept by its identity."""
        self.scopes: dict[int, Scope] = {id(each.node): each for each in roles.facts.scopes}

    def found(self, values: dict[str, Value], path: str, entered: Iterable[int]) -> Iterator[Function | Class]:
        """Functions and classes among VALUES, the names of a module, that stand in PATH and were not ENTERED."""
        seen = set(entered)
        classes = [each for each in values.values() if isinstance(each, Class)]
        inherited = {id(base) for each in classes for base in [*each.lineage][1:]}
        for name, each in values.items():
            if isinstance(each, Function) and id(each.node) in self.scopes and id(each.node) not in seen:
                seen.add(id(each.node))
                if not self._is_called(each.name, is_function=True) and name == each.name and self._acts(each):
                    yield each
            elif isinstance(each, Class) and each.path == path and id(each.node) in self.scopes:
                is_complete = is_module(each) and "forward" in each.namespace  # it may be used by itself
                is_late = not self.is_strict and not is_module(each)
                if id(each) not in inherited or is_complete or is_late:
                    yield each

    def methods(self, cls: Class, entered: set[int]) -> Iterator[Function]:
        """The methods of CLS at which an execution may begin, also those that it inherits from classes of the file."""
        own = (each.namespace.items() for each in cls.lineage if isinstance(each, Class))
        for name in dict.fromkeys(name for items in own for name, _ in items):
            each = cls.method(name)
            is_here = each is not None and id(each.node) in self.scopes and id(each.node) not in entered
            if each is None or not is_here or _is_accessor(each.node):
                continue
            if name == "__call__" or not (name.startswith("__") or self._is_called(name, cls)):
                yield each

    def nodes(self, cls: Class) -> set[int]:
        """The methods of CLS, those that it inherits, too."""
        inside = (each.namespace.values() for each in cls.lineage if isinstance(each, Class))
        return {id(each.node) for values in inside for each in values if isinstance(each, Function)}

    def outermost(self, cls: Class) -> list[Function]:
        """The methods of CLS that none of its methods calls."""
        own = [each for each in cls.namespace.values() if isinstance(each, Function) and id(each.node) in self.scopes]
        calls = {site.tail for each in own for site in self.scopes[id(each.node)].calls}
        outer = (each for each in own if not each.name.startswith("__") and each.name not in calls and not each.kind)
        return [each for each in outer if not _is_accessor(each.node)]

    def names_called(self, cls: Class, but: Function) -> set[str]:
        """The names of what other methods of CLS than BUT call, where nothing in the file calls these."""
        others = (each for each in self.methods(cls, set()) if each is not but)
        return set().union(*(_methods_called(each.node) for each in others))

    def is_without_grad(self, function: Function) -> bool:
        """Whether all that calls FUNCTION in the file stands in a `with torch.no_grad()`."""
        sites = [
            each for each in self.roles.facts.calls.get(function.name, ()) if not _is_within(each.scope, function.name)
        ]
        around = ([block.owner for block in each.block.path if block.kind == "with"] for each in sites)
        return bool(sites) and all(any(map(_switches_off, owners)) for owners in around)

    def _is_called(self, name: str, cls: Class | None = None, *, is_function: bool = False) -> bool:
        """Whether the file calls something of that NAME, of CLS, outside of the function itself, and not of a package.

        is_function: it is no method. What the module itself calls was executed.
        """
        if not self.is_strict:
            return False
        sites = self.roles.facts.calls.get(name, ())
        inside = (each for each in sites if each.scope.kind != "module" and not _is_within(each.scope, name))
        own = (each for each in inside if not self.roles.names.resolve(each.node.func, each.scope))
        if is_function:
            return any(each.receiver is None for each in own)
        return any(cls is None or self._may_be_of(cls, each) for each in own)

    def _may_be_of(self, cls: Class, site: Call) -> bool:
        """Whether SITE may call a method of CLS: not the train() of a model, nor self.validate() of another class."""
        receiver, scope = site.receiver, site.scope
        if isinstance(receiver, ast.Name) and receiver.id == scope.receiver and scope.host is not None:
            hosts = {id(each.node) for each in cls.lineage if isinstance(each, Class)}
            return id(scope.host.node) in hosts or cls.name in map(ast.unparse, getattr(scope.host.node, "bases", ()))
        return receiver is not None and (is_module(cls) or not self.roles.parts(receiver, scope))

    def _acts(self, function: Function) -> bool:
        """Whether FUNCTION does more than to call another one of the project, and to hand on what that gives.

        Libraries of models have hundreds of functions that only make one. Who hands on a model or an optimizer trains.
        """
        scope = self.scopes[id(function.node)]
        is_given = any(isinstance(each, Object) for each in self.arguments(function).values())
        is_long = not isinstance(function.node, ast.Lambda) and len(function.node.body) > MADE
        return is_given or is_long or any(self._is_act(each, scope) for each in ast.walk(function.node))

    def _is_act(self, node: ast.AST, scope: Scope) -> bool:
        if isinstance(node, ast.For | ast.While | ast.With | ast.comprehension | ast.AugAssign | ast.BinOp | ast.Try):
            return True
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            return True
        if not isinstance(node, ast.Call):
            return False
        if not isinstance(node.func, ast.Name) or self.roles.names.resolve(node.func, scope).startswith("torch."):
            return True
        called = self.roles.trace.definition(node.func, scope)
        return called is not None and called.kind == "function" and not called.returns  # main() of a training

    # what is given

    def arguments(self, function: Function, *, skip: int = 0, has_options: bool = True) -> dict[str, Value]:
        """For each parameter of FUNCTION behind the first SKIP a value of the role that it plays.

        has_options: what is None unless somebody gives it is given: the optimizer of an epoch that trains.
        """
        scope = self.scopes.get(id(function.node))
        wanted = function.node.args
        names = [*wanted.posonlyargs, *wanted.args][skip:]
        late = [each.arg for each in names][len(names) - len(function.defaults) :] if function.defaults else []
        defaults = dict(zip(late, function.defaults, strict=False)) | dict(function.keyword_defaults)
        found = {each.arg: self._argument(each, scope, defaults, function) for each in (*names, *wanted.kwonlyargs)}
        if not has_options:
            found |= dict.fromkeys(self.options(function))
        return found if wanted.kwarg is None else {**found, "**": Unknown("**")}

    def options(self, function: Function) -> list[str]:
        """The parameters of FUNCTION that are None by default, and of which it asks whether they are."""
        wanted = function.node.args
        names = [each.arg for each in (*wanted.posonlyargs, *wanted.args)]
        late = names[len(names) - len(function.defaults) :] if function.defaults else []
        off = {name for name, each in zip(late, function.defaults, strict=False) if each is None}
        off |= {name for name, each in function.keyword_defaults.items() if each is None}
        return sorted(off & names_compared_with_none(function.node)) if off else []

    def class_of(self, function: Function, wanted: ast.arg) -> Class | None:
        """The model class of the file that the parameter WANTED is annotated with, or of which it is asked for a method
        that no other class of the file has.
        """
        known = [each for each in function.frame.file.values.values() if isinstance(each, Class) and is_module(each)]
        own = [each for each in known if each.path == function.frame.file.path]
        if isinstance(wanted.annotation, ast.Name):
            found = next((each for each in own if each.name == wanted.annotation.id), None)
            below = [each for each in own if found is not None and found in [*each.lineage][1:]]
            return below[0] if len(below) == 1 else found if not below else None
        wanted_methods = _attributes_of(function.node).get(wanted.arg, set()) - _OF_MODULES
        fit = [each for each in own if all(each.method(name) for name in wanted_methods)] if wanted_methods else []
        return fit[0] if len(fit) == 1 else None

    def _argument(self, wanted: ast.arg, scope: Scope | None, defaults: dict[str, Value], function: Function) -> Value:
        spot = Spot(function.frame.file.path, wanted)
        note = ast.unparse(wanted.annotation).rpartition(".")[2] if wanted.annotation is not None else ""
        if isinstance(defaults.get(wanted.arg), Object):  # criterion=nn.CrossEntropyLoss()
            return defaults[wanted.arg]
        is_named = note in _TEXTS or isinstance(defaults.get(wanted.arg), str | int | float)  # optimizer: str = "sgd"
        made = self._annotated(wanted, scope, spot) or self.of_role(self._name_of(wanted), scope, spot)
        made = made or (made_for("optimizer", spot) if wanted.arg == "optimizer" else None)
        if made is not None and not is_named:
            return made
        if is_of_tensors(wanted.annotation):
            return Tensor(spot, is_open=True, is_entry=True)
        default = defaults.get(wanted.arg)
        if names_rank(wanted.arg) and (default in _NO_RANK or isinstance(default, bool)):  # is_master=True
            return Unknown(wanted.arg, is_of_rank=True)
        text = f"{_TEXTS[note]} {wanted.arg}" if note in _TEXTS else wanted.arg
        if wanted.arg in defaults:
            value = defaults[wanted.arg]
            if value == 1 and isinstance(value, int) and _COUNTS.search(wanted.arg):  # def learn(self, updates=1)
                value = Unknown(wanted.arg, is_given=True)
            is_off = not value and isinstance(value, int | str | None)  # `workers=0`: whoever calls it may want some
            return Unknown(text, is_option=True) if is_off else value
        return Unknown(text, is_given=True)

    def _annotated(self, wanted: ast.arg, scope: Scope | None, spot: Spot) -> Value:
        """What the annotation of WANTED asks for: a wrapped model, a layer, a list of optimizers; None for others."""
        note = wanted.annotation
        if scope is None or note is None:
            return None
        name = self.roles.names.resolve(note, scope)
        if name in lore()["wrappers"]["names"]:  # model: FullyShardedDataParallel
            return Object("wrapper", name, spot=spot, state={"module": made_for("model", spot), "is_given": True})
        if name.startswith("torch.nn.") and kind_of(name) == "module":
            return self.of_role(self._name_of(wanted), scope, spot) or made_for("model", spot)
        if isinstance(note, ast.Subscript) and ast.unparse(note.value).rpartition(".")[2] in _LISTS:
            made = made_for(self.roles.of_class(self.roles.names.resolve(note.slice, scope)) or "", spot)
            return [made] if made is not None else None
        return None

    def _name_of(self, wanted: ast.arg) -> ast.Name:
        """The parameter WANTED as an expression, the same one each time: nodes are known by identity."""
        if id(wanted) not in self._names:
            self._names[id(wanted)] = ast.copy_location(ast.Name(wanted.arg, ast.Load()), wanted)
        return self._names[id(wanted)]

    def of_role(self, node: ast.expr, scope: Scope | None, spot: Spot) -> Object | None:
        """A thing of the role that NODE plays in SCOPE; None where it plays none."""
        roles = {part.role for part in self.roles.parts(node, scope)} if scope is not None else set()
        return made_for(roles.pop(), spot) if len(roles) == 1 else None


@once
def _methods_called(function: ast.AST) -> frozenset[str]:
    """The names of the methods that FUNCTION calls."""
    calls = (each.func for each in ast.walk(function) if isinstance(each, ast.Call))
    return frozenset(each.attr for each in calls if isinstance(each, ast.Attribute))


@once
def _attributes_of(function: ast.AST) -> dict[str, set[str]]:
    """For each name in FUNCTION, the attributes of it that are asked for."""
    found: dict[str, set[str]] = {}
    for each in ast.walk(function):
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
            found.setdefault(each.value.id, set()).add(each.attr)
    return found


@once
def _is_accessor(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool:
    """Whether FUNCTION only gives or sets attributes: get_classifier(), no_weight_decay(), set_grad_checkpointing().

    Models of a library have half a dozen of them, and for each one the whole model would be made.
    """
    inside = [function.body] if isinstance(function, ast.Lambda) else function.body
    return not any(_is_action(each) for statement in inside for each in ast.walk(statement))


def _is_action(node: ast.AST) -> bool:
    """Whether NODE does more than to look something up, or to set a switch."""
    if isinstance(node, ast.For):  # for block in self.blocks: block.grad_checkpointing = enable
        return not all(isinstance(each, ast.Assign) for each in node.body)
    if isinstance(node, ast.Call):
        return not (isinstance(node.func, ast.Name) and node.func.id in _LOOKS)
    if isinstance(node, ast.Attribute):
        return node.attr in _STATES
    return isinstance(node, _ACTIONS)


def made_for(role: str, spot: Spot) -> Object | None:
    """A thing of ROLE of which nothing else is known, with the parameter at SPOT that gives it."""
    if role == "model":
        return given_model(spot)
    if role == "criterion":
        return Object("module", _CRITERION, spot=spot, state={"is_given": True})
    if role == "optimizer":
        return Object("optimizer", "", spot=spot, state={"groups": [], "of": None, "is_known": False, "is_given": True})
    if role in ("scaler", "scheduler", "loader", "sampler"):
        return Object(role, "", spot=spot, state={"is_given": True})
    return None


def share(models: list[Object], optimizers: list[Object], parameters: Iterable[Parameter]) -> None:
    """A single optimizer that is given along with models holds their parameters, and one that is given without any
    those of some model; of several nobody knows which.
    """
    held: list[Value] = list(parameters) if len(optimizers) == 1 and models else [Unknown("parameters")]
    if len(optimizers) == 1 and not models and optimizers[0].spot is not None:
        held = [each for group in optimizers[0].state["groups"] for each in group["params"]] or [
            Parameter(optimizers[0].spot)
        ]
    for each in optimizers:
        each.state["groups"] = [{"params": held}]


def is_module(cls: Class) -> bool:
    return any(kind_of(name) == "module" for name in cls.externals)


def is_of_autograd(cls: Class) -> bool:
    return FUNCTION in cls.externals


def _switches_off(owner: ast.AST) -> bool:
    """Whether OWNER, a `with`, switches gradients off."""
    items = owner.items if isinstance(owner, ast.With) else []
    return any("no_grad" in text or "inference_mode" in text for text in (ast.unparse(each) for each in items))


def _is_within(scope: Scope | None, name: str) -> bool:
    while scope is not None:
        if scope.name == name:
            return True
        scope = scope.parent
    return False
