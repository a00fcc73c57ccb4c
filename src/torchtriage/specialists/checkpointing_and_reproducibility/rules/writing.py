"""What the source alone shows about files that are written: how, and what is in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Event, Ring
from torchtriage.examine.source.facts import Block, Call, Scope, dotted
from torchtriage.examine.source.roles import Part
from torchtriage.examine.source.script import Script
from torchtriage.specialists.checkpointing_and_reproducibility.rules.places import (
    comes_from,
    holds,
    is_false,
    is_model,
    is_passing,
    opened,
    parts_of,
    same_path,
    saves,
    unwrapped,
)

_MOVES = (
    *("os.replace", "os.rename", "os.renames", "os.link", "os.fsync"),
    *("shutil.move", "shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.copytree", "os.system"),
)
_BY_OTHERS = ("tempfile", "subprocess", "sh.", "fsspec", "boto3", "google.cloud")  # what may copy or move, unseen
_NO_RESUME = re.compile(r"(?<![a-z])(best|eval|test|infer|predict|valid)")
_MAKERS = ("timm.create_model", "torch.hub.load")
_TENSORS = ("torch.nn.Parameter", "torch.nn.Buffer")
_WHOLE = frozenset({"model", "optimizer", "scheduler", "scaler"})


@detector("source/save-not-atomic")
def save_not_atomic(script: Script) -> Iterator[Sighting]:
    """The only checkpoint is overwritten in place: a job that is killed while it saves has none."""
    loads = list(script.named("torch.load"))
    if not loads or script.names.framework() or _moves(script) or not any(saves(script)):
        return
    for loop, scope in _training_loops(script):
        events = script.written.events(Ring(loop, scope))
        writes = {id(call) for call in saves(script)}
        inside = [each for each in events if each.call is not None and id(each.call) in writes]
        written = [each.call for each in inside if each.call is not None]
        for save in written:
            load = next((each for each in loads if _resumes(script, each, save, loop, scope)), None)
            if load is None or _varies(script, save, loop) or _has_others(script, save, written):
                continue
            yield script.seen(
                save.node,
                f"this overwrites the file that line {load.node.lineno} resumes from; while it is being written, "
                "neither the old checkpoint nor the new one can be loaded",
                edits=_edit(script, save),
            )


def _moves(script: Script) -> bool:
    """Whether the file moves, copies or links anything: then what is written may not be what is resumed from."""
    if any(script.named(*_MOVES)) or any(name.startswith(_BY_OTHERS) for name in script.facts.imports):
        return True
    return any(len(call.node.args) == 1 and not call.node.keywords for call in script.calls("replace", "rename"))


def _training_loops(script: Script) -> Iterator[tuple[Block, Scope]]:
    """The outermost loops that train."""
    for scope in script.facts.scopes:
        seen: dict[int, Block] = {}
        for action in scope.actions:
            loop = next((block for block in action.path if block.kind == "loop"), None)
            if loop is not None:
                seen.setdefault(id(loop), loop)
        for loop in seen.values():
            if any(_trains(event) for event in script.written.events(Ring(loop, scope))):
                yield loop, scope


def _trains(event: Event) -> bool:
    call = event.call
    if call is None:
        return False
    return call.tail == "backward" or (bool(call.arguments) and call.tail.lower().startswith(("train_", "fit")))


def _resumes(script: Script, load: Call, save: Call, loop: Block, scope: Scope) -> bool:
    """Whether the training of LOOP starts from the file that SAVE writes; not: reads its best weights back."""
    if not same_path(script, (load.argument("f", 0), load.scope), (save.argument("f", 1), save.scope)):
        return False
    words = f"{load.scope.name} {script.source(save.argument('f', 1) or save.node)}".lower()
    entries = {key for key, _, _ in parts_of(script, save.argument("obj", 0), save.scope)}
    held = [origin.node for origin in script.trace.origins(save.argument("obj", 0), save.scope)]
    if _NO_RESUME.search(words) or (len(entries) < 2 and not any(isinstance(each, ast.DictComp) for each in held)):
        return False
    first = min(action.order for action in scope.actions if loop in action.path)
    entries_to = [first] if load.scope is scope else [call.order for call in _ways_in(script, load.scope, scope)]
    if entries_to and load.order > max(entries_to):
        return False
    if load.scope is scope:
        return True
    return any(
        comes_from(script, call.argument("state_dict", 0), call.scope, load) for call in script.calls("load_state_dict")
    )


def _ways_in(script: Script, outer: Scope, inner: Scope) -> Iterator[Call]:
    """The calls in OUTER by which the function INNER comes to run."""
    seen, waiting = {id(inner)}, [inner]
    while waiting:
        for site in script.trace.sites(waiting.pop()):
            if site.scope is outer:
                yield site
            elif id(site.scope) not in seen:
                seen.add(id(site.scope))
                waiting.append(site.scope)


def _varies(script: Script, save: Call, loop: Block) -> bool:
    """Whether the path holds something that changes within the loop: the epoch in its name."""
    path, _ = opened(script, save.argument("f", 1), save.scope)
    return _changes_in(script, path, loop)


def _changes_in(script: Script, node: ast.expr | None, loop: Block, deep: int = 0) -> bool:
    """Whether anything that NODE is made of is counted, drawn from a loop, or made anew from such things."""
    names = {dotted(each) for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute)} if node else set()
    for store in (each for scope in script.facts.scopes for name in names for each in scope.stores.get(name, ())):
        if store.how in ("element", "augment"):
            return True
        fresh = store.value is None or any(isinstance(each, ast.Call) for each in ast.walk(store.value))
        if loop in store.path and (fresh or deep > 3 or _changes_in(script, store.value, loop, deep + 1)):
            return True
    return False


def _has_others(script: Script, save: Call, written: list[Call]) -> bool:
    """Whether the loop writes further checkpoints, from which the training could go on as well."""
    path = (save.argument("f", 1), save.scope)
    return any(not same_path(script, path, (each.argument("f", 1), each.scope)) for each in written)


def _edit(script: Script, save: Call) -> tuple[Edit, ...]:
    """Write beside it and rename: where the save is a statement of its own and the file imports os."""
    path, statement = save.argument("f", 1), save.statement
    known = any(store.imported == "os" and store.name == "os" for store in script.facts.aliases)
    if path is None or not known or not isinstance(statement, ast.Expr) or statement.value is not save.node:
        return ()
    own = script.source(path)
    if isinstance(path, ast.Constant) and isinstance(path.value, str) and path.value.isprintable():
        beside = f'"{path.value}.tmp"'
    elif isinstance(path, ast.Name | ast.Attribute) and dotted(path):
        beside = f'f"{{{own}}}.tmp"'
    else:
        return ()
    raw = script.text.raw(statement.end_lineno or statement.lineno).rstrip()
    indent = script.text.indent(statement.lineno)
    if len(raw) != statement.end_col_offset or len(indent) != statement.col_offset:
        return ()
    return (
        *script.replaced("write-then-rename", path, beside),
        *script.appended("write-then-rename", save.node, f"\n{indent}os.replace({beside}, {own})"),
    )


@detector("source/whole-object-saved")
def whole_object_saved(script: Script) -> Iterator[Sighting]:
    """An object is saved whole: the safe default of torch.load refuses the file."""
    for save in saves(script):
        if is_passing(script, save.argument("f", 1), save.scope):
            continue
        for node, scope in _saved(script, save):
            what = _what(script, node, scope, save)
            if what is not None:
                yield script.seen(
                    node,
                    f"{script.source(node)} is {what}: torch.load refuses this file unless weights_only=False, and "
                    "then needs the same classes at the same places",
                    edits=_state_of(script, node, what),
                )


def _saved(script: Script, save: Call) -> Iterator[tuple[ast.expr, Scope]]:
    given = save.argument("obj", 0)
    if given is None:
        return
    yield given, save.scope
    yield from ((value, scope) for _, value, scope in parts_of(script, given, save.scope))
    for origin in script.trace.origins(given, save.scope):
        if isinstance(origin.node, ast.List | ast.Tuple):
            yield from ((each, origin.scope) for each in origin.node.elts)
        elif isinstance(origin.node, ast.ListComp | ast.DictComp):
            yield (origin.node.value if isinstance(origin.node, ast.DictComp) else origin.node.elt), origin.scope


def _what(script: Script, node: ast.expr, scope: Scope, save: Call) -> str | None:
    """What NODE is that the safe default cannot load, surely; None for anything else."""
    if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        bare = unwrapped(node) or node
        parts = script.roles.parts(bare, scope)
        known = [part for part in parts if part.by in ("made", "annotated")]
        if known and len(known) == len(parts) and all(_is_object(part) for part in known):
            return f"the whole {known[0].role}"
        itself = isinstance(node, ast.Name) and node.id == scope.receiver and is_model(script, node, scope)
        if itself or (parts and all(part.role == "model" for part in parts) and _is_module(script, node, scope)):
            return "the whole model"
        origins = script.trace.origins(node, scope)
        names = [script.names.resolve(each.call.func, each.scope) if each.call else "" for each in origins]
        if names and all(name.startswith("torchvision.models.") or name in _MAKERS for name in names):
            return "the whole model"
    if isinstance(node, ast.Name | ast.Call) and _is_read_safely(script, save):
        for origin in script.trace.origins(node, scope):
            called = dotted(origin.call.func).rpartition(".")[2] if origin.call is not None else ""
            name = script.names.resolve(origin.call.func, origin.scope) if origin.call is not None else ""
            if called == "parse_args":
                return "an argparse.Namespace"
            if name == "numpy.random.get_state":
                return "the state of NumPy's generator, which holds an array"
    return None


def _is_module(script: Script, node: ast.expr, scope: Scope) -> bool:
    """Whether NODE is asked for its parameters, here or where it comes from, and is not what a module handed out."""
    origins = script.trace.origins(node, scope)
    calls = [origin.call for origin in origins if origin.call is not None]
    if any(dotted(call.func).endswith(("state_dict", "parameters")) for call in calls) or not dotted(node):
        return False
    names = [(scope, dotted(node))]
    names += [(each.scope, each.store.name) for each in origins if each.is_parameter and each.store is not None]
    return any(
        call.scope is home and dotted(call.receiver) == name
        for home, name in names
        for call in script.calls("parameters", "named_parameters", "state_dict", "zero_grad", "train", "eval")
        if not call.arguments
    )


def _is_object(part: Part) -> bool:
    return part.role in _WHOLE and part.name not in _TENSORS


def _is_read_safely(script: Script, save: Call) -> bool:
    """Whether this file reads what SAVE writes, with the default of today."""
    if any(script.calls("add_safe_globals", "safe_globals")):
        return False
    return any(
        holds(script, save, (load.argument("f", 0), load.scope)) and not is_false(load.argument("weights_only", 4))
        for load in script.named("torch.load")
        if all(each.arg is not None for each in load.node.keywords)
    )


def _state_of(script: Script, node: ast.expr, what: str) -> tuple[Edit, ...]:
    named = what.startswith("the whole") and bool(dotted(node))
    return script.appended("save-the-state", node, ".state_dict()") if named else ()
