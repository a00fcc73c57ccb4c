"""Modules: their mode, their forward pass, and their methods."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.arithmetic import device_of, format_of, names_device
from torchtriage.examine.source.execution.autograd import Parameter, Tensor
from torchtriage.examine.source.execution.graphs import tensors_in
from torchtriage.examine.source.execution.lore import FUNCTION, is_loss, kind_of, lore
from torchtriage.examine.source.execution.registration import SEQUENTIAL, Registration, bare
from torchtriage.examine.source.execution.values import (
    Arguments,
    Class,
    Function,
    Keywords,
    Object,
    Parameters,
    Spot,
    Unknown,
    Value,
    is_module,
    truth,
)
from torchtriage.examine.source.names import table
from torchtriage.examine.source.torch_api.symbols import symbols

ALIKE = 2
"""Layers made by one line that a forward pass goes into: a transformer has dozens that do the same."""
_KEEPS = ("Identity", "Dropout", "Flatten")
"""Layers behind which probabilities are still probabilities."""


class Modules(Registration):
    """The modules of an execution. called: every module whose forward pass has begun."""

    called: list[Object]
    layers: dict[Spot | None, tuple[tuple[Object, Value], ...]]
    """By the line that made them, those that the forward pass under way has gone through, with what they gave."""
    outermost: Spot | None
    """Where the outermost forward pass under way began, where that records no graph."""
    began: int
    """The step at which the outermost forward pass under way began."""
    under_call: list[tuple[str, ast.AST]]
    _of_modules: ClassVar[dict[str, Callable[..., Value]]] = {}

    @abstractmethod
    def bound(self, value: Object, found: Value) -> Value:
        """FOUND, which the class of VALUE defines, as an attribute of that."""

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
            self.happen(events.LayerMade(Spot(path, node), module, user, self.is_training(user)))

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
        if module.made == SEQUENTIAL and isinstance(items, list | dict):
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
        named = [value for name, value in keywords.items() if name != "**"]  # inputs of a tokenizer are no tensor
        result = self.merged((*arguments, *named), node, own if self.is_grad else frozenset())
        result.is_open |= self.is_grad and "**" in keywords
        result.is_open |= any(each.requires_grad is None for each in own)
        result.is_output = not module.made.startswith("torch.nn.")
        if own and not self.is_grad:
            result.cut = self.cut_spot(node)
        result.layer = last if last.startswith(("Linear", "Conv", "Lazy")) else ""
        result.needed = last.lower() if module.made in symbols().saving_layers else ""
        if last in lore()["activations"]:
            is_of_list = len(self.under) > 1 and self.under[-2].made == SEQUENTIAL
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
        is_by_name = getattr(getattr(node, "func", None), "attr", "") == "cuda"
        is_cuda = is_by_name or device_of((device,)) == "cuda" or names_device((device,))
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

    def forward_itself(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """HELD.forward(…), which passes by the hooks of HELD."""
        if held in self.under:  # super().forward(x)
            return self.forward(held, arguments, keywords, node)
        if names_forward(node):
            self.happen(events.DirectForward(self.spot(node), held))
        return self.call_module(held, arguments, keywords, node)

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

    def _hook(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        held.state.setdefault("hooks", []).append(arguments[0] if arguments else Unknown())
        return self._hook_handle(held, arguments, keywords, node)

    def _hook_handle(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        handle = Object("handle", "hook", None, self.spot(node))
        hook = arguments[0] if arguments else None
        self.happen(events.HookMade(self.spot(node), held, handle, hook, is_in_forward=bool(self.under)))
        return handle


def names_forward(node: ast.AST) -> bool:
    """Whether NODE calls something.forward(…): not self.forward(x) in predict(), which has no hooks to lose."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "forward":
        return False
    held = node.func.value.func if isinstance(node.func.value, ast.Call) else node.func.value
    return not isinstance(held, ast.Name) or held.id not in ("self", "super")


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
        ("register_buffer", "register_parameter", "add_module", "register_module", "__setattr__"), Modules.register
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
    "forward": Modules.forward_itself,
    "__call__": Modules.call_module,
    "__init__": Modules._initialize,
    **dict.fromkeys(
        ("join", "buffers", "named_buffers", "gradient_checkpointing_enable"),
        lambda *_: Unknown("a module"),
    ),
}
