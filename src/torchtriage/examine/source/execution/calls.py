"""Calls: functions and methods of the project, its classes, and what packages are asked for."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.arithmetic import SHIFTED, format_of
from torchtriage.examine.source.execution.attributes import CONTAINERS
from torchtriage.examine.source.execution.autograd import GraphNode, Tensor
from torchtriage.examine.source.execution.bounds import ABOVE, FREE
from torchtriage.examine.source.execution.frames import Frame, Return
from torchtriage.examine.source.execution.graphs import tensors_in
from torchtriage.examine.source.execution.instances import Instances
from torchtriage.examine.source.execution.loops import Loop
from torchtriage.examine.source.execution.lore import FUNCTION, lore, of_tensors
from torchtriage.examine.source.execution.modules import names_forward
from torchtriage.examine.source.execution.ranks import Guard, is_of_rank, names_rank
from torchtriage.examine.source.execution.tensors import moved_to
from torchtriage.examine.source.execution.values import (
    OVER,
    Answer,
    Arguments,
    Class,
    Endless,
    External,
    Function,
    Keywords,
    Loaded,
    Member,
    Method,
    Namespace,
    Object,
    Operation,
    Partial,
    Unknown,
    Value,
    given_model,
    is_module,
)

REST = "**rest"
"""The name by which a call says that more keywords may be given, for none of the parameters."""
DEEP = 40
"""Calls within calls."""
_OF_MODULES = frozenset({"parameters", "named_parameters", "state_dict", "load_state_dict", "train", "eval", "modules"})
"""Methods that modules have, and no tensor."""
_GIVE_MODULES = frozenset({"children", "modules", "named_children", "named_modules", "parameters"})
_OF_LOADED_MODULES = frozenset({"eval", "train", "cuda", "half", "float"})
"""What is done with a model that torch.load gives as a whole."""
_BLIND = frozenset(
    {"step", "zero_grad", "backward", "train", "eval", "update", "unscale_", "set_epoch", "wait", "seed"}
)
"""Methods whose calls on unknown things keep rules from saying that nothing calls them."""


class Calls(Instances):
    """The calls of an execution. under_call: the calls that led to where it is, the outermost first.

    blind: names of methods that were called on things that are not known.
    """

    under_call: list[tuple[str, ast.AST]]
    stack: list[Function]
    guards: list[Guard]
    blind: set[str]
    entered: set[int]
    visited: dict[int, Function]
    _calls: ClassVar[dict[type, Callable[..., Value]]] = {}

    def call(self, called: Value, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        self.count()
        if isinstance(called, Answer):
            self.note_answer(called)
        self.note_used((each for each in arguments if isinstance(each, Tensor)), node)
        if isinstance(called, Loaded) and called.module is None:  # model = torch.load("model.pt")
            called.module = given_model(called.spot)
        if isinstance(called, Unknown) and called.module is not None:
            called = called.module
        work = self._calls.get(type(called))
        if work is not None:
            return work(self, called, arguments, keywords, node)
        if type(called) is Unknown and not called.is_plain and id(node) in self.dropped and not arguments:
            self.blind |= {"zero_grad", "step"}  # prepare_step() of a star import may work on what is global there
        return self.beyond(called, "", arguments, keywords, node)

    def _own_function(self, called: Function, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        owner = called.owner
        if owner is not None and called.name == "forward" and FUNCTION in owner.externals and names_forward(node):
            is_known = not keywords and not any(isinstance(each, Unknown) and each.why == "*" for each in arguments)
            if not self.is_in_function and is_known:
                self.happen(events.FunctionForward(self.spot(node), owner, arguments, self.is_grad))
        return self.call_function(called, arguments, keywords, node)

    def _method(self, called: Method, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        is_forward = called.function.name == "forward" and is_module(called.receiver)
        if is_forward and called.receiver not in self.under:
            return self.forward_itself(called.receiver, arguments, keywords, node)
        result = self.call_function(called.function, (called.receiver, *arguments), keywords, node)
        self._note_stopped(called)
        return result

    def _note_stopped(self, called: Method) -> None:
        """Whether a constructor that super().__init__() came to has called none further: that of nn.Module waits."""
        held = called.receiver
        if called.function.name == "__init__" and is_module(held) and held.state.get("is_made") is False:
            held.state.setdefault("stopped", called.function)

    def _package(self, called: External, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return self.external(called.name, arguments, keywords, node)

    def _partial_call(self, called: Partial, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        is_here = called.spot is not None and called.spot.path == self.paths[-1]
        name = called.called.name if isinstance(called.called, External) else ""
        is_of_arguments = name.rpartition(".")[2][:1].isupper() or name in lore()["watched"]
        if is_of_arguments and called.spot is not None and is_here:
            node = called.spot.node
        return self.call(called.called, (*called.arguments, *arguments), {**called.keywords, **keywords}, node)

    def _operation(self, called: Operation, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        held, name = called.receiver, called.name
        if isinstance(held, Class):
            return self.apply(held, arguments, node)
        if isinstance(held, Tensor):
            return self.tensor_method(held, name, arguments, keywords, node)
        if isinstance(held, Object):
            found = self.operate(held, name, arguments, keywords, node)
            return found if found is not NotImplemented else self.beyond(held, name, arguments, keywords, node)
        if isinstance(held, CONTAINERS):
            if isinstance(held, list) and name == "append" and arguments:
                self.note_kept(held, arguments[0], node)
                self.note_appended(held, arguments[0], node)
                self.note_growth(held)
            return self.container_method(held, name, arguments, keywords, node)
        return self._method_of_rest(held, name, arguments, keywords, node)

    def _method_of_rest(self, held: Value, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        if isinstance(held, Namespace) and held.holds_settings:
            return self.settings_method(held, name, arguments, keywords)
        if isinstance(held, Loaded) and (name == "items" or (name in ("get", "pop") and arguments)):
            key = "*" if name == "items" else arguments[0]  # one of its entries stands for all
            found = self.item(held, key, node)
            return [(Unknown("a name"), found)] if name == "items" else found
        if isinstance(held, Unknown):
            found = self._by_method(held, name, arguments, keywords, node)
            if found is not NotImplemented:
                return found
        if self.worker is not None:
            self.happen(events.LibraryCall(self.spot(node), name, arguments, keywords))
        if name == "enter_context" and arguments:  # of an ExitStack, whose own `with` leaves it again
            return self.enter(arguments[0], node)[1]
        return self._method_of_unseen(held, name, arguments, keywords, node)

    def _method_of_unseen(
        self, held: Value, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST
    ) -> Value:
        """HELD.NAME(…) of a class that is not in sight."""
        if name in ("full_tensor", "wait_for_everyone"):
            self.happen(events.Collective(self.spot(node), name))
        if name in _BLIND:
            self.blind.add(name)
        if isinstance(held, Object):  # it may do anything to its own object
            self.escape(held)
        found = self.beyond(held, name, arguments, keywords, node)
        if isinstance(found, Unknown):  # a batch of a class of its own
            found.device = moved_to(name, (*arguments, *keywords.values()))
        return found

    def _by_method(self, held: Unknown, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """HELD.NAME(…) where the method tells what HELD is: a model, a dict, a tensor; else NotImplemented."""
        is_whole = isinstance(held, Loaded) and name in _OF_LOADED_MODULES
        if (name in _GIVE_MODULES or is_whole) and held.module is None and not arguments:
            held.module = given_model(self.spot(node))
        if held.module is not None:
            return self.call(self.attribute(held.module, name, node), arguments, keywords, node)
        if name == "setdefault" and len(arguments) == 2:  # a dict that a caller keeps
            return held.values.setdefault(f"[{arguments[0]!r}]", arguments[1])
        if held.is_plain:
            return NotImplemented
        if id(node) in self.dropped and name in lore()["tensors"]["pure"]:
            self.note_lost(held, name, node)
        is_loss = name == "backward" and held.grad_fn is not None
        given = (*arguments, *keywords.values(), External(f"torch.{name}"))
        casts = name in ("half", "to", "type") and format_of(given)
        if name not in of_tensors() and not is_loss and not casts:
            return NotImplemented
        self.blind |= {"backward"} if is_loss else set()
        assumed = Tensor(self.spot(node), is_open=True, is_batch=True, grad_fn=held.grad_fn)
        assumed.bounds = ABOVE if held.why == SHIFTED else FREE
        found = self.tensor_method(assumed, name, arguments, keywords, node)
        if casts and isinstance(found, Tensor):  # attempt_load(weights).half() is a model
            found.is_output = True
        return found

    def beyond(self, held: Value, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        if isinstance(held, Unknown):
            held.is_called |= not name or name in _OF_MODULES
        for each in (held, *arguments):
            if isinstance(each, Object) and each.kind in ("handle", "profiler"):
                each.has_escaped = True
        if name not in lore()["harmless"]["methods"]:
            if self.guards:
                self.happen(events.UnseenCall(self.spot(node)))
            self.escape(*arguments, *keywords.values())
            if isinstance(held, Object) and name and held.kind in ("", "optimizer"):  # optimizer.second_step(): SAM
                held.has_escaped = True
        asked = name or (held.why if isinstance(held, Unknown) else "")
        inputs = [each.grad_fn for each in tensors_in((*arguments, *keywords.values())) if each.grad_fn is not None]
        grad_fn = GraphNode(tuple(inputs)) if inputs else None
        is_file_of_rank = name == "open" and any(map(is_of_rank, arguments[:1]))
        source = held if isinstance(held, Unknown) and name in lore()["paths"] else None
        return Unknown(name, is_of_rank=names_rank(asked) or is_file_of_rank, grad_fn=grad_fn, source=source)

    def _called_object(self, called: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        if called.kind == "grad_mode" and arguments and isinstance(arguments[0], Function):
            arguments[0].grad = called.state["enabled"]
            return arguments[0]
        if called.kind == "pipeline":
            value: Value = arguments[0] if arguments else Unknown()
            for each in called.state["parts"]:
                value = self.call(each, (value,), {}, node)
            return value
        own = called.method("__call__")
        if own is not None:
            return self.call_function(own, (called, *arguments), keywords, node)
        if is_module(called):
            return self.call_module(called, arguments, keywords, node)
        if called.cls is not None and FUNCTION in called.cls.externals:
            self.happen(events.FunctionInstance(self.spot(node), called.cls, called))
        return self.beyond(called, "", arguments, keywords, node)

    def call_function(self, function: Function, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        is_known = function.is_cached and id(function.node) in self.visited  # what it does is done already
        if is_known or len(self.under_call) >= DEEP or self.stack.count(function) > 3:
            self.escape(*(() if is_known else (*arguments, *keywords.values())))
            return Unknown(function.name)
        self.entered.add(id(function.node))
        self.visited[id(function.node)] = function
        if self._is_left_to_others(function, arguments):
            return Unknown(function.name)
        values = self._bound_arguments(function, arguments, keywords)
        outer: Frame = function.frame
        frame = Frame(
            outer.file, values, None if outer.values is outer.file.values else outer, function, function.owner
        )
        if function.is_generator:
            body = self._suspended(function, frame, node)
            return Object("context", state={"body": body}) if function.kind == "context" else self._streamed(body)
        before = self.is_grad, self.region
        with self._inside(function, node):
            if function.grad is not None:
                self.is_grad = function.grad
            if function.autocast is not None:
                self.region = function.autocast
            try:
                if isinstance(function.node, ast.Lambda):
                    return self.evaluate(function.node.body, frame)
                self.run(function.node.body, frame)
                if frame.skipped and all(isinstance(each, ast.If) for each in _without_docstring(function.node.body)):
                    self.choose_return(frame)
            except Return as given:
                return given.value
            finally:  # a method __enter__ leaves behind what it has switched on
                self.is_grad = before[0] if function.grad is not None else self.is_grad
                self.region = before[1] if function.autocast is not None else self.region
        return None

    def _is_left_to_others(self, function: Function, arguments: Arguments) -> bool:
        """Whether subclasses, which are out of sight, say what FUNCTION does."""
        if function.owner is not None and _is_empty(function) and any(isinstance(each, Loaded) for each in arguments):
            self.blind.add("load_state_dict")  # restore_more(checkpoint)
        if not _is_abstract(function):
            return False
        if arguments and isinstance(arguments[0], Object):
            self.escape(arguments[0])
        return True

    @contextmanager
    def _inside(self, function: Function, node: ast.AST) -> Iterator[None]:
        self.under_call.append((self.paths[-1], node))
        self.paths.append(function.frame.file.path)
        self.stack.append(function)
        guards = len(self.guards)
        self.guards += [each._replace(depth=len(self.under_call)) for each in function.guards]
        try:
            yield
        finally:
            del self.guards[guards:]
            self.under_call.pop()
            self.paths.pop()
            self.stack.pop()

    def _suspended(self, function: Function, frame: Frame, node: ast.AST) -> Iterator[Value]:
        """The body of a generator, which runs where it is asked."""
        body = self.block(function.node.body, frame) if not isinstance(function.node, ast.Lambda) else iter(())
        own: list[Loop] = []  # the loops of the generator itself go on where it is asked again
        while True:
            with self._inside(function, node):
                outer, self.loops = self.loops, [*self.loops, *own]
                before, self.outside = self.outside, len(outer)
                is_grad = self.is_grad
                if function.grad is not None:  # torch keeps the mode of a decorator while the generator runs
                    self.is_grad = function.grad
                try:
                    value = next(body)
                except (StopIteration, Return):
                    return
                finally:
                    own, self.loops = self.loops[len(outer) :], outer
                    self.outside = before
                    self.is_grad = is_grad if function.grad is not None else self.is_grad
            yield value

    def _streamed(self, body: Iterator[Value]) -> Value:
        """What a generator gives: as much as the loop over it asks for."""
        seen: list[Value] = []

        def make(number: int) -> Value:
            while len(seen) <= number:
                value = next(body, OVER)
                if value is OVER:
                    return OVER
                seen.append(value)
            return seen[number]

        return Endless(make, is_generated=True)

    def _bound_arguments(self, function: Function, arguments: Arguments, keywords: Keywords) -> dict[str, Value]:
        wanted = function.node.args
        names = [each.arg for each in (*wanted.posonlyargs, *wanted.args)]
        values: dict[str, Value] = dict(zip(names, arguments, strict=False))
        if wanted.vararg is not None:
            values[wanted.vararg.arg] = tuple(arguments[len(names) :])
        others: dict[str, Value] = {}
        is_open = "**" in keywords
        known = {*names, *(each.arg for each in wanted.kwonlyargs)}
        for name, each in keywords.items():
            if name in known:
                values[name] = each
            elif name not in ("**", REST):
                others[name] = each
        if wanted.kwarg is not None:
            values[wanted.kwarg.arg] = Unknown("**") if is_open or REST in keywords else others
        late = names[len(names) - len(function.defaults) :] if function.defaults else []
        for name, each in (*zip(late, function.defaults, strict=False), *function.keyword_defaults.items()):
            values.setdefault(name, Unknown(name) if is_open else each)
        for name in known:
            values.setdefault(name, Unknown(name))
        return values


def _is_empty(function: Function) -> bool:
    """Whether FUNCTION does nothing: a hook."""
    body = [] if isinstance(function.node, ast.Lambda) else function.node.body
    rest = [each for each in body if not isinstance(each, ast.Pass)]
    said = (each.value if isinstance(each, ast.Expr) else each for each in rest)
    return bool(body) and all(isinstance(each, ast.Constant) for each in said)


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    is_said = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    return body[1:] if is_said else body


def _is_abstract(function: Function) -> bool:
    """Whether FUNCTION is left to subclasses."""
    if isinstance(function.node, ast.Lambda):
        return False
    named = [ast.unparse(each).rpartition(".")[2] for each in function.node.decorator_list]
    last = function.node.body[-1]
    raised = last.exc if isinstance(last, ast.Raise) else None
    called = raised.func if isinstance(raised, ast.Call) else raised
    is_left = isinstance(called, ast.Name) and called.id == "NotImplementedError" and len(function.node.body) < 3
    return "abstractmethod" in named or is_left


Calls._calls = {
    Function: Calls._own_function,
    Method: Calls._method,
    Class: Calls.instance,
    External: Calls._package,
    Partial: Calls._partial_call,
    Operation: Calls._operation,
    Member: lambda self, called, *given: self._method_of_rest(called.receiver, called.name, *given),
    Object: Calls._called_object,
}
