"""Whether an expression is a path: by how it is made, by its annotation, by where options come from."""

from __future__ import annotations

import ast

from torchtriage.examine.source.facts import Scope, dotted
from torchtriage.examine.source.script import Script
from torchtriage.specialists.checkpointing_and_reproducibility.rules.places import default_of

_DEEP = 4
_MAKERS = frozenset(
    {"os.path.join", "builtins.str", "pathlib.Path", "os.path.abspath", "os.path.expanduser", "os.path.realpath"}
    | {"os.environ.get", "os.getenv", "os.fspath", "huggingface_hub.hf_hub_download", "tempfile.mktemp"}
    | {"builtins.input", "hydra.utils.to_absolute_path"}
)
_ONE_OF = frozenset({"builtins.max", "builtins.min", "builtins.next"})
_SEVERAL = frozenset({"builtins.sorted", "builtins.list", "builtins.reversed", "glob.glob", "glob.iglob", "os.listdir"})
_KEPT = frozenset({"format", "with_suffix", "with_name", "joinpath", "resolve", "absolute", "expanduser", "as_posix"})
_NOTES = ("builtins.str", "pathlib.Path", "os.PathLike")


def is_path(script: Script, node: ast.expr | None, scope: Scope, deep: int = 0) -> bool:
    """Whether NODE surely is a path, whichever way it came."""
    origins = script.trace.origins(node, scope) if deep < _DEEP else ()
    nodes = [(each.is_parameter and default_of(script, each)) or each.node for each in origins]
    return bool(origins) and all(_is_one(script, n, o.scope, deep + 1) for n, o in zip(nodes, origins, strict=True))


def _is_one(script: Script, node: ast.expr | None, scope: Scope, deep: int) -> bool:
    match node:
        case ast.Call():
            return _is_made(script, node, scope, deep)
        case ast.BinOp(left=left, op=ast.Div() | ast.Add() | ast.Mod(), right=right):
            return any(is_path(script, side, scope, deep) for side in (left, right))
        case ast.Subscript(value=several):
            parsed = script.names.resolve(several, scope) in ("sys.argv", "os.environ")
            return parsed or _is_list_of(script, several, scope, deep)
        case ast.Attribute(value=base, attr=word) if _is_parsed(script, base, scope) or _is_noted(
            script, base, word, scope
        ):
            return True
        case ast.Name() | ast.Attribute():  # the annotation of a parameter
            return script.names.resolve(node, scope) in _NOTES
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_made(script: Script, node: ast.Call, scope: Scope, deep: int) -> bool:
    name = script.names.resolve(node.func, scope)
    if name in _ONE_OF:
        return any(_is_list_of(script, each, scope, deep) for each in node.args)
    if isinstance(node.func, ast.Attribute) and node.func.attr in _KEPT:
        return is_path(script, node.func.value, scope, deep)
    return name in _MAKERS


def _is_list_of(script: Script, node: ast.expr, scope: Scope, deep: int) -> bool:
    """Whether NODE is a list of paths: what glob finds, sorted or not."""
    for origin in script.trace.origins(node, scope) if deep < _DEEP else ():
        match origin.node:
            case ast.Call(func=ast.Attribute(attr="glob" | "rglob" | "iterdir")):
                return True
            case ast.Call(func=called, args=arguments):
                name = script.names.resolve(called, origin.scope)
                if name.startswith(("glob.", "os.listdir")):
                    return True
                if name in _SEVERAL and any(_is_list_of(script, each, origin.scope, deep + 1) for each in arguments):
                    return True
    return False


def _is_parsed(script: Script, node: ast.expr, scope: Scope) -> bool:
    """Whether NODE holds the options of the command line, which are never a state."""
    calls = [origin.call for origin in script.trace.origins(node, scope)]
    return bool(calls) and all(call is not None and dotted(call.func).endswith(".parse_args") for call in calls)


def _is_noted(script: Script, node: ast.expr, word: str, scope: Scope) -> bool:
    """Whether NODE is an object of a class of this file that declares its field WORD to be a text or a path."""
    hosts = []
    for origin in script.trace.origins(node, scope):
        note = origin.call.func if origin.call is not None else origin.node
        host = script.names.definition(note.id, origin.scope) if isinstance(note, ast.Name) else None
        hosts.append(host)
    return bool(hosts) and all(host is not None and _declares(script, host, word) for host in hosts)


def _declares(script: Script, host: Scope, word: str) -> bool:
    body = host.node.body if isinstance(host.node, ast.ClassDef) else []
    return any(
        isinstance(each, ast.AnnAssign)
        and isinstance(each.target, ast.Name)
        and each.target.id == word
        and script.names.resolve(each.annotation, host) in _NOTES
        for each in body
    )
