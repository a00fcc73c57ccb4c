"""What is registered with a module: its layers, its parameters, and what is put into it."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterable, Iterator

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.arithmetic import format_of
from torchtriage.examine.source.execution.autograd import Parameter, Tensor, release
from torchtriage.examine.source.execution.lore import MODULE, is_loss, lore
from torchtriage.examine.source.execution.tensors import Tensors
from torchtriage.examine.source.execution.values import (
    OPAQUE,
    Answer,
    Arguments,
    Function,
    Keywords,
    Method,
    Object,
    Spot,
    Unknown,
    Value,
    given_model,
    is_module,
    truth,
)
from torchtriage.examine.source.torch_api.symbols import symbols

_LISTS = ("torch.nn.ModuleList", "torch.nn.ParameterList")
_DICTS = ("torch.nn.ModuleDict", "torch.nn.ParameterDict")
SEQUENTIAL = "torch.nn.Sequential"
_NAMELESS = "?"
"""How the name of a part ends that is registered under one that nobody knows: setattr(self, f"block{size}", block)."""


class Registration(Tensors):
    """The modules of an execution, and their parameters, buffers and submodules."""

    wrappers: list[Object]
    steps: int

    @abstractmethod
    def note_answer(self, value: Answer, *, is_lost: bool = False) -> None:
        """VALUE is taken for the module that was loaded into."""

    # what is there

    def children(self, module: Object) -> Iterator[tuple[str, Object]]:
        """The modules that are registered with MODULE itself, by name."""
        inner, items = module.state.get("module"), module.state.get("items")
        if isinstance(inner, Object):
            yield "module", inner
        if module.kind == "module":
            yield from ((name, each) for name, each in _entries(items) if is_module(each))
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
        made = {name: each for name, each in _entries(module.state.get("items")) if isinstance(each, Parameter)}
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

    # parts of models of which nobody sees what they are made of

    def is_opaque(self, held: Value) -> bool:
        """Whether HELD is a model of which nobody sees what it is made of."""
        return is_module(held) and held.kind == "module" and held.cls is None and not held.made.startswith("torch.nn.")

    def part(self, held: Object, name: Value) -> Object:
        """The part NAME of HELD, a model of a package or of a caller that nobody sees: always the same one for it."""
        parts: dict[Value, Object] = held.state.setdefault("parts", {})
        key = name if isinstance(name, str | int) else "?"
        if key not in parts:
            state = {"training": held.state.get("training", True), "is_any": key == "?"}
            parts[key] = Object("module", OPAQUE, spot=held.spot, state=state)
        return parts[key]

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

    # making

    def make_module(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Object:
        """A layer, or a container of layers, of torch's own."""
        made = Object("module", name, None, self.spot(node), arguments, keywords, state={"born": self.steps})
        first = arguments[0] if arguments else None
        wanted = format_of((keywords.get("dtype"), keywords.get("torch_dtype")))
        if wanted == "float16":  # nn.Linear(8, 8, dtype=torch.float16), X.from_pretrained(…, torch_dtype=torch.float16)
            self.happen(events.Move(self.spot(node), made, wanted))
        if name in (*_LISTS, *_DICTS, SEQUENTIAL):
            self._fill_container(made, first, node)
        elif name.startswith("torch.nn.Transformer"):
            inner = first if isinstance(first, Object) else keywords.get("encoder_layer")
            if isinstance(inner, Object):  # copies of the layer; that itself is not among them
                made.values["layers"] = self.copy_of(inner, {})
        return made

    def _fill_container(self, made: Object, first: Value, node: ast.AST) -> None:
        if made.made == SEQUENTIAL and not isinstance(first, dict):
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
            inner = given_model(self.spot(node))
            inner.has_escaped = True
            self.happen(events.Move(self.spot(node), inner, "", Unknown("a device")))  # whoever built it has placed it
        if isinstance(inner, Function | Method) and name == "torch.compile":
            self.happen(events.Made(self.spot(node), Object("compiled", name, None, self.spot(node), (), keywords)))
        if not is_module(inner):
            return inner if isinstance(inner, Function | Method) else Unknown(name)
        if name in lore()["wrappers"]["transparent"]:
            if name == "torch.compile":
                compiled = Object("compiled", name, None, self.spot(node), arguments, keywords, state={"module": inner})
                self.happen(events.Made(self.spot(node), compiled))
            return inner
        made = Object("wrapper", name, None, self.spot(node), arguments, keywords, state={"module": inner})
        self.wrappers.append(made)
        self.happen(events.Made(self.spot(node), made))
        return made

    # registering

    def register(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        words = ("name", "module", "param", "tensor")  # add_module(name="conv", module=conv)
        arguments = (*arguments, *(keywords[each] for each in words if each in keywords))
        if len(arguments) > 1 and isinstance(arguments[0], str):
            self._note_again(arguments[1], node)
            held.values[arguments[0]] = arguments[1]
            release(arguments[1])
        elif len(arguments) > 1 and isinstance(arguments[1], Object | Parameter):  # under a name that nobody knows
            self._note_again(arguments[1], node)
            held.values[f"{len(held.values)}{_NAMELESS}"] = arguments[1]
        items = held.state.get("items")
        if isinstance(items, list) and len(arguments) > 1 and is_module(arguments[1]):  # blocks.add_module("0", block)
            items.append(arguments[1])
        name = arguments[0] if arguments else keywords.get("name")
        held.state.setdefault("registered", set()).add(name if isinstance(name, str) else "")
        self.note_early(held, name if isinstance(name, str) else "", self.spot(node))
        return None

    def _note_again(self, value: Value, node: ast.AST) -> None:
        """Notes that the line of NODE registers VALUE again; but parts of a model that somebody else made are put where
        they stand on purpose: tied layers, after a move (Lightning).
        """
        if is_module(value) and not value.state.get("is_given"):
            if value.state.get("registered_by") is node:
                self.note_repeated((value,), node, is_registered=True)
            value.state["registered_by"] = node

    def note_repeated(self, values: Iterable[Value], node: ast.AST, *, is_registered: bool = False) -> None:
        for each in values:
            if is_module(each):
                self.happen(events.RepeatedLayer(self.spot(node), each, is_registered))

    def note_appended(self, held: list[Value], value: Value, node: ast.AST) -> None:
        """VALUE becomes an element of HELD in a loop, maybe once more."""
        if self.loops and is_module(value) and any(each is value for each in held):
            self.note_repeated((value,), node)

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


def _entries(items: Value) -> Iterator[tuple[str, Value]]:
    """What a list or dict of modules or parameters holds, its ITEMS, by name."""
    pairs = items.items() if isinstance(items, dict) else enumerate(items) if isinstance(items, list) else ()
    yield from ((str(name), each) for name, each in pairs)


def is_nameless(name: str) -> bool:
    """Whether NAME stands for one that the program puts together as it runs."""
    return name.endswith(_NAMELESS)


def bare(module: Object) -> Object:
    """MODULE without its wrappers."""
    while isinstance(module.state.get("module"), Object):
        module = module.state["module"]
    return module
