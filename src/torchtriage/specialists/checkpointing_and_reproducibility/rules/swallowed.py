"""What the source alone shows about states whose keys do not fit: whether anyone would hear."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, dotted
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.checkpointing_and_reproducibility.rules.places import is_false, is_model

_READERS = symbols().weight_readers
_PARTIAL = re.compile(r"lora|adapter|peft|ema|partial|delta|prompt")


@detector("source/mismatch-swallowed")
def mismatch_swallowed(script: Script) -> Iterator[Sighting]:
    """A state is loaded with strict=False and nobody looks at which keys did not fit."""
    for call in script.calls("load_state_dict"):
        if not is_false(call.argument("strict", 1)) or not _is_dropped(call):
            continue
        if _is_super(call) or call.scope.name == "load_state_dict" or not _is_read(script, call):
            continue
        if not is_model(script, call.receiver, call.scope) or _is_partial(script, call) or _is_compared(script, call):
            continue
        yield script.seen(
            call.node,
            "keys that do not fit are skipped here without a word: when none fits, the model keeps its random weights",
        )


def _is_dropped(call: Call) -> bool:
    """Whether nobody looks at what CALL returns: a statement by itself, or `_ = …`."""
    match call.statement:
        case ast.Expr(value=value) | ast.Assign(targets=[ast.Name(id="_")], value=value):
            return value is call.node
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if (
            value is call.node and name not in call.scope.outside
        ):
            read = (each for each in ast.walk(call.scope.node) if isinstance(each, ast.Name) and each.id == name)
            return call.scope.kind == "function" and not any(isinstance(each.ctx, ast.Load) for each in read)
    return False


def _is_read(script: Script, call: Call) -> bool:
    """Whether the state comes from a file or from a caller; not: put together, or of another model of the process."""
    given = call.argument("state_dict", 0)
    if given is not None and _is_file(script, given, call.scope):
        return True
    return any(origin.is_parameter for origin in script.trace.origins(given, call.scope))


def _is_file(script: Script, node: ast.expr, scope: Scope, deep: int = 0) -> bool:
    for origin in script.trace.origins(node, scope):
        match origin.node:
            case ast.Call(func=called) if script.names.resolve(called, origin.scope) in _READERS:
                return True
            case ast.Subscript(value=inner) | ast.Call(func=ast.Attribute(value=inner, attr="get" | "copy" | "items")):
                if deep < 4 and _is_file(script, inner, origin.scope, deep + 1):
                    return True
            case ast.DictComp(generators=[ast.comprehension(iter=inner)]):
                if deep < 4 and _is_file(script, inner, origin.scope, deep + 1):
                    return True
    return False


def _is_compared(script: Script, call: Call) -> bool:
    """Whether the keys are looked through by hand, or by the model's own load_state_dict."""
    own = script.trace.instance(call.receiver, call.scope) if call.receiver is not None else None
    if own is not None and script.trace.method(own, "load_state_dict") is not None:
        return True
    name = dotted(call.argument("state_dict", 0))
    for each in ast.walk(call.scope.node) if name else ():
        match each:
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[held]) if _is_keys(held, name):
                return True
            case ast.BinOp(op=ast.Sub() | ast.BitXor(), left=one, right=other) if _is_keys(one, name) or _is_keys(
                other, name
            ):
                return True
            case ast.Call(func=ast.Attribute(attr="difference" | "symmetric_difference", value=one), args=given):
                if any(_is_keys(side, name) for side in (one, *given)):
                    return True
    return False


def _is_keys(node: ast.expr, name: str) -> bool:
    """Whether NODE is NAME, or the keys of it: sd, sd.keys(), set(sd)."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="keys"), args=[]):
            return dotted(inner) == name
        case ast.Call(func=ast.Name(id="set" | "list"), args=[inner]):
            return _is_keys(inner, name)
    return dotted(node) == name


def _is_super(call: Call) -> bool:
    return isinstance(call.receiver, ast.Call) and dotted(call.receiver.func) == "super"


def _is_partial(script: Script, call: Call) -> bool:
    """Whether the names say that only a part is meant to be loaded; a backbone's weights fit a backbone."""
    said = f"{call.scope.name} {script.source(call.statement)}".lower()
    whole = "backbone" not in dotted(call.receiver).rpartition(".")[2].lower()
    return bool(_PARTIAL.search(said)) or (whole and "backbone" in said)
