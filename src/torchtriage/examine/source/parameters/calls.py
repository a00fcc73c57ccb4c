"""What a call in the source of a module comes to: torch's layers, the files' own code, a few builtins."""

from __future__ import annotations

import ast
from copy import deepcopy
from dataclasses import replace
from typing import Any

from torchtriage.examine.source.facts import dotted
from torchtriage.examine.source.parameters.arithmetic import MANY
from torchtriage.examine.source.parameters.assembly import PLAIN, Lost, Made, Part, Value, Weight, inside, is_cut
from torchtriage.examine.source.parameters.evaluate import STEPS, Evaluation, Frame
from torchtriage.examine.source.parameters.layers import CONTAINERS, Given, layer
from torchtriage.examine.source.torch_api.symbols import symbols

# Methods of a module that give the module itself and register nothing.
_SAME = symbols().module_self
# Functions of torch that change what a module registers, or give a module.
_CHANGING = (
    "torch.load",
    "torch.compile",
    "torch.fx",
    "torch.export",
    "torch.package",
    "torch.nn.utils",
    "torch.nn.parallel",
    "torch.ao",
    "torch.quantization",
    "torch.hub",
    "torch.jit",
)
_LOADED = ("torchvision.models", "timm", "transformers", "segmentation_models_pytorch", "open_clip", "monai")
# Modules whose functions give no module of torch.
_PLAIN = frozenset(
    {"argparse", "collections", "dataclasses", "datetime", "enum", "inspect", "json", "logging", "math", "numpy", "os"}
    | {"pathlib", "random", "re", "string", "sys", "threading", "time", "typing", "uuid", "warnings"}
)


class Calls(Evaluation):
    """Calls; what the body of a function does is left to the builder."""

    def invoke(self, made: Made, given: Given, receiver: Part | None, owner: Made | None = None) -> Value:
        raise NotImplementedError

    def instantiate(self, made: Made, given: Given, node: ast.AST, frame: Frame) -> Value:
        raise NotImplementedError

    def method(self, made: Made, name: str) -> tuple[Made, Made] | None:
        """The method NAME of the class MADE, and the class that it stands in."""
        raise NotImplementedError

    def inherited(self, frame: Frame, name: str, given: Given, node: ast.Call) -> Value:
        """What super().NAME(…) does."""
        raise NotImplementedError

    def call(self, node: ast.Call, frame: Frame) -> Value:
        given = self._given(node, frame)
        match node.func:
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name):
                return self.inherited(frame, name, given, node)
            case ast.Attribute(value=value, attr=name) if not self._is_import(node.func, frame):
                host = self.value(value, frame)
                known = host is not PLAIN or not frame.usage.is_setting(dotted(node.func))
                return self._on(host, name, given, node, frame) if known else self._unknown(node, given, frame)
        made = self.value(node.func, frame)
        if not isinstance(made, Made):
            return self._unknown(node, given, frame)
        if made.scope is None:
            return self._imported(made.name, given, node, frame)
        if made.scope.kind == "class":
            return self.instantiate(made, given, node, frame)
        return self.invoke(made, given, None)

    def _is_import(self, node: ast.expr, frame: Frame) -> bool:
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        local = isinstance(root, ast.Name) and root.id in frame.variables
        return not local and bool(frame.script.names.resolve(node, frame.scope))

    def _given(self, node: ast.Call, frame: Frame) -> Given:
        positional, keywords, is_open = list(self.spread(node.args, frame)), {}, False
        for keyword in node.keywords:
            value = self.value(keyword.value, frame)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif isinstance(value, dict):
                keywords.update(value)
            else:
                is_open = True
        starred = any(isinstance(each, ast.Starred) for each in node.args)
        lost = starred and any(isinstance(each, Lost) for each in positional)
        return Given(positional, keywords, self.lost(node, frame).why, is_open=is_open or lost)

    def _unknown(self, node: ast.Call, given: Given, frame: Frame, *, module: bool = False) -> Lost:
        """A call of what is not known; it may change the modules that it is given."""
        lost = self.lost(node, frame, module=module)
        for value in (*given.positional, *given.keywords.values()):
            if isinstance(value, Part):
                value.own = {**value.own, "?": lost} if value is frame.receiver else {"?": lost}
        return lost

    def _imported(self, name: str, given: Given, node: ast.Call, frame: Frame) -> Value:
        """A call of the import or builtin NAME."""
        head, _, last = name.rpartition(".")
        if name in ("torch.nn.Parameter", "torch.nn.parameter.Parameter"):
            return Weight()
        if head == "torch.nn" and last in CONTAINERS:
            return self.filled(Part(kind=last), given)
        if head == "torch.nn" and last[:1].isupper():
            return layer(last, given) or self.lost(node, frame, module=True)
        if head == "builtins" or name in ("collections.OrderedDict", "copy.deepcopy", "copy.copy"):
            return self._builtin(last, given, node, frame)
        if (name.startswith("torch.") and not name.startswith(_CHANGING)) or name.partition(".")[0] in _PLAIN:
            return PLAIN
        return self._unknown(node, given, frame, module=last[:1].isupper() or name.startswith(_LOADED))

    def filled(self, part: Part, given: Given) -> Part:
        """PART, a container that is made with GIVEN."""
        kind = part.kind
        items: Value = next(iter(given.positional), [])
        pairs = isinstance(items, list) and all(isinstance(each, tuple) for each in items)
        if kind == "Sequential" and not (len(given.positional) == 1 and isinstance(items, dict)):
            items = given.positional
        elif kind.endswith("Dict") and isinstance(items, list) and pairs:
            items = dict(items)
        if kind == "ParameterDict" and isinstance(items, dict) and [*items] != sorted(items):
            items = None  # torch sorts a dict, and leaves an OrderedDict as it is
        if isinstance(items, dict):
            for name, value in items.items():
                part.put(str(name), self._module(value, kind, given))
        elif (known := self.items(items, cut=True)) is not None and not isinstance(items, str):
            for value in known:
                part.add(self._module(value, kind, given))
        else:
            part.lose(Lost(given.why, module=True))
        if given.is_open:
            part.lose(Lost(given.why, module=True))
        return part

    @staticmethod
    def _module(value: Value, kind: str, given: Given) -> Value:
        """VALUE as a container of KIND holds it."""
        if kind.startswith("Parameter"):
            tensor = value is PLAIN or isinstance(value, Weight)  # it makes a parameter of a tensor
            return (Weight() if value is PLAIN else value) if tensor else Lost(given.why)
        if isinstance(value, Lost):
            return Lost(value.why, module=True)
        return value if isinstance(value, Part) or value is None else Lost(given.why, module=True)

    def _on(self, value: Value, name: str, given: Given, node: ast.Call, frame: Frame) -> Value:
        """The method NAME of VALUE."""
        if isinstance(value, Part):
            return self._on_module(value, name, given, node, frame)
        if isinstance(value, list | dict):
            return self._on_plain(value, name, given, node, frame)
        if isinstance(value, Made) and value.scope is not None:
            found = self.method(value, name)
            if found is not None and name == "__init__" and given.positional:
                inner = Given(given.positional[1:], given.keywords, given.why, is_open=given.is_open)
                return self.invoke(found[0], inner, given.positional[0])
        if isinstance(value, Lost | Made):
            return self._unknown(node, given, frame, module=isinstance(value, Lost) and value.module and name in _SAME)
        return value if isinstance(value, Weight) and name == "requires_grad_" else PLAIN

    def _on_module(self, part: Part, name: str, given: Given, node: ast.Call, frame: Frame) -> Value:
        if part.made is not None and (found := self.method(part.made, name)) is not None:
            return self.invoke(found[0], given, part)
        if name in _SAME:
            return part
        if name in ("register_parameter", "add_module", "register_module"):
            key = given.get(("name",), "name", None)
            word = "param" if name == "register_parameter" else "module"
            value = given.raw(("name", word), word, None)
            if isinstance(key, str) and not isinstance(value, Lost):
                self._register(part, name, key, value)
            else:
                part.lose(self.lost(node, frame, module=name.endswith("_module")))
            return None
        if part.kind in CONTAINERS and name in ("append", "extend", "insert", "update", "pop"):
            return self._grow(part, name, given, node, frame)
        if name in ("keys", "values", "items") and part.kind == "ModuleDict":
            return {"keys": list(part.parts), "values": [*part.parts.values()]}.get(name, [*part.parts.items()])
        return PLAIN

    @staticmethod
    def _register(part: Part, name: str, key: str, value: Value) -> None:
        if value is None and name == "register_parameter":
            part.own[key] = None
        elif value is None and name.endswith("_module"):
            part.parts[key] = None
        else:
            part.put(key, value)

    def _grow(self, part: Part, name: str, given: Given, node: ast.Call, frame: Frame) -> Value:
        first = next(iter(given.positional), None)
        items = [first] if name == "append" else self.items(first, cut=True) if name == "extend" else None
        if name == "update" and isinstance(first, dict):
            for key, value in first.items():
                part.put(str(key), self._module(value, part.kind, given))
        elif items is None or name in ("insert", "pop"):
            part.lose(self.lost(node, frame, module=True))
        else:
            for value in items:
                part.add(self._module(value, part.kind, given))
        return part

    def _on_plain(self, value: Any, name: str, given: Given, node: ast.Call, frame: Frame) -> Value:
        first = next(iter(given.positional), None)
        if isinstance(value, list):
            items = [first] if name == "append" else self.items(first, cut=True) if name == "extend" else None
            if name == "insert" and isinstance(first, int) and len(given.positional) == 2:
                value.insert(first, given.positional[1])
            elif items is not None:
                value.extend(items)
            elif name not in ("index", "count", "copy"):
                value[:] = [replace(self.lost(node, frame, module=True), rest=True)]
            return None if name in ("append", "extend", "insert") else self.lost(node, frame)
        known = {"keys": list(value), "values": list(value.values()), "items": list(value.items())}
        if is_cut(value):
            return self.lost(node, frame)
        if name == "get" and isinstance(first, str | int):
            return value.get(first, given.positional[1] if len(given.positional) > 1 else None)
        return known[name] if name in known else self._unknown(node, given, frame)

    def _builtin(self, name: str, given: Given, node: ast.Call, frame: Frame) -> Value:
        if name == "deepcopy" and given.positional:
            self.steps += 10 + len(inside(given.positional[0]))
            return deepcopy(given.positional[0]) if self.steps < STEPS else self.lost(node, frame)
        if name == "setattr" and len(given.positional) == 3 and isinstance(given.positional[0], Part):
            part, key, value = given.positional
            part.put(key, value) if isinstance(key, str) else part.lose(self.lost(node, frame))
            return None
        if name == "getattr" and len(given.positional) > 1 and isinstance(given.positional[1], str):
            return self.attribute(given.positional[0], given.positional[1], node, frame)
        if name == "range":
            whole = all(type(each) is int for each in given.positional) and given.positional
            return range(*given.positional) if whole else PLAIN
        items = [self.items(each) for each in given.positional]
        if None in items and name not in ("int", "max", "min", "bool", "round"):
            return (
                PLAIN if name in ("len", "str", "float", "isinstance", "print", "hasattr") else self.lost(node, frame)
            )
        return self._listed(name, items, given, node, frame)

    def _listed(self, name: str, items: list[Any], given: Given, node: ast.Call, frame: Frame) -> Value:
        """Builtins over things whose items are known."""
        first = items[0] if items else []
        made: dict[str, Any] = {
            "list": lambda: list(first),
            "tuple": lambda: tuple(first),
            "dict": lambda: {**(dict(given.positional[0]) if items else {}), **given.keywords},
            "OrderedDict": lambda: {**(dict(given.positional[0]) if items else {}), **given.keywords},
            "enumerate": lambda: [(place, each) for place, each in enumerate(first)],
            "zip": lambda: list(zip(*items, strict=False)),
            "reversed": lambda: first[::-1],
            "len": lambda: len(first),
            "int": lambda: int(given.positional[0]),
            "max": lambda: max(*given.positional),
            "min": lambda: min(*given.positional),
            "bool": lambda: bool(given.positional[0]),
        }
        if name not in made or any(each is PLAIN or isinstance(each, Lost) for each in given.positional):
            return PLAIN
        try:
            return made[name]()
        except (TypeError, ValueError):
            return self.lost(node, frame) if len(items) < MANY else PLAIN
