"""Which rank writes the checkpoint."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Ring
from torchtriage.examine.source.facts import Call, Scope, dotted
from torchtriage.examine.source.ranks import levels, selects, ways
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.wrappers import kinds, wrappers
from torchtriage.specialists.distributed_training_strategies.rules.apart import Apart

# A test, a path, a decorator or a context with such a word may tell the ranks apart.
_RANKED = re.compile(
    r"rank|main|master|primary|zero|leader|chief|root|proc|local|gpu|node|dist|world|writer|device|pid|shard|uuid|temp",
    re.IGNORECASE,
)
# A path with such a word in its name may be another one on each rank; one that is only on its way to another may not.
_APART = re.compile(r"rank|gpu|pid|uuid|temp|tmp|buffer|stream|proc|device|host", re.IGNORECASE)
_PASSING = re.compile(r"^_?(?:temp|tmp)", re.IGNORECASE)
_MEASURE = re.compile(
    r"best|score|loss|acc|metric|epoch|step|iter|val|psnr|miou|dice|f1|auc|reward|return", re.IGNORECASE
)
_LEAVES = ast.Return | ast.Continue | ast.Break | ast.Raise
_JOINS = frozenset(
    {"os.path.join", "pathlib.Path", "builtins.str", "os.path.abspath", "os.fspath", "os.path.expanduser"}
    | {"os.path.dirname", "os.path.basename", "os.path.splitext", "builtins.open", "builtins.int", "builtins.round"}
)
_KEPT = frozenset(
    {"format", "join", "joinpath", "with_suffix", "with_name", "with_stem", "parse_args", "replace", "add_argument"}
    | {"resolve", "absolute", "expanduser", "open", "rstrip", "strip", "lower"}
)


@detector("source/every-rank-saves")
def every_rank_saves(script: Script) -> Iterator[Sighting]:
    """Every rank writes the same checkpoint file at the same time."""
    saves = list(script.named("torch.save"))
    if not saves or script.hidden or not _is_distributed(script):
        return
    apart: Apart | None = None
    for call in saves:
        target = call.argument("f", 1)
        if target is None or _may_differ(script, target, call.scope):
            continue
        outward = list(ways(script, call))
        if not outward or not all(_is_open(script, way) and _is_on_ranks(script, way) for way in outward):
            continue
        apart = apart or Apart(script.text.parse())
        if apart.leaves_somewhere() or apart.differs(target):
            continue
        if all(_is_reached_by_all(script, way) and not any(map(apart.tells_apart, way)) for way in outward):
            yield script.seen(
                call.node,
                f"no test of the rank stands around this: all processes write {script.source(target)} at once, "
                "and a file that several write can end up broken",
            )


def _is_distributed(script: Script) -> bool:
    return any(script.named("torch.distributed.init_process_group")) or any(
        each.kind in ("replicated", "flattened") for each in wrappers(script)
    )


def _is_on_ranks(script: Script, way: tuple[Call, ...]) -> bool:
    """Whether the code that leads to the save, or the class that saves, is what joins the ranks or wraps the model."""
    if any(_is_unwrapped(script, node, way[0].scope) for node in ast.walk(way[0].node)):
        return True
    joined = {id(call.node) for call in script.named("torch.distributed.init_process_group")}
    joined |= {id(each.call.node) for each in wrappers(script) if each.kind in ("replicated", "flattened")}
    return any(id(call.node) in joined for call in _around(script, way))


def _is_reached_by_all(script: Script, way: tuple[Call, ...]) -> bool:
    """Whether all ranks surely come to the outermost code of this way: it joins them, wraps the model or trains."""
    outer = way[-1].scope
    if outer.kind not in ("function", "lambda"):
        return True
    if script.trace.sites(outer):  # called from more places than were followed
        return False
    joined = {id(call.node) for call in script.named("torch.distributed.init_process_group")}
    joined |= {id(each.call.node) for each in wrappers(script) if each.kind in ("replicated", "flattened")}
    calls = [event.call for event in script.written.events(Ring(outer.body, outer)) if event.call is not None]
    return any(id(call.node) in joined or call.tail in ("backward", "all_reduce", "barrier") for call in calls)


def _around(script: Script, way: tuple[Call, ...]) -> Iterator[Call]:
    """What the functions on the way run, and the methods of the class that saves; not what they start elsewhere."""
    for scope in {id(call.scope): call.scope for call in way}.values():
        if not any(call.tail in ("spawn", "start_processes", "Process") for call in scope.calls):
            events = script.written.events(Ring(scope.body, scope))
            yield from (event.call for event in events if event.call is not None)
    host = way[-1].scope.host
    for scope in script.facts.scopes if host is not None else ():
        yield from scope.calls if scope.host is host else ()


def _is_unwrapped(script: Script, node: ast.AST, scope: Scope) -> bool:
    """Whether NODE is wrapper.module of a replicated model."""
    if not (isinstance(node, ast.Attribute) and node.attr == "module"):
        return False
    return any(kind == "replicated" for kind, _ in kinds(script, node.value, scope))


def _is_open(script: Script, way: tuple[Call, ...]) -> bool:
    """Whether no test, context or decorator on this way may let one rank through alone."""
    return not any(_is_told_apart(script, call) for call in way)


def _is_told_apart(script: Script, call: Call) -> bool:
    for block, statements in levels(call):
        if any(_is_ranked(script, each, call.scope) for each in _conditions(block.owner)):
            return True
        for each in statements:
            if each.lineno >= call.node.lineno:
                break
            test = each.test if isinstance(each, ast.If) and isinstance(each.body[-1], _LEAVES) else None
            if test is not None and _is_ranked(script, test, call.scope):
                return True
    return any(isinstance(each, ast.IfExp | ast.BoolOp) for each in ast.walk(call.statement))


def _opens(node: ast.expr) -> bool:
    """Whether a context only opens a file; which one is asked of the target of the save."""
    return isinstance(node, ast.Call) and (dotted(node.func) == "open" or getattr(node.func, "attr", "") == "open")


def _conditions(owner: ast.AST) -> Iterable[ast.expr]:
    match owner:
        case ast.If(test=test) | ast.While(test=test):
            return [test]
        case ast.With(items=items):
            return [item.context_expr for item in items if not _opens(item.context_expr)]
        case ast.Match(subject=subject):
            return [subject]
    return []


def _is_ranked(script: Script, test: ast.expr, scope: Scope, deep: int = 0) -> bool:
    """Whether TEST may tell the ranks apart; a flag from out of sight may."""
    if _RANKED.search(ast.unparse(test).replace("__main__", "")):
        return True
    if any(isinstance(each, ast.Call) and not _is_plain(script, each, scope) for each in ast.walk(test)):
        return True
    if isinstance(test, ast.Compare) and all(_is_measure(each) for each in (test.left, *test.comparators)):
        return False
    flags = list(_flags(test))
    if any(_is_flag_ranked(script, each, scope, deep) for each in flags):
        return True
    asked = {id(each) for each in flags}
    names = [each for each in ast.walk(test) if isinstance(each, ast.Name | ast.Attribute) and id(each) not in asked]
    ends = (end for each in names for end in script.trace.origins(each, scope) if end.node is not each)
    return any(_asks_rank(script, end.node, end.scope) for end in ends if end.node is not None)


def _asks_rank(script: Script, node: ast.expr, scope: Scope) -> bool:
    tests = (each for each in ast.walk(node) if isinstance(each, ast.Compare | ast.BoolOp | ast.IfExp))
    return any(selects(script, t.test if isinstance(t, ast.IfExp) else t, scope) is not None for t in tests)


def _flags(test: ast.expr) -> Iterator[ast.Name | ast.Attribute]:
    """What a test takes as it is: flag, not flag, flag is not None."""
    match test:
        case ast.Name() | ast.Attribute():
            yield test
        case ast.UnaryOp(operand=inner) | ast.Compare(left=inner, ops=[ast.Is() | ast.IsNot()]):
            yield from _flags(inner)
        case ast.BoolOp(values=values):
            for value in values:
                yield from _flags(value)


def _is_flag_ranked(script: Script, flag: ast.Name | ast.Attribute, scope: Scope, deep: int) -> bool:
    for store in script.names.stores(flag.id, scope) if isinstance(flag, ast.Name) else ():
        if isinstance(store.value, ast.IfExp) and _RANKED.search(ast.unparse(store.value.test)):
            return True
    for origin in script.trace.origins(flag, scope):
        if origin.node is None or origin.node is flag or origin.is_parameter:
            return not _is_option(flag)
        if isinstance(origin.node, ast.Call):
            if not _is_plain(script, origin.node, origin.scope) or _RANKED.search(dotted(origin.node.func)):
                return True
        elif deep < 3 and _is_ranked(script, origin.node, origin.scope, deep + 1):
            return True
    return False


def _is_plain(script: Script, call: ast.Call, scope: Scope) -> bool:
    """Whether a call in a test says the same on every rank: len(loader), os.path.exists(path)."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in (
        "item",
        "mean",
        "sum",
        "get",
        "float",
        "avg",
        "compute",
    ):
        return True
    return script.names.resolve(call.func, scope).partition(".")[0] in ("builtins", "os", "math", "torch", "numpy")


def _is_measure(node: ast.expr) -> bool:
    """Whether NODE is a figure of the training, which has a name of its kind, or a constant to compare it with."""
    return isinstance(node, ast.Constant) or bool(_MEASURE.search(dotted(node).rpartition(".")[2]))


def _is_option(flag: ast.expr) -> bool:
    """Whether a flag is read from the settings, which are the same for all ranks: args.checkpoint."""
    return bool(
        re.match(r"(?:self\.)?(?:args|cfg|config|opt|opts|hparams|settings|flags)\.", dotted(flag), re.IGNORECASE)
    )


def _may_differ(script: Script, target: ast.expr, scope: Scope, deep: int = 0) -> bool:
    """Whether the path may have another value on each rank, or is no path at all."""
    if deep > 4:
        return True
    for node in ast.walk(target):
        asked = isinstance(node, ast.Subscript) and script.names.resolve(node.value, scope) == "os.environ"
        if asked and _RANKED.search(ast.unparse(node)):
            return True
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            continue
        if isinstance(node, ast.Call) and not _keeps(script, node, scope, deep):
            return True
        name = dotted(node) if isinstance(node, ast.Name | ast.Attribute) else ""
        if _APART.search(name) and not (_PASSING.search(name) and _is_made_here(script, name, scope)):
            return True
        if name and _is_stored_apart(script, name, scope, deep):
            return True
    return False


def _is_made_here(script: Script, name: str, scope: Scope) -> bool:
    """Whether NAME is a local name whose every value stands in this file: temporary = path.with_suffix(".tmp")."""
    stores = script.names.stores(name, scope) if "." not in name else []
    return bool(stores) and all(store.how == "assign" and store.index is None for store in stores)


def _is_stored_apart(script: Script, name: str, scope: Scope, deep: int) -> bool:
    root, _, rest = name.partition(".")
    host = scope.host if root == scope.receiver and rest else None
    stores = host.attributes.get(rest, []) if host is not None else script.names.stores(name, scope)
    if "." in name and host is None:  # args.output may be given a value of its own anywhere
        stores = [store for each in script.facts.scopes for store in each.stores.get(name, ())]
    values = [(store.value, store.scope) for store in stores if store.how in ("assign", "augment", "enter")]
    for store in stores:
        if store.how == "parameter" and host is None:
            words = [each.arg for each in store.scope.parameters]
            place = words.index(name) - (store.scope.receiver in words[:1])
            sites = script.trace.sites(store.scope)
            values += [(given, site.scope) for site in sites if (given := site.argument(name, place)) is not None]
    return any(value is not None and _may_differ(script, value, home, deep + 1) for value, home in values)


def _keeps(script: Script, call: ast.Call, scope: Scope, deep: int) -> bool:
    """Whether what CALL makes of a path is the same everywhere as soon as its arguments are."""
    name = script.names.resolve(call.func, scope)
    own = script.trace.definition(call.func, scope)
    if own is not None:
        ends = [each.node.value for each in own.returns if each.node.value is not None]
        return not any(_may_differ(script, end, own, deep + 1) for end in ends)
    if name in _JOINS:
        return True
    if name in ("os.environ.get", "os.getenv"):
        key = call.args[0] if call.args else None
        return isinstance(key, ast.Constant) and not (_APART.search(str(key.value)) or _RANKED.search(str(key.value)))
    word = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return word in _KEPT
