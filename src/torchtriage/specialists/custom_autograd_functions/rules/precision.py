"""Which precision a tensor surely has where it is used: followed to what made it."""

from __future__ import annotations

import ast

from torchtriage.examine.source.facts import dotted
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.families import VALUE_METHODS
from torchtriage.examine.source.torch_api.operators import Dtype, Home, names
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.custom_autograd_functions.rules.parts import DEEP, Part, Parts, made

_MANY = 400

# What check of gradients cares for: enough digits, too few, none.
_KINDS: dict[Dtype, str] = {
    "float64": "double",
    "complex128": "double",
    **dict.fromkeys(("float32", "float16", "bfloat16"), "single"),
    **dict.fromkeys(("int64", "int32", "int16", "int8", "uint8", "bool"), "whole"),
}
# Methods that keep the precision of a tensor.
_KEEPING = (
    names(home="method", dtype="same") | names(home="method", dtype="float") | {"retain_grad", "requires_grad"}
) - VALUE_METHODS
_CASTS = {name: kind for dtype, kind in _KINDS.items() for name in names(home="method", dtype=dtype, writes="-")}
_MAKERS = frozenset(f"torch.{name}" for name in names(home="torch", trait="factory", dtype="default") | {"normal"})
_WHOLE = frozenset(f"torch.{name}" for name in names(home="torch", dtype="int64", writes="-"))
_TYPES = {name: _KINDS[dtype] for name, dtype in symbols().tensor_classes.items() if dtype in _KINDS}
_NO_TENSOR = (ast.Constant, ast.Lambda, ast.JoinedStr, ast.Dict, ast.Compare)


_HOMES: dict[str, Home] = {
    "torch": "torch",
    "torch.nn.functional": "functional",
    "torch.fft": "fft",
    "torch.special": "special",
}


def _gives_tensor(name: str) -> bool:
    """Whether the function with that real NAME gives one tensor: torch.exp, not torch.split."""
    home, _, word = name.rpartition(".")
    if name in symbols().tensor_classes or name == "torch.where":  # which gives indices for a condition alone
        return True
    return home in _HOMES and word in names(home=_HOMES[home], returns="tensor")


class Precision(Parts):
    """Whether an expression surely is "single" or "double", "whole" numbers, or "none" (no tensor); "" where unsure.

    asks: whether what was followed asks for a gradient where it was made.
    """

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.asks, self.looks = False, 0

    def of(self, part: Part, deep: int = 0) -> str:
        self.looks += 1
        if deep > DEEP or self.looks > _MANY:
            return ""
        match part.node:
            case ast.Call():
                return self._called(part.node, part, deep + 1)
            case ast.BinOp(left=left, right=right):
                kinds = {self.of(Part(each, part.scope, part.at), deep + 1) for each in (left, right)} - {"none"}
                return _agreed(kinds) if kinds else "none"
            case ast.UnaryOp(operand=operand):
                return self.of(Part(operand, part.scope, part.at), deep + 1)
            case ast.Name() | ast.Attribute() | ast.Subscript():
                return _agreed({self.of(each, deep + 1) for each in self.ways(part, deep)})
        return "none" if isinstance(part.node, _NO_TENSOR) else ""

    def _called(self, node: ast.Call, part: Part, deep: int) -> str:
        name = self.script.names.resolve(node.func, part.scope)
        keywords = self._keywords(node, part, deep)
        if keywords is None:
            return ""
        self.asks = self.asks or _is_true(keywords.get("requires_grad"))
        if "dtype" in keywords:
            return self._dtype(keywords["dtype"], deep)
        if name:
            return self._of_torch(name, node, part, deep)
        helper = self.script.trace.definition(node.func, part.scope)
        if helper is not None:
            ends = list(made(helper)) if helper.kind == "function" else []
            return _agreed({self.of(each, deep) if each is not None else "" for each in ends})
        return self._method(node.func, node, part, deep) if isinstance(node.func, ast.Attribute) else ""

    def _of_torch(self, name: str, node: ast.Call, part: Part, deep: int) -> str:
        word, kinds = name.rpartition(".")[2], set[str]()
        if name.startswith("torch.") and name in _TYPES:
            kinds = {_TYPES[name]}
        elif name in _MAKERS or (name == "torch.tensor" and _holds_float(node)):
            kinds = {"single"}
        elif name in _WHOLE:
            kinds = {"whole"}
        elif _gives_tensor(name) or name in ("torch.nn.Parameter", "torch.autograd.Variable"):
            self.asks = self.asks or word == "Parameter"
            kinds = {self.of(Part(each, part.scope, part.at), deep) for each in node.args} - {"none"}
        return _agreed(kinds)

    def _method(self, method: ast.Attribute, node: ast.Call, part: Part, deep: int) -> str:
        if method.attr == "requires_grad_" and not (node.args and not _is_true(Part(node.args[0], part.scope, None))):
            self.asks = True
        whole = self.of(Part(method.value, part.scope, part.at), deep)  # also to see whether it asks for a gradient
        if method.attr in _CASTS:
            return _CASTS[method.attr]
        keeps = method.attr in _KEEPING
        if method.attr in ("to", "type"):
            kinds = [self._dtype(Part(each, part.scope, part.at), deep) for each in node.args]
            said = next((kind for kind in kinds if kind), "")
            if said or not all(_is_device(each) for each in node.args):
                return said
            keeps = bool(node.args) or any(each.arg == "device" for each in node.keywords)
        return whole if keeps else ""

    def _keywords(self, node: ast.Call, part: Part, deep: int) -> dict[str, Part] | None:
        """The keywords of NODE with those of **options; None where these are not seen."""
        found: dict[str, Part] = {}
        for keyword in node.keywords:
            if keyword.arg is not None:
                found[keyword.arg] = Part(keyword.value, part.scope, part.at)
                continue
            ways = self.ways(Part(keyword.value, part.scope, part.at), deep)
            match ways[0] if len(ways) == 1 else None:
                case Part(node=ast.Dict(keys=keys, values=values)) as options:
                    words = [each.value if isinstance(each, ast.Constant) else None for each in keys]
                    found |= {str(k): Part(v, options.scope, options.at) for k, v in zip(words, values, strict=True)}
                case Part(node=ast.Call(func=ast.Name(id="dict"), args=[], keywords=inner)) as options:
                    found |= {str(each.arg): Part(each.value, options.scope, options.at) for each in inner}
                case _:
                    return None
        return found

    def _dtype(self, part: Part, deep: int) -> str:
        name = self.script.names.resolve(part.node, part.scope)
        if name in symbols().dtypes:
            return next((kind for dtype, kind in _KINDS.items() if dtype == symbols().dtypes[name]), "")
        if name or not isinstance(part.node, ast.Name | ast.Attribute | ast.Subscript) or deep > DEEP:
            return _TYPES.get(name, "")
        kind = _agreed({self._dtype(each, deep + 1) for each in self.ways(part, deep)})
        if (
            not kind and isinstance(part.node, ast.Attribute) and part.node.attr == "dtype"
        ):  # the type of another tensor
            return self.of(Part(part.node.value, part.scope, part.at), deep + 1)
        return kind


def _agreed(kinds: set[str]) -> str:
    return kinds.pop() if len(kinds) == 1 else ""


def _is_true(part: Part | None) -> bool:
    return part is not None and isinstance(part.node, ast.Constant) and part.node.value is True


def _is_device(node: ast.expr) -> bool:
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    last = node.func if isinstance(node, ast.Call) else node
    return is_text or dotted(last).rpartition(".")[2].lower() in ("device", "dev", "cuda")


def _holds_float(node: ast.Call) -> bool:
    inside = ast.walk(node.args[0]) if node.args else ()
    parts = list(inside)
    plain = all(isinstance(e, ast.Constant | ast.List | ast.Tuple | ast.UnaryOp | ast.USub | ast.Load) for e in parts)
    return plain and any(isinstance(each, ast.Constant) and isinstance(each.value, float) for each in parts)
