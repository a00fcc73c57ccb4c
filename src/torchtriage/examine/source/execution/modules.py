"""Modules: what is registered with them, their mode, and their forward pass."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import ClassVar

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.lore import MODULE, is_loss, lore
from torchtriage.examine.source.execution.tensors import Tensors
from torchtriage.examine.source.execution.values import (
    Arguments,
    External,
    Function,
    Keywords,
    Object,
    Parameter,
    Parameters,
    Spot,
    Tensor,
    Unknown,
    Value,
    truth,
)

ALIKE = 2
"""Layers made by one line that a forward pass goes into: a transformer has dozens that do the same."""
_LISTS = ("torch.nn.ModuleList", "torch.nn.ParameterList")
_DICTS = ("torch.nn.ModuleDict", "torch.nn.ParameterDict")
_SEQUENTIAL = "torch.nn.Sequential"
_KEEPS = ("Identity", "Dropout", "Flatten")
"""Layers behind which probabilities are still probabilities."""


class Modules(Tensors):
    """The modules of an execution. called: every module whose forward pass has begun."""

    called: list[Object]
    layers: dict[Spot | None, tuple[tuple[Object, Value], ...]]
    """By the line that made them, those that the forward pass under way has gone through, with what they gave."""
    wrappers: list[Object]
    _of_modules: ClassVar[dict[str, Callable[..., Value]]] = {}

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
        is_holder = module.made in (MODULE, *lore()["containers"]) or "module" in module.state
        if is_holder or last in lore()["plain_layers"] or is_loss(module.made):
            return ()
        has_bias = truth(module.argument("bias", None, True)) is not False and not last.startswith("Embedding")
        return ("weight", "bias") if module.made.startswith("torch.nn.") and has_bias else ("weight",)

    # making

    def make_module(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Object:
        """A layer, or a container of layers, of torch's own."""
        made = Object("module", name, None, self.spot(node), arguments, keywords)
        if self.under and self.own_parameters(made):
            self.happen(events.LayerMade(self.spot(node), made))
        first = arguments[0] if arguments else None
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
        if isinstance(items, list):
            self.happen(events.ModuleList(self.spot(node), made, tuple(items)))

    def wrapped(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """A model in DistributedDataParallel, torch.compile and the like."""
        inner = arguments[0] if arguments else keywords.get("module", keywords.get("model"))
        if not is_module(inner):
            return inner if isinstance(inner, Function) else Unknown(name)
        if name in lore()["wrappers"]["transparent"]:
            return inner
        made = Object("wrapper", name, None, self.spot(node), arguments, keywords, state={"module": inner})
        self.wrappers.append(made)
        self.happen(events.Made(self.spot(node), made))
        return made

    # mode

    def is_training(self, module: Object) -> bool | None:
        """The mode of MODULE, of a wrapper that of the model inside; None where it is not known."""
        inner = bare(module)
        return None if inner.has_escaped else inner.state.get("training", True)

    def set_mode(self, module: Object, mode: bool | None, node: ast.AST) -> None:
        self.happen(events.ModeChange(self.spot(node), module, mode))
        for each in self.modules(module):
            each.state["training"] = mode

    # forward

    def call_module(self, module: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """MODULE(…): its forward pass."""
        is_outermost = not self.under
        if is_outermost:
            self.layers = {}
        seen = list(self.layers.get(module.spot, ())) if module.cls is not None and module.spot is not None else []
        if len(seen) >= ALIKE and not any(each is module for each, _ in seen):
            self.called += self.modules(module)
            return self._alike(seen.pop()[1], module, arguments, node)
        first, mode, grad = len(self.called), self.is_training(module), self.is_grad
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
            self.happen(events.Forward(self.spot(node), module, mode, grad, self.autocast, within))
        return output

    def _alike(self, output: Value, module: Object, arguments: Arguments, node: ast.AST) -> Value:
        """What MODULE gives, where one of the same line gave OUTPUT."""
        if isinstance(output, Tensor):
            own = frozenset(each for each in self.parameters(module) if each.requires_grad is not False)
            result = self.merged(arguments, node, own if self.is_grad else frozenset())
            result.activation, result.is_open = output.activation, output.is_open
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
        held = self.own_parameters(module).values() if module.made.startswith("torch.nn.") else self.parameters(module)
        own = frozenset(each for each in held if each.requires_grad is not False)
        result = self.merged((*arguments, *keywords.values()), node, own if self.is_grad else frozenset())
        result.is_open |= any(each.requires_grad is None for each in own)
        if own and not self.is_grad:
            result.cut = self.spot(node)
        if last in lore()["activations"]:
            result.activation = lore()["activations"][last]
        elif last in _KEEPS:
            result.activation = next((each.activation for each in arguments if isinstance(each, Tensor)), "")
        if module.made in lore()["recurrent"]:
            return result, (replace(result), replace(result)) if last == "LSTM" else replace(result)
        return (result, replace(result)) if last == "MultiheadAttention" else result

    # methods

    def module_method(self, held: Object, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """HELD.NAME(…); NotImplemented where that is not executed here."""
        items = held.state.get("items")
        if isinstance(items, list) and name in ("append", "extend", "insert"):
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
        for each in self.modules(held):
            each.state["is_moved"] = True
        formats = [each.name for each in (*arguments, *keywords.values()) if isinstance(each, External)]
        is_half = bool({"torch.float16", "torch.half"}.intersection(formats))
        device = arguments[0] if arguments else keywords.get("device")
        self.happen(events.Move(self.spot(node), held, "float16" if is_half else "", device))
        return held

    def _halve(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        self.happen(events.Move(self.spot(node), held, "float16"))
        return held

    def _forward_itself(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        if held in self.under:  # super().forward(x)
            return self.forward(held, arguments, keywords, node)
        self.happen(events.DirectForward(self.spot(node), held))
        return self.call_module(held, arguments, keywords, node)

    def _submodule(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """The module of that dotted name; of a model of a package always the same one for it."""
        name = arguments[0] if arguments else keywords.get("target")
        if not isinstance(name, str):
            return Unknown("a module")
        found = held
        for word in name.split("."):
            inner = dict(self.children(found)).get(word)
            found = inner or found.state.setdefault("parts", {}).setdefault(word, Object("module", spot=found.spot))
        return found

    def _apply(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        for each in self.modules(held):
            self.call(arguments[0] if arguments else Unknown(), (each,), {}, node)
        return held

    def _register(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        if len(arguments) > 1 and isinstance(arguments[0], str):
            held.values[arguments[0]] = arguments[1]
        return None

    def _hook(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        held.state.setdefault("hooks", []).append(arguments[0] if arguments else Unknown())
        return self._hook_handle(held, arguments, keywords, node)

    def _hook_handle(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        handle = Object("handle", "hook", None, self.spot(node))
        self.happen(events.HookMade(self.spot(node), held, handle))
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
    "modules": lambda self, held, *_: self.modules(held),
    "children": lambda self, held, *_: [each for _, each in self.children(held)],
    "named_children": lambda self, held, *_: [*self.children(held)],
    "named_modules": lambda self, held, *_: [(Unknown("a name"), each) for each in self.modules(held)],
    "train": Modules._train,
    "eval": Modules._evaluate_mode,
    "requires_grad_": Modules._require_gradients,
    "to": Modules._move,
    "cuda": Modules._move,
    **dict.fromkeys(
        ("cpu", "float", "bfloat16", "double", "to_empty", "compile", "share_memory"), lambda _, held, *__: held
    ),
    "half": Modules._halve,
    "apply": Modules._apply,
    **dict.fromkeys(("register_buffer", "register_parameter", "add_module", "register_module"), Modules._register),
    "register_forward_hook": Modules._hook,
    "get_submodule": Modules._submodule,
    **dict.fromkeys(
        ("register_forward_pre_hook", "register_full_backward_hook", "register_backward_hook"), Modules._hook_handle
    ),
    "forward": Modules._forward_itself,
    "__call__": Modules.call_module,
    "__init__": Modules._initialize,
    **dict.fromkeys(
        ("no_sync", "join", "buffers", "named_buffers", "gradient_checkpointing_enable"),
        lambda *_: Unknown("a module"),
    ),
}
