"""What the source alone shows about the arguments of a DataLoader."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Store, dotted
from torchtriage.examine.source.script import Script
from torchtriage.specialists.performance_profiling.rules.contradictions import MORE, Given

_LOADER = "torch.utils.data.DataLoader"
_POSITIONS = ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory")
_DEEP = 8


@detector("source/loader-args-invalid")
def loader_args_invalid(script: Script) -> Iterator[Sighting]:
    """A DataLoader is given arguments that exclude each other: it raises ValueError."""
    for call, given in (*((each, _given(script, each)) for each in script.named(_LOADER)), *_partial(script)):
        if given is None or _is_meant(call):
            continue
        why = Given(script, call.scope, given).contradiction()
        if why is not None and not _is_tested(call, given):
            yield script.seen(call.node, f"{why}: DataLoader raises ValueError")


def _partial(script: Script) -> Iterator[tuple[Call, dict[str, ast.expr] | None]]:
    """The calls of make in make = partial(DataLoader, …), with what both give."""
    for made in script.named("functools.partial"):
        if not made.node.args or script.names.resolve(made.node.args[0], made.scope) != _LOADER:
            continue
        first = _given(script, made, 1)
        names = [store.name for store in made.scope.actions if isinstance(store, Store) and store.value is made.node]
        uses = [call for name in names for call in script.calls(name.rpartition(".")[2]) if call.scope is not made.scope
                or call.order > made.order]  # fmt: skip
        for call in uses:
            then = _given(script, call)
            yield call, None if first is None or then is None else {**first, **then}


def _is_meant(call: Call) -> bool:
    """Whether the error is expected, as by pytest.raises, or caught."""
    for block in call.path:
        if block.kind == "try" and getattr(block.owner, "handlers", []):
            return True
        if block.kind == "with" and isinstance(block.owner, ast.With | ast.AsyncWith):
            contexts = [item.context_expr for item in block.owner.items]
            if any(isinstance(each, ast.Call) and "aises" in dotted(each.func) for each in contexts):
                return True
    return False


def _given(script: Script, call: Call, skip: int = 0) -> dict[str, ast.expr] | None:
    """What CALL gives by name, **options with it; None where *args may bring what is not written here.

    SKIP: as many of its first arguments are not the loader's. An entry MORE stands for **kwargs out of sight: they
    may bring what is not given here, and never take anything back.
    """
    args = call.node.args[skip:]
    if any(isinstance(each, ast.Starred) for each in args) or len(args) > len(_POSITIONS):
        return None
    given: dict[str, ast.expr] = dict(zip(_POSITIONS, args, strict=False))
    for keyword in call.node.keywords:
        more = {keyword.arg: keyword.value} if keyword.arg else _options(script, keyword.value, call)
        given.update({MORE: keyword.value} if more is None else more)
    return given


def _is_tested(call: Call, given: dict[str, ast.expr]) -> bool:
    """Whether a condition around CALL, or around what gives it a value, asks for a name that is given."""
    names = {name for value in given.values() for name in _words(value)}
    places = [call.node, *(store.node for name in names for store in call.scope.stores.get(name, ()))]
    lines = [getattr(place, "lineno", 0) for place in places]
    return any(
        names & set(_words(node.test))
        for node in ast.walk(call.scope.node)
        if isinstance(node, ast.IfExp)
        or (isinstance(node, ast.If) and any(node.lineno <= line <= (node.end_lineno or 0) for line in lines))
    )


def _words(node: ast.expr) -> Iterator[str]:
    """The names in NODE, with all their attributes."""
    inner = {id(each.value) for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    whole = (each for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute) and id(each) not in inner)
    yield from filter(None, map(dotted, whole))


def _options(script: Script, node: ast.expr, call: Call, deep: int = 0) -> dict[str, ast.expr] | None:
    """The entries of a dictionary that the file writes out, and changes in plain sight only."""
    match node if deep < _DEEP else None:
        case ast.Dict(keys=keys, values=values):
            return _merged(script, list(zip(keys, values, strict=True)), call, deep)
        case ast.Call(func=ast.Name(id="dict"), args=args, keywords=words) if len(args) < 2:
            more = [(ast.Constant(each.arg) if each.arg else None, each.value) for each in words]
            return _merged(script, [*((None, each) for each in args), *more], call, deep)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _merged(script, [(None, left), (None, right)], call, deep)
        case ast.Name(id=name):
            return _named(script, name, call, deep)
        case ast.Call() | ast.Attribute() if not _is_rewritten(script, node):
            ends = [each for each in script.trace.origins(node, call.scope) if each.node is not node]
            if len(ends) == 1 and isinstance(ends[0].node, ast.Dict | ast.Call):
                return _options(script, ends[0].node, call, deep + 1)
    return None


def _is_rewritten(script: Script, node: ast.expr) -> bool:
    """Whether entries of an attribute with that name are written somewhere."""
    word = node.attr if isinstance(node, ast.Attribute) else ""
    return bool(word) and any(name.endswith(f".{word}[]") for scope in script.facts.scopes for name in scope.stores)


def _merged(
    script: Script, entries: Sequence[tuple[ast.expr | None, ast.expr]], call: Call, deep: int
) -> dict[str, ast.expr] | None:
    """The entries of a display; one without a key is a dictionary itself."""
    found: dict[str, ast.expr] = {}
    for key, value in entries:
        if isinstance(key, ast.Constant):
            found[str(key.value)] = value
            continue
        more = _options(script, value, call, deep + 1) if key is None else None
        if more is None:
            return None
        found.update(more)
    return found


def _named(script: Script, name: str, call: Call, deep: int) -> dict[str, ast.expr] | None:
    stores = script.names.stores(name, call.scope)
    joined = [
        each for each in stores if each.how == "augment" and isinstance(getattr(each.node, "op", None), ast.BitOr)
    ]
    stores = [each for each in stores if each not in joined]
    if len(stores) != 1 or stores[0].how != "assign" or stores[0].index is not None or stores[0].value is None:
        return None
    found, home = _options(script, stores[0].value, call, deep + 1), stores[0].scope
    if found is None or any(f"{name}[]" in scope.stores for scope in script.facts.scopes if scope is not home):
        return None
    changes: list[Call | Store] = [*home.stores.get(f"{name}[]", ()), *joined, *_uses(script, name)]
    for each in sorted(changes, key=lambda change: change.order):
        if each.path != stores[0].path or (each.scope is call.scope and each.order > call.order):
            return None
        more = _put(script, each, call, deep)
        if more is None:
            return None
        found = {**found, **more}
    return found


def _put(script: Script, change: Call | Store, call: Call, deep: int) -> dict[str, ast.expr] | None:
    """What options["x"] = …, options.update(…) puts in; None when that is not in plain sight."""
    if isinstance(change, Call):
        if change.tail != "update" or len(change.node.args) > 1:
            return None
        whole = ast.Call(ast.Name("dict"), change.node.args, change.node.keywords)
        return _options(script, whole, call, deep + 1)
    if change.how == "augment" and change.value is not None:
        return _options(script, change.value, call, deep + 1)
    match change.node:
        case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value=str(key)))], value=value):
            return {key: value}
    return None


def _uses(script: Script, name: str) -> Iterator[Call]:
    """The calls that may change the dictionary NAME: its methods, and those that it is given to."""
    for call in (call for calls in script.facts.calls.values() for call in calls):
        own = dotted(call.receiver) == name and call.tail not in ("get", "items", "keys", "values", "copy")
        if own or (call.tail not in ("dict", "update") and any(dotted(each) == name for each in call.node.args)):
            yield call
