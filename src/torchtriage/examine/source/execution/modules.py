"""Modules: what is registered with them, their mode, and their forward pass."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import ClassVar

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.arithmetic import device_of, format_of
from torchtriage.examine.source.execution.autograd import Parameter, Tensor, release
from torchtriage.examine.source.execution.lore import FUNCTION, MODULE, is_loss, kind_of, lore
from torchtriage.examine.source.execution.tensors import Tensors, tensors_in
from torchtriage.examine.source.execution.values import (
    Answer,
    Arguments,
    Class,
    Function,
    Keywords,
    Object,
    Parameters,
    Spot,
    Unknown,
    Value,
    truth,
)
from torchtriage.examine.source.names import table
from torchtriage.examine.source.torch_api.symbols import symbols

ALIKE = 2
"""Layers made by one line that a forward pass goes into: a transformer has dozens that do the same."""
_LISTS = ("torch.nn.ModuleList", "torch.nn.ParameterList")
_DICTS = ("torch.nn.ModuleDict", "torch.nn.ParameterDict")
_SEQUENTIAL = "torch.nn.Sequential"
OPAQUE = "a model"
"""The class of a model of which nobody sees what it is."""
_KEEPS = ("Identity", "Dropout", "Flatten")
"""Layers behind which probabilities are still probabilities."""


class Modules(Tensors):
    """The modules of an execution. called: every module whose forward pass has begun."""

    called: list[Object]
    layers: dict[Spot | None, tuple[tuple[Object, Value], ...]]
    """By the line that made them, those that the forward pass under way has gone through, with what they gave."""
    wrappers: list[Object]
    steps: int
    outermost: Spot | None
    """Where the outermost forward pass under way began, where that records no graph."""
    began: int
    """The step at which the outermost forward pass under way began."""
    under_call: list[tuple[str, ast.AST]]
    _of_modules: ClassVar[dict[str, Callable[..., Value]]] = {}

    @abstractmethod
    def note_answer(self, value: Answer, *, is_lost: bool = False) -> None:
        """VALUE is taken for the module that was loaded into."""

    @abstractmethod
    def bound(self, value: Object, found: Value) -> Value:
        """FOUND, which the class of VALUE defines, as an attribute of that."""

    # what is registered

    def children(self, module: Object) -> Iterator[tuple[str, Object]]:
        """The modules that are registered with MODULE itself, by name."""
        inner, items = module.state.get("module"), module.state.get("items")
        if isinstance(inner, Object):
            yield "module", inner
        if module.kind == "module" and isinstance(items, list | dict):
            pairs = items.items() if isinstance(items, dict) else enumerate(items)
            yield from ((str(name), each) for name, each in pairs if is_module(each))
        yield from ((name, each) for name, each in module.values.items() if is_module(each))

    def modules(self, module: Object) -> list[Object]:
        """MODULE and all that are registered below it, each once."""
        found: dict[int, Object] = {}
        waiting = [module]
        while waiting:
            each = waiting.pop(0)
            if id(each) not in found:
                found[id(each)] = each
                waiting += [child for _, child in self.children(each)]
        return list(found.values())

    def named_parameters(self, module: Object) -> Iterator[tuple[str, Parameter]]:
        """The parameters of MODULE and of all below it, each once, by its full name."""
        seen: set[int] = set()
        for name, each in self._named(module, "", set()):
            if id(each) not in seen:
                seen.add(id(each))
                yield name, each

    def _named(self, module: Object, head: str, through: set[int]) -> Iterator[tuple[str, Parameter]]:
        if id(module) in through:
            return
        through.add(id(module))
        yield from ((f"{head}{name}", each) for name, each in self.own_parameters(module).items())
        for name, child in self.children(module):
            yield from self._named(child, f"{head}{name}.", through)

    def parameters(self, module: Object) -> list[Parameter]:
        return [each for _, each in self.named_parameters(module)]

    def own_parameters(self, module: Object) -> dict[str, Parameter]:
        """The parameters of MODULE itself: of a layer of torch's, those that its class makes."""
        if module.made and "own" not in module.state:
            module.state["own"] = {
                name: Parameter(module.spot, owner=module, name=name) for name in self._parameter_names(module)
            }
            for each in module.state["own"].values():
                each.graph = frozenset({each})
        items = module.state.get("items")
        listed = enumerate(items) if isinstance(items, list) else ()
        made = {str(place): each for place, each in listed if isinstance(each, Parameter)}
        made |= {name: each for name, each in module.values.items() if isinstance(each, Parameter)}
        return {**module.state.get("own", {}), **made}

    def _parameter_names(self, module: Object) -> tuple[str, ...]:
        """Of a layer of torch's weight and bias, of any other model one that stands for all."""
        last = module.made.rpartition(".")[2]
        if any(truth(module.argument(each, None, True)) is False for each in ("affine", "elementwise_affine")):
            return ()
        is_holder = module.made in (MODULE, *lore()["containers"]) or "module" in module.state
        is_plain = last in lore()["plain_layers"] or last in symbols().stateless_layers
        if is_holder or is_plain or is_loss(module.made):
            return ()
        has_bias = truth(module.argument("bias", None, True)) is not False and not last.startswith("Embedding")
        return ("weight", "bias") if module.made.startswith("torch.nn.") and has_bias else ("weight",)

    # making

    def make_module(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Object:
        """A layer, or a container of layers, of torch's own."""
        made = Object("module", name, None, self.spot(node), arguments, keywords, state={"born": self.steps})
        first = arguments[0] if arguments else None
        wanted = format_of((keywords.get("dtype"), keywords.get("torch_dtype")))
        if wanted == "float16":  # nn.Linear(8, 8, dtype=torch.float16), X.from_pretrained(…, torch_dtype=torch.float16)
            self.happen(events.Move(self.spot(node), made, wanted))
        if name in (*_LISTS, *_DICTS, _SEQUENTIAL):
            self._fill_container(made, first, node)
        elif name.startswith("torch.nn.Transformer"):
            inner = first if isinstance(first, Object) else keywords.get("encoder_layer")
            if isinstance(inner, Object):  # copies of the layer; that itself is not among them
                made.values["layers"] = self.copy_of(inner, {})
        return made

    def _fill_container(self, made: Object, first: Value, node: ast.AST) -> None:
        if made.made == _SEQUENTIAL and not isinstance(first, dict):
            items: Value = [each for each in made.arguments if each is not None]
        elif made.made in _LISTS:
            items = self.listed(first, node) if made.arguments else []
        else:
            items = dict(first) if isinstance(first, dict) else {} if first is None else Unknown("modules")
        is_known = isinstance(items, list | dict)
        made.state["items"] = items if is_known else []
        made.has_escaped = not is_known or any(isinstance(each, Unknown) for each in items)
        if is_known:
            self.happen(events.ModuleList(self.spot(node), made))

    def wrapped(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """A model in DistributedDataParallel, torch.compile and the like."""
        inner = arguments[0] if arguments else keywords.get("module", keywords.get("model"))
        if isinstance(inner, Answer):
            self.note_answer(inner)
        is_plain = isinstance(inner, Parameter) or (isinstance(inner, Unknown) and inner.is_plain)
        if isinstance(inner, Unknown | Tensor) and not is_plain:  # DDP(build_model(cfg)): what is wrapped is a model
            state = {"training": None, "is_given": True}
            inner = Object("module", OPAQUE, spot=self.spot(node), state=state, has_escaped=True)
            self.happen(events.Move(self.spot(node), inner, "", Unknown("a device")))  # whoever built it has placed it
        if not is_module(inner):
            return inner if isinstance(inner, Function) else Unknown(name)
        if name in lore()["wrappers"]["transparent"]:
            if name == "torch.compile":
                compiled = Object("compiled", name, None, self.spot(node), arguments, keywords, state={"module": inner})
                self.happen(events.Made(self.spot(node), compiled))
            return inner
        made = Object("wrapper", name, None, self.spot(node), arguments, keywords, state={"module": inner})
        self.wrappers.append(made)
        self.happen(events.Made(self.spot(node), made))
        return made

    # mode

    def is_training(self, module: Object) -> bool | None:
        """The mode of MODULE, of a wrapper that of the model inside; None where it is not known."""
        inner = bare(module)
        inner = inner.state.get("whole", inner)
        return None if inner.has_escaped else inner.state.get("training", True)

    def set_mode(self, module: Object, mode: bool | None, node: ast.AST) -> None:
        self.happen(events.ModeChange(self.spot(node), module, mode))
        for each in self.modules(module):
            each.state["training"] = mode

    # forward

    def call_module(self, module: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """MODULE(…): its forward pass."""
        is_outermost = not self.under
        self._note_entries(keywords, node)
        if is_outermost:
            self.layers = {}
            self.began, self.outermost = self.steps, None if self.is_grad else self.spot(node)
        seen = list(self.layers.get(module.spot, ())) if module.cls is not None and module.spot is not None else []
        if len(seen) >= ALIKE and not any(each is module for each, _ in seen):
            self.called += self.modules(module)
            return self._alike(seen.pop()[1], module, arguments, node)
        self._note_fresh(module)
        first, mode, grad = len(self.called), self.is_training(module), self.is_grad
        given = list(tensors_in((*arguments, *keywords.values()))) if is_outermost else []
        ages = frozenset[int]().union(*(each.ages for each in given if each.grad_fn is not None))
        self.called.append(module)
        self.under.append(module)
        try:
            output = self.forward(module, arguments, keywords, node)
        finally:
            self.under.pop()
        if module.spot is not None:
            self.layers[module.spot] = (*self.layers.get(module.spot, ()), (module, output))
        for hook in module.state.get("hooks", ()):
            changed = self.call(hook, (module, arguments, output), {}, node)
            output = output if changed is None else changed
        if is_outermost and not is_loss(module.cls.name if module.cls is not None else module.made):
            within = tuple(dict.fromkeys(self.called[first:]))
            graph = frozenset[Parameter]().union(*(each.graph for each in given))
            forward = events.Forward(self.spot(node), module, mode, grad, self.region.format, within)
            forward.is_unsynced, forward.ages, forward.given = self.is_unsynced, ages, graph
            self.happen(forward)
        return output

    def _note_entries(self, keywords: Keywords, node: ast.AST) -> None:
        """model(**batch): the entries of the batch are tensors."""
        for each in keywords.values():
            if isinstance(each, Unknown) and each.values:
                self.note_used((value for name, value in each.values.items() if name.startswith("[")), node)

    def _note_fresh(self, module: Object) -> None:
        """Whether MODULE was made since the forward pass began that uses it; its own layers are part of it."""
        spot, depth = module.spot, len(self.under_call)
        user = self.under[-1] if self.under else None
        is_fresh = self._is_fresh(module) and not module.state.get("is_set")
        if user is None or spot is None or user.cls is None or not is_fresh or self._is_fresh(user):
            return
        chain = (*spot.calls, (spot.path, spot.node))
        is_dropout = module.made.rpartition(".")[2] in symbols().dropout_layers
        if (is_dropout or self.parameters(module)) and depth < len(chain):
            path, node = chain[depth]
            self.happen(events.LayerMade(Spot(path, node), module, self.is_training(user)))

    def _is_fresh(self, module: Object) -> bool:
        """Whether MODULE was made while the forward pass under way was."""
        return int(module.state.get("born", -1)) >= self.began

    def _alike(self, output: Value, module: Object, arguments: Arguments, node: ast.AST) -> Value:
        """What MODULE gives, where one of the same line gave OUTPUT."""
        if isinstance(output, Tensor):
            own = frozenset(each for each in self.parameters(module) if each.requires_grad is not False)
            result = self.merged(arguments, node, own if self.is_grad else frozenset())
            result.activation, result.is_open = output.activation, output.is_open
            result.activated = output.activated
            return result
        if isinstance(output, tuple | list):
            return type(output)(self._alike(each, module, arguments, node) for each in output)
        if isinstance(output, dict):
            return {key: self._alike(each, module, arguments, node) for key, each in output.items()}
        return output

    def forward(self, module: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """What the forward pass of MODULE gives."""
        inner, items = module.state.get("module"), module.state.get("items")
        if isinstance(inner, Object):
            return self.call(inner, arguments, keywords, node)
        if module.cls is not None:
            method = module.method("forward")
            if method is not None:
                return self.call(self.bound(module, method), arguments, keywords, node)
            return Tensor(self.spot(node), is_open=True)
        if module.made == _SEQUENTIAL and isinstance(items, list | dict):
            value: Value = arguments[0] if arguments else Unknown()
            for each in items.values() if isinstance(items, dict) else items:
                value = self.call(each, (value,), {}, node)
            return value
        return self._computed(module, arguments, keywords, node)

    def _computed(self, module: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """What a layer of torch's, or a model of a package, computes."""
        last = module.made.rpartition(".")[2]
        if last in lore()["losses"]:
            return self.loss(last, arguments, module.keywords, node)
        place = table()["inplace"].get(module.made)
        if place is not None and module.argument("inplace", place) is True:
            for each in tensors_in(arguments[:1]):
                self.overwrite(each, node)
        held = [
            *(self.own_parameters(module).values() if module.made.startswith("torch.nn.") else self.parameters(module))
        ]
        for part in module.state.get("parts", {}).values():  # those of a model of a package that the program names
            held += self.parameters(part)
        own = frozenset(each for each in held if each.requires_grad is not False)
        result = self.merged((*arguments, *keywords.values()), node, own if self.is_grad else frozenset())
        result.is_open |= any(each.requires_grad is None for each in own)
        result.is_output = not module.made.startswith("torch.nn.")
        if own and not self.is_grad:
            result.cut = self.cut_spot(node)
        result.layer = last if last.startswith(("Linear", "Conv", "Lazy")) else ""
        result.needed = last.lower() if module.made in symbols().saving_layers else ""
        if last in lore()["activations"]:
            is_of_list = len(self.under) > 1 and self.under[-2].made == _SEQUENTIAL
            result.activation = lore()["activations"][last]
            result.activated = module.spot if is_of_list else result.spot
        elif last in _KEEPS:
            first = next((each for each in arguments if isinstance(each, Tensor)), Tensor())
            result.activation, result.activated = first.activation, first.activated
        if module.made in lore()["recurrent"]:
            return result, (replace(result), replace(result)) if last == "LSTM" else replace(result)
        return (result, replace(result)) if last == "MultiheadAttention" else result

    # methods

    def module_method(self, held: Object, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """HELD.NAME(…); NotImplemented where that is not executed here."""
        items = held.state.get("items")
        if isinstance(items, list) and name in ("append", "extend", "insert"):
            if name == "append" and arguments:
                self.note_appended(items, arguments[0], node)
            self.container_method(items, name, arguments, keywords, node)
            return held
        if isinstance(items, dict) and name in ("items", "keys", "values", "update", "get", "pop"):
            return self.container_method(items, name, arguments, keywords, node)
        work = self._of_modules.get(name)
        return work(self, held, arguments, keywords, node) if work is not None else NotImplemented

    def _initialize(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """super().__init__(…), also of a class that is a container of layers itself."""
        held.state["is_made"] = True
        if held.made in lore()["containers"]:
            held.state |= self.make_module(held.made, arguments, keywords, node).state

    def _listed_parameters(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return Unknown("parameters") if held.has_escaped else Parameters(self.parameters(held), held)

    def _listed_names(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return Unknown("parameters") if held.has_escaped else [*self.named_parameters(held)]

    def _train(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        self.set_mode(held, truth(arguments[0] if arguments else keywords.get("mode", True)), node)
        return held

    def _evaluate_mode(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        self.set_mode(held, False, node)
        return held

    def _require_gradients(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        wanted = truth(arguments[0] if arguments else keywords.get("requires_grad", True))
        for each in self.parameters(held):
            each.requires_grad = wanted
        return held

    def _move(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        self.note_moved(held, node)
        device = arguments[0] if arguments else keywords.get("device")
        is_cuda = getattr(getattr(node, "func", None), "attr", "") == "cuda" or device_of((device,)) == "cuda"
        for parameter in self.parameters(held) if is_cuda else ():
            parameter.device = "cuda"
        self.happen(events.Move(self.spot(node), held, format_of((*arguments, *keywords.values())), device))
        return held

    def note_defaults(self, function: Function, nodes: list[ast.expr]) -> None:
        values = (*function.defaults, *function.keyword_defaults.values())
        for value, node in zip(values, nodes, strict=True):
            if is_module(value) and isinstance(node, ast.Call):
                self.happen(events.SharedModule(self.spot(node), value, function.name, function.owner, is_default=True))

    def note_class(self, cls: Class) -> None:
        if FUNCTION in cls.externals and not any(map(cls.has, ("__call__", "__new__"))):
            own = (cls.namespace.get(name) for name in ("forward", "backward", "setup_context"))
            bound = next((each for each in own if isinstance(each, Function) and not each.kind), None)
            if bound is not None:
                self.happen(events.FunctionMethod(self.spot(bound.node), cls, bound.name))
        is_own = any(kind_of(name) == "module" for name in cls.externals)
        for name, value in cls.namespace.items() if is_own or cls.fields is not None else ():
            if (is_module(value) or isinstance(value, Parameter)) and value.spot is not None:
                self.happen(events.SharedModule(value.spot, value, name, cls))

    def note_repeated(self, values: Iterable[Value], node: ast.AST, *, is_registered: bool = False) -> None:
        for each in values:
            if is_module(each):
                self.happen(events.RepeatedLayer(self.spot(node), each, is_registered))

    def note_appended(self, held: list[Value], value: Value, node: ast.AST) -> None:
        """VALUE becomes an element of HELD in a loop, maybe once more."""
        if self.loops and is_module(value) and any(each is value for each in held):
            self.note_repeated((value,), node)

    def note_moved(self, held: Object, node: ast.AST) -> None:
        """HELD goes to another device, with all that is registered, and what its own _apply() takes along."""
        for each in self.modules(held):
            each.state["is_moved"] = True
            own = each.method("_apply")
            if own is not None:
                self.call(self.bound(each, own), (Unknown("a move"),), {}, node)

    def _take_back(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        self.happen(events.Move(self.spot(node), held, "", "cpu"))
        return held

    def _widen(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        self.happen(events.Move(self.spot(node), held, "float32"))
        return held

    def _halve(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        self.happen(events.Move(self.spot(node), held, "float16"))
        return held

    def _forward_itself(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        if held in self.under:  # super().forward(x)
            return self.forward(held, arguments, keywords, node)
        self.happen(events.DirectForward(self.spot(node), held))
        return self.call_module(held, arguments, keywords, node)

    def part(self, held: Object, name: Value) -> Object:
        """The part NAME of HELD, a model of a package or of a caller that nobody sees: always the same one for it."""
        parts: dict[Value, Object] = held.state.setdefault("parts", {})
        key = name if isinstance(name, str | int) else "?"
        if key not in parts:
            state = {"training": held.state.get("training", True), "is_any": key == "?"}
            parts[key] = Object("module", OPAQUE, spot=held.spot, state=state)
        return parts[key]

    def is_opaque(self, held: Value) -> bool:
        """Whether HELD is a model of which nobody sees what it is made of."""
        return is_module(held) and held.kind == "module" and held.cls is None and not held.made.startswith("torch.nn.")

    def inner_modules(self, held: Object) -> list[Object]:
        """The modules that are registered with HELD itself; of an opaque model one that stands for them."""
        return [self.part(held, "?")] if self.is_opaque(held) else [each for _, each in self.children(held)]

    def named_inside(self, held: Object) -> list[tuple[Value, Object]]:
        """The modules that are registered with HELD itself, with their names."""
        return [(Unknown("a name"), self.part(held, "?"))] if self.is_opaque(held) else [*self.children(held)]

    def all_modules(self, held: Object) -> list[Object]:
        """HELD and the modules below it; of an opaque model one that stands for them."""
        inside = [self.part(each, "?") for each in self.modules(held) if self.is_opaque(each)]
        return [*self.modules(held), *inside]

    def _submodule(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """The module of that dotted name; of a model of a package always the same one for it."""
        name = arguments[0] if arguments else keywords.get("target")
        if not isinstance(name, str):
            return Unknown("a module")
        found = held
        for word in name.split("."):
            found = dict(self.children(found)).get(word) or self.part(found, word)
        return found

    def _apply(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        for each in self.modules(held):
            self.call(arguments[0] if arguments else Unknown(), (each,), {}, node)
        return held

    def _register(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        if len(arguments) > 1 and isinstance(arguments[0], str):
            self._note_again(arguments[1], node)
            held.values[arguments[0]] = arguments[1]
            release(arguments[1])
        elif len(arguments) > 1 and isinstance(arguments[1], Object | Parameter):  # under a name that nobody knows
            self._note_again(arguments[1], node)
            held.values[f"{len(held.values)}?"] = arguments[1]
        name = arguments[0] if arguments else keywords.get("name")
        self.note_early(held, name if isinstance(name, str) else "", self.spot(node))
        return None

    def _note_again(self, value: Value, node: ast.AST) -> None:
        """Whether the line of NODE has registered VALUE before."""
        if is_module(value):
            if value.state.get("registered_by") is node:
                self.note_repeated((value,), node, is_registered=True)
            value.state["registered_by"] = node

    def note_early(self, module: Object, name: str, spot: Spot) -> None:
        """The attribute NAME is registered with MODULE: that needs what nn.Module.__init__ makes."""
        if module.kind != "module" or module.state.get("is_made") is not False or module.has_escaped:
            return
        constructor = module.state.get("stopped") or module.method("__init__")
        if constructor is not None:
            is_other = "stopped" in module.state
            where = Spot(constructor.frame.file.path, constructor.node) if is_other else spot
            self.happen(events.EarlyAssignment(where, name, constructor))
            module.state["is_made"] = None  # it raises here

    def _hook(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        held.state.setdefault("hooks", []).append(arguments[0] if arguments else Unknown())
        return self._hook_handle(held, arguments, keywords, node)

    def _hook_handle(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        handle = Object("handle", "hook", None, self.spot(node))
        hook = arguments[0] if arguments else None
        self.happen(events.HookMade(self.spot(node), held, handle, hook, is_in_forward=bool(self.under)))
        return handle


def bare(module: Object) -> Object:
    """MODULE without its wrappers."""
    while isinstance(module.state.get("module"), Object):
        module = module.state["module"]
    return module


def is_module(value: Value) -> bool:
    return isinstance(value, Object) and value.kind in ("module", "wrapper")


Modules._of_modules = {
    "parameters": Modules._listed_parameters,
    "named_parameters": Modules._listed_names,
    "modules": lambda self, held, *_: self.all_modules(held),
    "children": lambda self, held, *_: self.inner_modules(held),
    "named_children": lambda self, held, *_: self.named_inside(held),
    "named_modules": lambda self, held, *_: [(Unknown("a name"), each) for each in self.all_modules(held)],
    "train": Modules._train,
    "eval": Modules._evaluate_mode,
    "requires_grad_": Modules._require_gradients,
    "to": Modules._move,
    "cuda": Modules._move,
    "cpu": Modules._take_back,
    **dict.fromkeys(("to_empty", "compile", "share_memory"), lambda _, held, *__: held),
    **dict.fromkeys(("float", "double", "bfloat16"), Modules._widen),
    "half": Modules._halve,
    "apply": Modules._apply,
    **dict.fromkeys(
        ("register_buffer", "register_parameter", "add_module", "register_module", "__setattr__"), Modules._register
    ),
    "register_forward_hook": Modules._hook,
    "get_submodule": Modules._submodule,
    **dict.fromkeys(
        (
            "register_forward_pre_hook",
            "register_full_backward_hook",
            "register_full_backward_pre_hook",
            "register_backward_hook",
        ),
        Modules._hook_handle,
    ),
    "no_sync": lambda *_: Object("no_sync"),
    "forward": Modules._forward_itself,
    "__call__": Modules.call_module,
    "__init__": Modules._initialize,
    **dict.fromkeys(
        ("join", "buffers", "named_buffers", "gradient_checkpointing_enable"),
        lambda *_: Unknown("a module"),
    ),
}
