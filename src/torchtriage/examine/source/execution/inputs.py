"""What a forward pass is given: tensors, where its parameters are used or annotated as such."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.examine.source.execution.autograd import Tensor
from torchtriage.examine.source.execution.lore import of_tensors
from torchtriage.examine.source.execution.values import Class, Function, Spot, Unknown, Value
from torchtriage.examine.source.nodes import once

_PLAIN = frozenset({"int", "float", "bool", "str", "tuple", "list", "dict", "Size", "dtype", "device"}) | frozenset(
    {"Tuple", "List", "Dict", "Sequence", "Callable"}
)
"""Annotations of what is no tensor."""
_OF_MODELS = frozenset({"parallel", "utils", "jit", "onnx", "export", "fx", "compile", "optim", "distributed", "save"})
"""Parts of torch whose functions take models, or anything: torch.nn.parallel.data_parallel(model, batch)."""
_NUMBER = re.compile(r"\b(int|float|bool)\b")


def tensors(function: Function, skip: int = 1, *, has_options: bool = False) -> dict[str, Value]:
    """For each parameter of FUNCTION, a forward pass, that has no default: a tensor where it is used as one.

    SKIP: of the first ones, self or the context. has_options: a mask and the like, which are None by default, too.
    """
    wanted = function.node.args
    names = [*wanted.posonlyargs, *wanted.args][skip:]
    late = len(names) - len(function.defaults)
    optional = [each for each, value in zip(names[late:], function.defaults, strict=True) if value is None]
    asked = names_compared_with_none(function.node)
    filled = [each for each in optional if each.arg in asked or is_of_tensors(each.annotation)] if has_options else []
    given = [*names[:late], *filled]
    return {each.arg: _input(each, function) for each in given}


def _input(wanted: ast.arg, function: Function) -> Value:
    """What is given for WANTED, a parameter of FUNCTION."""
    is_plain = _is_plain(wanted.annotation, function)
    if is_of_tensors(wanted.annotation) or (wanted.arg in _used_as_tensors(function.node) and not is_plain):
        return Tensor(Spot(function.frame.file.path, wanted), is_open=True, is_entry=True)
    return Unknown(wanted.arg, is_plain=is_plain)


@once
def names_compared_with_none(node: ast.AST) -> set[str]:
    """The names of which NODE asks whether they are None."""
    found: set[str] = set()
    for each in ast.walk(node):
        match each:
            case ast.Compare(left=ast.Name(id=name), comparators=[ast.Constant(value=None)]):
                found.add(name)
            case ast.If(test=ast.Name(id=name)) | ast.IfExp(test=ast.Name(id=name)):
                found.add(name)
            case ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name)):
                found.add(name)
    return found


@once
def _used_as_tensors(node: ast.AST) -> frozenset[str]:
    """The names that NODE uses as only tensors can be: x.unsqueeze(1), a @ b, F.relu(x), self.layer(x), saved ones."""
    return frozenset(_tensors_by_use(node))


def _tensors_by_use(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.BinOp) and isinstance(each.op, ast.MatMult):
            yield from (side.id for side in (each.left, each.right) if isinstance(side, ast.Name))
        if not isinstance(each, ast.Call):
            continue
        called = each.func
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.attr in of_tensors():
            yield called.value.id
        words = ast.unparse(called).split(".") if not isinstance(getattr(called, "value", None), ast.Call) else [""]
        is_of_torch = words[0] in ("torch", "F") and not _OF_MODELS & {*words}
        if words[-1] == "save_for_backward" or is_of_torch or words[:2] == ["self", words[-1]]:
            given = each.args if words[-1] == "save_for_backward" else each.args[:1]
            for one in given:
                parts = one.elts if isinstance(one, ast.List | ast.Tuple) else [one]
                yield from (part.id for part in parts if isinstance(part, ast.Name))


def is_of_tensors(annotation: ast.expr | None) -> bool:
    """Whether ANNOTATION is that of tensors, and of nothing else: not Tensor | int."""
    text = ast.unparse(annotation) if annotation is not None else ""
    return "Tensor" in text and _NUMBER.search(text) is None


def _is_plain(annotation: ast.expr | None, function: Function) -> bool:
    """Whether ANNOTATION, of a parameter of FUNCTION, says that it is no tensor: a number, a text, some settings."""
    whole = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    if whole is None or is_of_tensors(annotation):
        return False
    word = ast.unparse(whole).rpartition(".")[2]
    home = function.frame.home(word)
    if home is None:
        return word in _PLAIN
    own = home[word]
    is_own = isinstance(own, Class) and own.is_known
    return word in _PLAIN or (is_own and not any(name.startswith("torch") for name in own.externals))
