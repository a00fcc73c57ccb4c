"""What the source alone shows about numbers that are not numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Scope, Store, dotted
from torchtriage.examine.source.script import Script

_SIGN = re.compile(rb"[=!]=")
_NAN = re.compile(rb"(?i)(?<![a-z_])nan(?![a-z_(])")
_NAMES = frozenset({"math.nan", "numpy.nan", "numpy.NaN", "numpy.NAN", "torch.nan"})


@detector("source/compared-with-nan")
def compared_with_nan(script: Script) -> Iterator[Sighting]:
    """Something is compared with NaN by == or !=: that never tells whether it is NaN."""
    data = script.text.data
    if b"nan" not in data and b"NaN" not in data and b"NAN" not in data:
        return
    if not _NAN.search(data) or not _is_about_torch(script):
        return
    module = script.facts.scopes[0]
    for node in ast.walk(module.node) if _SIGN.search(data) else ():
        match node:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() as sign], comparators=[right]):
                sides = [_is_nan(script, left, module), _is_nan(script, right, module)]
                if sum(sides) == 1:
                    other, nan = (right, left) if sides[0] else (left, right)
                    fact = _never(equal=isinstance(sign, ast.Eq))
                    yield script.seen(node, fact, edits=_asked(script, node, other, nan))
    for call in script.calls("eq", "ne", "equal", "not_equal"):
        if any(_is_nan(script, each, module) for each in call.node.args):
            yield script.seen(call.node, _never(equal=call.tail in ("eq", "equal")))


def _never(*, equal: bool) -> str:
    return f"this is always {not equal}: NaN is not equal to anything, itself included"


_DEEP = 6


def _is_about_torch(script: Script) -> bool:
    return any(name.partition(".")[0] == "torch" for name in script.facts.imports)


def _is_nan(script: Script, node: ast.expr, module: Scope, deep: int = 0) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str(word))]):
            return word.strip().lower().lstrip("+-") == "nan"
        case ast.Call(func=called, args=[inner, *_]):
            made = script.names.resolve(called, module)
            wraps = made in ("torch.tensor", "numpy.float32", "numpy.float64") or dotted(called).endswith(".new_tensor")
            return wraps and _is_nan(script, inner, module, deep + 1)
        case ast.UnaryOp(operand=inner):
            return _is_nan(script, inner, module, deep + 1)
        case ast.Name(id=name):  # NAN = float("nan")
            stores = [store for scope in script.facts.scopes for store in scope.stores.get(name, ())]
            if stores and (stores[0].how != "import"):
                return _all_nan(script, stores, module, deep)
        case ast.Attribute(value=ast.Name(id=name), attr=word) if not script.names.resolve(node, module):
            held = (each.attributes.get(word, []) + each.stores.get(word, []) for each in script.classes)
            return _all_nan(script, [store for stores in held for store in stores], module, deep)
    return script.names.resolve(node, module) in _NAMES if isinstance(node, ast.Name | ast.Attribute) else False


def _all_nan(script: Script, stores: list[Store], module: Scope, deep: int) -> bool:
    """Whether every one of STORES, all those to one name, gives it NaN."""
    # attributes may be given to each other
    return (deep <= _DEEP and bool(stores)) and all(
        store.how == "assign"
        and store.index is None
        and store.value is not None
        and not isinstance(store.value, ast.Name)
        and dotted(store.value).rpartition(".")[2] != store.name
        and _is_nan(script, store.value, module, deep + 1)
        for store in stores
    )


def _asked(script: Script, node: ast.Compare, other: ast.expr, nan: ast.expr) -> tuple[Edit, ...]:
    """The edit that asks isnan, of the module that the NaN is taken from."""
    if not isinstance(nan, ast.Attribute) or node.lineno != node.end_lineno:
        return ()
    asked = f"{dotted(nan.value)}.isnan({script.source(other)})"
    plain = script.names.resolve(nan, script.facts.scopes[0]) == "math.nan"
    denied = "" if isinstance(node.ops[0], ast.Eq) else ("not " if plain else "~")
    return script.replaced("ask-isnan", node, denied + asked)
